"""Functions whose t-th pull is the same draw for every candidate: common random numbers, and numbered replicates."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import collabtop as ct
from collabtop.runs.spec import TeamName
from tests.support.untyped import untyped


def noise_of(team: TeamName = "local", agents: int = 3, **more: object) -> dict[float, list[float]]:
    """The first random number of every pull of each candidate."""
    noise: dict[float, list[float]] = defaultdict(list)

    def pull(candidate: float, rng: np.random.Generator) -> bool:
        noise[candidate].append(rng.random())
        return noise[candidate][-1] < candidate

    ct.identify([0.1, 0.5, 0.6], 1, pull=pull, agents=agents, horizon=40, seed=3, team=team, **untyped(more))
    return noise


@pytest.mark.parametrize("team", ["local", "threads"])
@pytest.mark.parametrize("algorithm", ["uniform", "kzz", "kzz-balanced", "frugal-top", "auto"])
def test_paired_candidates_get_the_same_random_numbers_whichever_agent_pulls_them(team, algorithm):
    noise = [set(values) for values in noise_of(team, paired=True, algorithm=algorithm).values()]
    by_number = sorted(noise, key=len)
    assert all(fewer <= more for fewer in by_number for more in by_number if len(fewer) <= len(more))


def test_without_pairing_every_pull_has_random_numbers_of_its_own():
    values = [value for of_candidate in noise_of().values() for value in of_candidate]
    assert len(set(values)) == len(values)


def test_replicates_are_numbered_from_zero_over_all_agents():
    numbers: dict[str, list[int]] = defaultdict(list)

    @ct.replicates
    def pull(candidate: str, replicate: int) -> float:
        numbers[candidate].append(replicate)
        return 0.5

    ct.identify(["a", "b"], 1, pull=pull, agents=4, horizon=10, algorithm="uniform", seed=1)
    assert {candidate: sorted(of_candidate) for candidate, of_candidate in numbers.items()} == {
        "a": list(range(20)),
        "b": list(range(20)),
    }


def test_shared_noise_cancels_out_when_candidates_are_paired():
    # Two candidates whose scores differ by .02, on top of noise with a standard deviation of .2 that they share.
    def pull(candidate: float, rng: np.random.Generator) -> float:
        return float(np.clip(rng.normal(candidate, 0.2), 0, 1))

    def wrong(paired: bool) -> int:
        runs = (ct.identify([0.5, 0.52], 1, pull=pull, agents=1, horizon=60, seed=s, paired=paired) for s in range(40))
        return sum(run.top != ["0.52"] for run in runs)

    assert wrong(paired=True) == 0
    assert wrong(paired=False) >= 5  # about 14 are expected; fewer than 5 in one of 1,000 choices of seeds


def test_a_paired_run_can_be_resumed(tmp_path):
    calls = []

    def pull(candidate: float, rng: np.random.Generator) -> bool:
        calls.append(rng.random())
        if len(calls) == 30:
            raise KeyboardInterrupt
        return calls[-1] < candidate

    def identify(**more: object) -> ct.Result:
        settings = {"agents": 2, "horizon": 40, "seed": 1, "paired": True}
        return ct.identify([0.2, 0.5, 0.8], 1, pull=pull, **untyped(settings | more))

    path = tmp_path / "run.ctlog"
    with pytest.raises(KeyboardInterrupt):
        identify(checkpoint=path)
    assert ct.resume(path, pull=pull) == identify()


def test_batches_cannot_be_paired():
    @ct.batch
    def pull(candidate: float, times: int, rng: np.random.Generator) -> list[float]:
        return [0.5] * times

    with pytest.raises(
        ct.InputError, match="pull is marked with batch, but paired pulls are made one by one"
    ) as caught:
        ct.identify([1, 2], 1, pull=pull, agents=1, horizon=10, paired=True)
    assert caught.value.argument == "pull"


def test_arms_have_their_own_pairing():
    with pytest.raises(ct.InputError, match=r"FunctionArms\(..., paired=...\)") as caught:
        ct.identify(ct.BernoulliArms([0.5, 0.6]), 1, agents=1, horizon=10, paired=True)  # type: ignore[call-overload]
    assert caught.value.argument == "paired"


def test_a_function_of_replicates_has_to_take_a_candidate_and_a_number():
    with pytest.raises(ct.InputError, match=r"callable as pull\(candidate, replicate\)"):
        ct.identify([1, 2], 1, pull=ct.replicates(lambda candidate: 1), agents=1, horizon=10)  # type: ignore[arg-type]
