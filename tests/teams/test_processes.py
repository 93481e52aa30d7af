"""Pulls in worker processes: the runs of the local team, whatever happens to the workers, with nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import collabtop as ct
from collabtop.testing import check_team

MEANS = [0.2, 0.35, 0.5, 0.65, 0.8]


def two_processes():
    return ct.ProcessesTeam(workers=2)


def score(mean, rng):
    return rng.random() < mean


def identify(pull, team="processes", **more):
    return ct.identify(MEANS, 2, pull=pull, **{"horizon": 30, "seed": 3, "team": team} | more)


@pytest.mark.slow
def test_the_team_keeps_the_laws(left_behind):
    check_team(two_processes)
    assert left_behind() == []


@pytest.mark.parametrize("agents", [1, 3])
def test_pulls_in_processes_give_the_run_of_the_local_team(agents, left_behind):
    local, processes = (identify(score, team, agents=agents) for team in ("local", two_processes()))
    assert processes == local
    assert processes.ledger == local.ledger
    assert processes.observed.pulls.tolist() == local.observed.pulls.tolist()
    assert left_behind() == []


def test_lambdas_and_closures_are_sent_and_rewards_come_back_with_costs_and_notes():
    shift = 0.1
    result = identify(lambda mean, rng: ct.Reward(mean + shift, cost=0.5, note=str(os.getpid())))
    assert result.top == ["0.8", "0.65"]
    assert result.cost == 0.5 * result.pulls


def dies_once(mean, rng):
    path = f"{os.environ['COLLABTOP_TEST_FOLDER']}/{mean}"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return rng.random() < mean
    return os.kill(os.getpid(), signal.SIGKILL)


def dies(mean, rng):
    os._exit(7)


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_makes_its_pull_again(tmp_path, monkeypatch, left_behind):
    monkeypatch.setenv("COLLABTOP_TEST_FOLDER", str(tmp_path))
    result = identify(dies_once, two_processes())
    assert result == identify(score, "local")
    assert result.retries == 0
    assert len(list(tmp_path.iterdir())) == len(MEANS)
    assert left_behind() == []


@pytest.mark.slow
def test_a_function_that_always_ends_its_process_is_a_failed_pull(left_behind):
    with pytest.raises(ct.PullError, match=r"ended its process \(exit code 7, 4 times\)"):
        identify(dies, ct.ProcessesTeam(workers=1))
    assert left_behind() == []


def breaks(mean, rng):
    raise ZeroDivisionError("no")


def test_an_exception_in_a_worker_is_the_error_of_the_local_team(left_behind):
    errors = []
    for team in ("local", two_processes()):
        with pytest.raises(ct.PullError) as raised:
            identify(breaks, team)
        errors.append(str(raised.value))
    assert errors[0] == errors[1] == "pull of candidate '0.2' raised ZeroDivisionError: no"
    assert left_behind() == []


def test_a_function_that_cannot_be_pickled_is_refused(left_behind):
    lock = threading.Lock()
    with pytest.raises(ct.InputError, match=r"as team='processes' requires: leave out what cannot be pickled, such as"):
        identify(lambda mean, rng: 0.5 if lock else 0.4)
    assert left_behind() == []


loaded = []


def load():
    loaded.append(os.environ["OPENBLAS_NUM_THREADS"])


def score_if_loaded(mean, rng):
    return rng.random() < mean if loaded == ["1"] else None


def fails_to_load():
    raise OSError("no model")


@pytest.mark.slow
def test_the_set_up_hook_runs_once_per_worker_and_linear_algebra_has_one_thread(monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    result = identify(score_if_loaded, ct.ProcessesTeam(workers=2, set_up=load))
    assert result == identify(score, "local")
    assert "OPENBLAS_NUM_THREADS" not in os.environ
    with pytest.raises(ct.PullError, match="a worker process did not start: OSError: no model"):
        identify(score, ct.ProcessesTeam(workers=1, set_up=fails_to_load))


def test_wrong_arguments_are_named():
    with pytest.raises(ct.InputError, match="workers is 0"):
        ct.ProcessesTeam(workers=0)
    with pytest.raises(ct.InputError, match="set_up is 3, but a function without arguments is needed"):
        ct.ProcessesTeam(set_up=3)  # type: ignore[arg-type]


def test_simulated_arms_start_no_process(left_behind):
    arms = ct.BernoulliArms(np.linspace(0.2, 0.8, 9))
    runs = [ct.identify(arms, 2, agents=2, horizon=100, seed=1, team=team) for team in ("local", "processes")]
    assert runs[0] == runs[1]
    assert left_behind() == []


@pytest.mark.slow
@pytest.mark.parametrize("pull", ["pull", "lambda mean, rng: mean"])
def test_a_script_without_a_main_guard_gets_one_clear_line(tmp_path, pull):
    script = tmp_path / "script.py"
    script.write_text(
        "import collabtop as ct\n"
        "def pull(mean, rng):\n    return mean\n"
        f"ct.identify([0.2, 0.8], 1, pull={pull}, horizon=10, team='processes', workers=2)\n"
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    assert '__name__ == "__main__"' in ended.stderr.splitlines()[-1]
    assert ended.stderr.count("Traceback") == 1  # none of the workers
