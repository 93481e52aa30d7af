"""Links break, processes die and freeze: the answer, the ledger and the pulls are those of an undisturbed run."""

from __future__ import annotations

import signal
import time

import pytest
from processes import Trial
from proxy import Proxy


@pytest.fixture
def trial(tmp_path, certs):
    """Make a trial whose processes are gone after the test."""
    made = []

    def make(**settings):
        made.append(Trial(tmp_path, certs, **settings))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def start_all(trial):
    trial.start_coordinator()
    for number in range(trial.sites):
        trial.start_site(number)


@pytest.mark.parametrize(
    "killed", [pytest.param(["site0"], marks=pytest.mark.long), ["site0", "site1"], ["coordinator"]], ids=" and ".join
)
def test_what_is_killed_in_the_middle_of_an_exchange_goes_on_when_it_is_started_again(trial, killed):
    run = trial()
    start_all(run)
    run.wait_for_pulls("site0", 8)
    for name in killed:
        run.kill(name)
    for name in killed:
        if name == "coordinator":
            run.start_coordinator()
        else:
            run.start_site(int(name[-1]))
    transport = run.check(run.result(), repeated_at_most=len(killed) if killed != ["coordinator"] else 0)
    assert transport["bytes"] > 0


@pytest.mark.parametrize("seconds", [2.5, pytest.param(30, marks=pytest.mark.long)])
def test_a_frozen_site_is_noticed_and_goes_on_when_it_thaws(trial, seconds):
    run = trial(keepalive=0.5)
    start_all(run)
    run.wait_for_pulls("site1", 8)
    run.send("site1", signal.SIGSTOP)
    time.sleep(seconds)
    assert "site1 is gone" in run.said("coordinator")
    run.send("site1", signal.SIGCONT)
    run.check(run.result())
    assert "site1 is back" in run.said("coordinator")


@pytest.mark.parametrize("seconds", [2.5, pytest.param(20, marks=pytest.mark.long)])
def test_a_link_that_is_cut_in_the_middle_of_a_pull_and_healed_loses_nothing(trial, seconds):
    run = trial(keepalive=0.5)
    link = Proxy(run.port)
    run.start_coordinator()
    run.start_site(0)
    run.start_site(1, port=link.port)
    run.wait_for_pulls("site1", 8)
    link.cut()
    time.sleep(seconds)
    link.heal()
    transport = run.check(run.result())
    link.close()
    assert transport["reconnects"] >= 1
    assert transport["repeats"] >= 1
    assert transport["absent"] > 0


@pytest.mark.long
def test_links_that_are_slow_and_reset_at_random_give_the_undisturbed_answer(trial):
    run = trial(sites=3, pull_seconds=0.01)
    links = [Proxy(run.port, delay=0.1, reset_after=(0.8, 2.0), seed=number) for number in range(3)]  # 200 ms both ways
    run.start_coordinator()
    for number, link in enumerate(links):
        run.start_site(number, port=link.port)
    run.check(run.result())
    assert sum(link.resets for link in links) >= 1
    for link in links:
        link.close()


def test_ctrl_c_ends_either_side_with_130_and_both_go_on_later(trial):
    run = trial()
    start_all(run)
    run.wait_for_pulls("site0", 8)
    for name in ("coordinator", "site0"):
        run.send(name, signal.SIGINT)
        assert run.running[name].wait(20) == 130
        assert "error: interrupted: the same command goes on where it stopped" in run.said(name)
        assert "Traceback" not in run.said(name)
    run.start_coordinator()
    run.start_site(0)
    run.check(run.result(), repeated_at_most=1)


HOLDS_THE_INTERPRETER = """
import ctypes, os
pulls = []
def hold(seconds):
    pulls.append(1)
    if len(pulls) == 5 and os.environ["PULLS"].endswith("site0.pulls"):
        ctypes.PyDLL(None).sleep(seconds)      # unlike CDLL, it keeps the interpreter's lock
"""


@pytest.mark.parametrize("seconds", [3, pytest.param(90, marks=pytest.mark.long)])
def test_a_site_whose_function_holds_the_interpreter_is_not_taken_for_dead(trial, seconds):
    run = trial(keepalive=0.5, pull_seconds=0)
    module = run.folder / "study.py"
    module.write_text(HOLDS_THE_INTERPRETER + module.read_text().replace("    time", f"    hold({seconds})\n    time"))
    start_all(run)
    transport = run.check(run.result(seconds=seconds + 60))
    assert transport["reconnects"] == 0
    assert transport["seconds"] > seconds
