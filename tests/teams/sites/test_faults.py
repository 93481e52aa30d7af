"""Links break, processes die and freeze: the answer, the ledger and the pulls are those of an undisturbed run.

By default, processes are forked and faults last only until they are noticed. The long forms start the installed
command, have faults of realistic length, and test more algorithms.
"""

from __future__ import annotations

import re
import shutil
import signal
import time

import pytest

from collabtop.runlog.format import Exchange
from collabtop.runs.checkpoint import is_finished
from tests.support.partial_log import rewritten
from tests.support.proxy import Proxy
from tests.support.site_processes import Trial

pytestmark = pytest.mark.slow

LONG = [
    pytest.param(name, True, marks=pytest.mark.long) for name in ("collab-top-iid", "frugal-top", "collab-top-noniid")
]


@pytest.fixture
def trial(tmp_path, certs):
    """Make trials whose processes are stopped after the test."""
    trials = []

    def make(algorithm="collab-top-iid", **settings):
        trials.append(Trial(tmp_path, certs, algorithm=algorithm, **settings))
        return trials[-1]

    yield make
    for run in trials:
        run.stop()


@pytest.mark.parametrize(
    ("algorithm", "fresh"), [("collab-top-iid", False), *LONG, pytest.param("kzz", True, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("killed", [["site0"], ["site0", "site1"], ["coordinator"]], ids=" and ".join)
def test_a_process_killed_during_an_exchange_continues_when_it_is_restarted(trial, killed, algorithm, fresh):
    run = trial(algorithm, fresh=fresh, hold=True)
    run.start_all()
    run.wait_until_held()
    for name in killed:
        if name != "coordinator":
            run.wait_until_recorded(name)
        run.kill(name)
    run.release()
    for name in killed:
        run.restart(name)
    transport = run.check(run.result(), repeated_at_most=sum(name != "coordinator" for name in killed))
    assert transport["bytes"] > 0


def test_quick_pulls_are_in_the_journal_though_the_next_one_takes_long_so_a_kill_repeats_only_that(trial):
    run = trial(hold=True, pull_seconds=0.001)
    run.start_all()
    run.wait_until_held()
    run.wait_until_recorded("site0")
    run.kill("site0")
    run.release()
    run.restart("site0")
    run.check(run.result(), repeated_at_most=1)


@pytest.mark.parametrize(("algorithm", "fresh"), [("frugal-top", False), *LONG])
def test_a_frozen_site_is_noticed_and_continues_when_it_resumes(trial, algorithm, fresh):
    run = trial(algorithm, fresh=fresh, hold=True, keepalive=0.5)
    run.start_all()
    run.wait_until_held()
    run.send_signal("site1", signal.SIGSTOP)
    run.wait_for_output("coordinator", "site site1 disconnected")
    time.sleep(30 if fresh else 0)
    run.send_signal("site1", signal.SIGCONT)
    run.release()
    run.check(run.result())
    assert "site site1 reconnected" in run.stderr("coordinator")


@pytest.mark.parametrize(("algorithm", "fresh"), [("collab-top-iid", False), *LONG])
def test_a_link_that_is_cut_during_a_pull_and_healed_loses_nothing(trial, algorithm, fresh):
    run = trial(algorithm, fresh=fresh, hold=True, keepalive=0.5)
    run.start_coordinator()
    link = Proxy(run.port)
    run.start_site(0)
    run.start_site(1, port=link.port)
    run.wait_until_held()
    link.cut()
    run.wait_for_output("coordinator", "site site1 disconnected")
    time.sleep(20 if fresh else 0.5)
    link.heal()
    run.release()
    transport = run.check(run.result())
    link.close()
    assert transport["reconnects"] >= 1
    assert transport["repeats"] >= 1
    assert transport["absent"] > 0


@pytest.mark.parametrize(
    ("algorithm", "fresh"), [("collab-top-iid", False), *LONG, pytest.param("kzz", True, marks=pytest.mark.long)]
)
def test_slow_links_with_random_resets_give_the_undisturbed_answer(trial, algorithm, fresh):
    """In the long form a round trip takes 200 ms and links are reset up to 10 times; in the short one 20 ms and 2."""
    faults = {"delay": 0.1, "reset_after": (0.8, 2.0)} if fresh else {"delay": 0.01, "reset_after": (0.2, 0.8)}
    run = trial(algorithm, fresh=fresh)
    run.start_coordinator()
    links = [Proxy(run.port, **faults, most_resets=10 if fresh else 2, seed=number) for number in range(run.sites)]
    for number, link in enumerate(links):
        run.start_site(number, port=link.port)
    run.check(run.result(seconds=300))
    assert sum(link.resets for link in links) >= 2
    for link in links:
        link.close()


@pytest.mark.parametrize("fresh", [False, pytest.param(True, marks=pytest.mark.long)])
def test_ctrl_c_ends_either_side_with_130_and_both_continue_later(trial, fresh):
    run = trial(fresh=fresh, hold=True)
    run.start_all()
    run.wait_until_held()
    for name in ("coordinator", "site0"):
        run.send_signal(name, signal.SIGINT)
        assert run.processes[name].wait(60) == 130
        assert "error: interrupted: run the same command again to continue" in run.stderr(name)
        assert "Traceback" not in run.stderr(name)
        run.release()
    for name in ("coordinator", "site0"):
        run.restart(name)
    run.check(run.result(), repeated_at_most=1)


SITE0_HOLDS_ITS_LAST_PULL = """
def hook(candidate):
    while pulls == 128 and os.environ["PULLS"].endswith("site0.pulls") and not os.path.exists("go"):
        time.sleep(0.005)
"""


@pytest.mark.long
def test_after_ctrl_c_in_the_last_wait_for_a_site_the_answer_is_in_the_log(trial, tmp_path):
    run = trial("uniform", hook=SITE0_HOLDS_ITS_LAST_PULL, pull_seconds=0)
    run.fresh = True  # to see what the interpreter prints at exit
    run.start_coordinator()
    run.fresh = False
    run.start_site(0)
    run.start_site(1, more=("--audit", "sent.jsonl"))
    sent = tmp_path / "sent.jsonl"
    run.wait("site1", lambda: sent.exists() and '"Answer"' in sent.read_text(), "answer")
    run.wait_until_idle("site1")
    run.kill("site1")
    run.wait_for_output("coordinator", "site site1 disconnected")
    run.release()
    run.wait("coordinator", lambda: is_finished(tmp_path / "run.ctlog"), "answer in the log")
    run.send_signal("coordinator", signal.SIGINT)
    assert run.processes["coordinator"].wait(20) == 130
    lines = run.stderr("coordinator").splitlines()
    assert lines[-1] == "error: interrupted: run the same command again to continue"
    assert all(re.match("listening on|site site[01] |error: ", line) for line in lines), lines
    del run.processes["site1"]
    run.start_coordinator()
    run.check(run.result())


def test_a_site_without_its_journal_is_rejected_and_counts_as_disconnected(trial):
    run = trial(grace=10, hold=True)
    run.start_all()
    run.wait_until_held()
    run.kill("site0")
    shutil.rmtree(run.folder / "site0-journal")
    run.start_site(0)
    assert run.processes["site0"].wait(60) == 1
    assert "the journal is missing or too old" in run.stderr("site0")
    assert run.processes["coordinator"].wait(60) == 1
    assert "site site0 has been disconnected for 10 s: start the run again" in run.stderr("coordinator")


@pytest.mark.parametrize(
    ("wrong_log", "error"),
    [("none", "it has a different run"), ("old", "this site has answered requests that it does not know")],
)
def test_sites_that_a_coordinator_with_a_wrong_log_rejected_continue_with_the_right_one(trial, wrong_log, error):
    run = trial(hold=True)
    run.start_all()
    run.wait_until_held()
    run.kill("coordinator")
    run.release()
    log = run.folder / "run.ctlog"
    right = log.rename(run.folder / "right.ctlog")
    if wrong_log == "old":
        rewritten(
            right, log, lambda records: [record for record in records if not isinstance(record, Exchange)]
        ).close()
    run.start_coordinator()
    for name in ("site0", "site1"):
        run.wait_for_output(name, rf"rejected by the coordinator: {error}.*; retrying")
    run.kill("coordinator")
    right.rename(log)
    run.start_coordinator()
    run.check(run.result())


FAILS = """
def hook(candidate):
    if candidate == "treatment 63" and not os.path.exists("fixed"):
        raise LookupError("no such drug")
"""


def test_a_run_stopped_by_a_failing_function_continues_when_it_is_fixed(trial):
    run = trial(hook=FAILS)
    run.start_all()
    assert run.processes["coordinator"].wait(60) == 1
    holder = re.search(r"a pull of candidate 'treatment 63' failed at site (site\d)", run.stderr("coordinator"))[1]
    assert run.processes[holder].wait(60) == 1
    assert "pull of candidate 'treatment 63' raised LookupError: no such drug" in run.stderr(holder)
    assert "no such drug" not in run.stderr("coordinator")
    (run.folder / "fixed").touch()
    for name in ("coordinator", "site0", "site1"):
        run.kill(name)
        run.restart(name)
    run.check(run.result(), repeated_at_most=1)


BLOCKS_THE_INTERPRETER = """
import ctypes
def hook(candidate):
    if pulls == 5 and os.environ["PULLS"].endswith("site0.pulls"):
        ctypes.PyDLL(None).sleep(SECONDS)      # unlike CDLL, it does not release the interpreter lock
"""


@pytest.mark.parametrize(("seconds", "fresh"), [(3, False), pytest.param(90, True, marks=pytest.mark.long)])
def test_a_site_whose_function_blocks_the_interpreter_does_not_count_as_frozen(trial, seconds, fresh):
    hook = BLOCKS_THE_INTERPRETER.replace("SECONDS", str(seconds))
    # With a keepalive of one second, a frozen site would be noticed after two.
    run = trial(fresh=fresh, keepalive=1, pull_seconds=0, hook=hook)
    run.start_all()
    transport = run.check(run.result(seconds=seconds + 120))
    assert transport["reconnects"] == 0
    assert transport["seconds"] > seconds
