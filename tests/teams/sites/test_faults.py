"""Links break, processes die and freeze: the answer, the ledger and the pulls are those of an undisturbed run.

By default the processes are copies of a warm one and the faults last as long as it takes to notice them; the long
forms start the installed command, last as long as faults do, and go through more algorithms.
"""

from __future__ import annotations

import re
import shutil
import signal
import time

import pytest

from collabtop.runs.checkpoint import is_finished
from tests.support.proxy import Proxy
from tests.support.site_processes import Trial

pytestmark = pytest.mark.slow

LONG = [
    pytest.param(name, True, marks=pytest.mark.long) for name in ("collab-top-iid", "frugal-top", "collab-top-noniid")
]


@pytest.fixture
def trial(tmp_path, certs):
    """Make a trial whose processes are gone after the test."""
    made = []

    def make(algorithm="collab-top-iid", **settings):
        made.append(Trial(tmp_path, certs, algorithm=algorithm, **settings))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.mark.parametrize(
    ("algorithm", "fresh"), [("collab-top-iid", False), *LONG, pytest.param("kzz", True, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("killed", [["site0"], ["site0", "site1"], ["coordinator"]], ids=" and ".join)
def test_what_is_killed_in_the_middle_of_an_exchange_goes_on_when_it_is_started_again(trial, killed, algorithm, fresh):
    run = trial(algorithm, fresh=fresh, hold=True)
    run.start_all()
    run.wait_for_the_middle()
    for name in killed:
        run.kill(name)
    run.go_on()
    for name in killed:
        run.start_again(name)
    transport = run.check(run.result(), repeated_at_most=sum(name != "coordinator" for name in killed))
    assert transport["bytes"] > 0


@pytest.mark.parametrize(("algorithm", "fresh"), [("frugal-top", False), *LONG])
def test_a_frozen_site_is_noticed_and_goes_on_when_it_thaws(trial, algorithm, fresh):
    run = trial(algorithm, fresh=fresh, hold=True, keepalive=0.5)
    run.start_all()
    run.wait_for_the_middle()
    run.send("site1", signal.SIGSTOP)
    run.wait_until_said("coordinator", "site site1 disconnected")
    time.sleep(30 if fresh else 0)
    run.send("site1", signal.SIGCONT)
    run.go_on()
    run.check(run.result())
    assert "site site1 reconnected" in run.said("coordinator")


@pytest.mark.parametrize(("algorithm", "fresh"), [("collab-top-iid", False), *LONG])
def test_a_link_that_is_cut_in_the_middle_of_a_pull_and_healed_loses_nothing(trial, algorithm, fresh):
    run = trial(algorithm, fresh=fresh, hold=True, keepalive=0.5)
    run.start_coordinator()
    link = Proxy(run.port)
    run.start_site(0)
    run.start_site(1, port=link.port)
    run.wait_for_the_middle()
    link.cut()
    run.wait_until_said("coordinator", "site site1 disconnected")
    time.sleep(20 if fresh else 0.5)
    link.heal()
    run.go_on()
    transport = run.check(run.result())
    link.close()
    assert transport["reconnects"] >= 1
    assert transport["repeats"] >= 1
    assert transport["absent"] > 0


@pytest.mark.parametrize(
    ("algorithm", "fresh"), [("collab-top-iid", False), *LONG, pytest.param("kzz", True, marks=pytest.mark.long)]
)
def test_links_that_are_slow_and_reset_at_random_give_the_undisturbed_answer(trial, algorithm, fresh):
    """There and back takes 200 ms in the long form, 20 ms in the short one; links are reset up to 10 times, or 2."""
    bad = {"delay": 0.1, "reset_after": (0.8, 2.0)} if fresh else {"delay": 0.01, "reset_after": (0.2, 0.8)}
    run = trial(algorithm, fresh=fresh)
    run.start_coordinator()
    links = [Proxy(run.port, **bad, most_resets=10 if fresh else 2, seed=number) for number in range(run.sites)]
    for number, link in enumerate(links):
        run.start_site(number, port=link.port)
    run.check(run.result(seconds=300))
    assert sum(link.resets for link in links) >= 2
    for link in links:
        link.close()


@pytest.mark.parametrize("fresh", [False, pytest.param(True, marks=pytest.mark.long)])
def test_ctrl_c_ends_either_side_with_130_and_both_go_on_later(trial, fresh):
    run = trial(fresh=fresh, hold=True)
    run.start_all()
    run.wait_for_the_middle()
    for name in ("coordinator", "site0"):
        run.send(name, signal.SIGINT)
        assert run.running[name].wait(60) == 130
        assert "error: interrupted: run the same command again to continue" in run.said(name)
        assert "Traceback" not in run.said(name)
        run.go_on()
    for name in ("coordinator", "site0"):
        run.start_again(name)
    run.check(run.result(), repeated_at_most=1)


SITE0_HOLDS_ITS_LAST_PULL = """
def meanwhile(candidate):
    while pulls == 128 and os.environ["PULLS"].endswith("site0.pulls") and not os.path.exists("go"):
        time.sleep(0.005)
"""


@pytest.mark.long
def test_ctrl_c_in_the_wait_for_a_site_at_the_end_is_130_and_the_answer_is_in_the_log(trial, tmp_path):
    run = trial("uniform", meanwhile=SITE0_HOLDS_ITS_LAST_PULL, pull_seconds=0)
    run.fresh = True  # what an interpreter says when it ends is looked at
    run.start_coordinator()
    run.fresh = False
    run.start_site(0)
    run.start_site(1, more=("--audit", "sent.jsonl"))
    sent = tmp_path / "sent.jsonl"
    run._wait("site1", lambda: sent.exists() and '"Answer"' in sent.read_text(), "answer")
    run.wait_until_idle("site1")
    run.kill("site1")
    run.wait_until_said("coordinator", "site site1 disconnected")
    run.go_on()
    run._wait("coordinator", lambda: is_finished(tmp_path / "run.ctlog"), "answer in the log")
    run.send("coordinator", signal.SIGINT)
    assert run.running["coordinator"].wait(20) == 130
    said = run.said("coordinator").splitlines()
    assert said[-1] == "error: interrupted: run the same command again to continue"
    assert all(re.match("listening on|site site[01] |error: ", line) for line in said), said
    del run.running["site1"]
    run.start_coordinator()
    run.check(run.result())


def test_a_site_that_lost_its_journal_is_turned_away_and_counts_as_gone(trial):
    run = trial(grace=1, hold=True)
    run.start_all()
    run.wait_for_the_middle()
    run.kill("site0")
    shutil.rmtree(run.folder / "site0-journal")
    run.start_site(0)
    assert run.running["site0"].wait(60) == 1
    assert "the journal is missing or too old" in run.said("site0")
    assert run.running["coordinator"].wait(60) == 1
    assert "site site0 has been disconnected for 1 s: start the run again" in run.said("coordinator")


def test_a_coordinator_that_lost_its_log_has_another_run_and_no_site_goes_on_with_it(trial):
    run = trial(hold=True)
    run.start_all()
    run.wait_for_the_middle()
    run.kill("coordinator")
    run.go_on()
    (run.folder / "run.ctlog").unlink()
    run.start_coordinator()
    for name in ("site0", "site1"):
        assert run.running[name].wait(60) == 1
        assert "rejected by the coordinator: it has a different run" in run.said(name)


FAILS = """
def meanwhile(candidate):
    if candidate == "treatment 63" and not os.path.exists("mended"):
        raise LookupError("no such drug")
"""


def test_a_function_that_fails_stops_the_run_and_goes_on_once_it_is_mended(trial):
    run = trial(meanwhile=FAILS)
    run.start_all()
    assert run.running["coordinator"].wait(60) == 1
    holder = re.search(r"a pull of candidate 'treatment 63' failed at site (site\d)", run.said("coordinator"))[1]
    assert run.running[holder].wait(60) == 1
    assert "pull of candidate 'treatment 63' raised LookupError: no such drug" in run.said(holder)
    assert "no such drug" not in run.said("coordinator")
    (run.folder / "mended").touch()
    for name in ("coordinator", "site0", "site1"):
        run.kill(name)
        run.start_again(name)
    run.check(run.result(), repeated_at_most=1)


HOLDS_THE_INTERPRETER = """
import ctypes
def meanwhile(candidate):
    if pulls == 5 and os.environ["PULLS"].endswith("site0.pulls"):
        ctypes.PyDLL(None).sleep(SECONDS)      # unlike CDLL, it keeps the interpreter's lock
"""


@pytest.mark.parametrize(("seconds", "fresh"), [(3, False), pytest.param(90, True, marks=pytest.mark.long)])
def test_a_site_whose_function_holds_the_interpreter_is_not_taken_for_dead(trial, seconds, fresh):
    meanwhile = HOLDS_THE_INTERPRETER.replace("SECONDS", str(seconds))
    # With a keepalive of a second, a frozen site would be noticed after two.
    run = trial(fresh=fresh, keepalive=1, pull_seconds=0, meanwhile=meanwhile)
    run.start_all()
    transport = run.check(run.result(seconds=seconds + 120))
    assert transport["reconnects"] == 0
    assert transport["seconds"] > seconds
