"""What a type checker makes of calls: mypy reads this file, and an error that it does not find is an unused ignore."""

from __future__ import annotations

from typing import assert_type

import numpy as np
import pytest

import collabtop as ct


def by_length(prompt: str, rng: np.random.Generator) -> bool:
    return bool(rng.random() < len(prompt) / 10)


def by_value(mean: float, rng: np.random.Generator) -> float:
    return mean


@ct.batch
def many(mean: float, times: int, rng: np.random.Generator) -> list[float]:
    return [mean] * times


def test_calls_that_work_have_the_types_of_their_results() -> None:
    arms = ct.BernoulliArms([0.1, 0.9])
    assert_type(ct.identify(arms, 1, agents=1, horizon=20, team="threads", on_interrupt="return"), ct.Result)
    assert_type(ct.identify(["a", "bb"], 1, pull=by_length, horizon=20, direction="minimize"), ct.Result)
    assert_type(ct.identify((mean for mean in (0.1, 0.9)), 1, pull=many, horizon=20), ct.Result)
    assert_type(ct.identify({"low": 0.1, "high": 0.9}, 1, pull=by_value, horizon=20), ct.Result)
    with assert_type(ct.start([0.1, 0.9], 1, pull=lambda mean, rng: mean, horizon=20), ct.Run) as run:
        assert run.result().best == 0.9


def test_calls_that_cannot_work_are_errors_of_types_too() -> None:
    arms = ct.BernoulliArms([0.1, 0.9])
    with pytest.raises(ct.InputError):
        ct.identify(arms, 1, agents=1, horizon=20, team="cluster")  # type: ignore[call-overload]
    with pytest.raises(ct.InputError):
        ct.identify(arms, 1, agents=1, horizon=20, on_interrupt="ignore")  # type: ignore[call-overload]
    with pytest.raises(ct.InputError):
        ct.identify(arms, 1, agents=1, horizon=20, direction="minimize")  # type: ignore[call-overload]
    with pytest.raises(ct.InputError):
        ct.identify(["a", "b"], 1, horizon=20)  # type: ignore[call-overload]
    with pytest.raises(ct.InputError):
        ct.start(["a", "b"], 1, pull=by_length, horizon=20, direction="up")  # type: ignore[call-overload]
    with pytest.raises(ct.PullError):
        ct.identify([1, 2], 1, pull=by_length, horizon=20)  # type: ignore[arg-type]
