"""Agents in threads: exactly the runs of the local team, in parallel, with nothing left behind."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import collabtop as ct
from collabtop.testing import check_team

MEANS = [0.2, 0.35, 0.5, 0.65, 0.8]


@pytest.mark.slow
def test_the_team_keeps_the_laws(left_behind):
    check_team(ct.ThreadsTeam)
    assert left_behind() == []


def score(mean, rng):
    return rng.random() < mean


async def score_async(mean, rng):
    await asyncio.sleep(0)
    return rng.random() < mean


@ct.batch
def score_batch(mean, times, rng):
    return rng.random(times) < mean


@ct.batch
async def score_batch_async(mean, times, rng):
    return (rng.random(times) < mean).astype(float)


@pytest.mark.parametrize("pull", [score, score_async, score_batch, score_batch_async])
@pytest.mark.parametrize("algorithm", ["auto", "kzz", "uniform"])
def test_a_function_of_every_form_gives_the_same_run_on_both_teams(pull, algorithm, left_behind):
    local, threads = (
        ct.identify(MEANS, 2, pull=pull, agents=4, horizon=60, algorithm=algorithm, seed=3, team=team)
        for team in ("local", "threads")
    )
    assert threads == local
    assert threads.ledger == local.ledger
    assert threads.observed.pulls.tolist() == local.observed.pulls.tolist()
    assert left_behind() == []


def test_an_async_function_gives_the_run_of_the_same_function_without_async():
    runs = [ct.identify(MEANS, 1, pull=pull, agents=3, horizon=40, seed=5) for pull in (score, score_async)]
    assert runs[0] == runs[1]


def waiting_for_eight():
    """A pull that is scored only when eight pulls are under way."""
    together = threading.Barrier(8)

    def pull(mean, rng):
        together.wait(30)
        return score(mean, rng)

    return pull


def waiting_for_eight_async():
    under_way, together = [], asyncio.Event()

    async def pull(mean, rng):
        under_way.append(mean)
        if len(under_way) % 8 == 0:
            together.set()
        await asyncio.wait_for(together.wait(), 30)
        return score(mean, rng)

    return pull


@pytest.mark.parametrize("waiting", [waiting_for_eight, waiting_for_eight_async])
def test_eight_agents_pull_at_the_same_time(waiting):
    def run(pull, team):
        return ct.identify(MEANS, 1, pull=pull, agents=8, horizon=40, algorithm="uniform", seed=1, team=team)

    assert run(waiting(), "threads") == run(score, "local")


def test_a_failure_lets_the_others_finish_their_pull_and_no_more(left_behind):
    finished, started = [], threading.Barrier(4)

    def pull(candidate, rng):
        started.wait(5)
        if candidate == "breaks":
            raise RuntimeError("no")
        time.sleep(0.2)
        finished.append(candidate)
        return 0.5

    arms = ct.DatasetArms(
        ["fine", "breaks"],
        [[0], [1], [2], [3]],
        lambda candidate, example: pull("breaks" if example == 2 else candidate, None),
        by_agent=True,
    )
    with pytest.raises(ct.PullError, match=r"pull of candidate 'fine' on .* raised RuntimeError: no"):
        ct.identify(arms, 1, horizon=20, algorithm="uniform", team="threads")
    assert finished == ["fine"] * 3
    assert left_behind() == []


def test_an_interrupt_in_a_thread_ends_the_run():
    def pull(candidate, rng):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ct.identify(["a", "b"], 1, pull=pull, agents=2, horizon=10, team="threads")


def test_a_team_can_be_used_again():
    team = ct.ThreadsTeam()
    runs = [ct.identify(MEANS, 1, pull=score, agents=2, horizon=30, seed=1, team=team) for _ in range(2)]
    assert runs[0] == runs[1]
