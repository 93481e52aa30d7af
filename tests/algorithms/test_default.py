"""Which algorithm runs: the requested one, or the default for the arms and the kind of limit."""

from __future__ import annotations

import pytest

import collabtop as ct
from collabtop.algorithms.default import choose

IID = ct.BernoulliArms([0.9, 0.5, 0.1])
MIXED = ct.HeterogeneousArms([[0.9, 0.1], [0.6, 0.8], [0.2, 0.2]])


@pytest.mark.parametrize(
    ("arms", "confidence", "chosen", "why"),
    [
        (IID, None, "frugal-top", "all agents see the same arms"),
        (MIXED, None, "frugal-top-noniid", "arms differ between agents"),
        (IID, 0.9, "confident-top", "confidence is given, and all agents see the same arms"),
        (MIXED, 0.9, "confident-top-noniid", "confidence is given, and arms differ between agents"),
    ],
)
def test_auto_depends_on_the_arms_and_on_confidence(arms, confidence, chosen, why):
    algorithm, reason = choose("auto", {}, arms, confidence, 0.0)
    assert algorithm.title == chosen
    assert why in reason


def test_a_result_has_the_chosen_algorithm_and_the_reason():
    result = ct.identify(IID, 1, agents=2, horizon=300, seed=1)
    assert (result.algorithm, result.confidence, result.sure) == ("frugal-top", None, None)
    assert "fewest words" in result.why
    sure = ct.identify(MIXED, 1, confidence=0.9, seed=1)
    assert (sure.algorithm, sure.confidence, sure.sure) == ("confident-top-noniid", 0.9, True)
    assert ct.identify(IID, 1, agents=2, horizon=300, algorithm="kzz").why == "requested"


def test_confidence_and_tolerance_reach_an_algorithm_that_was_named():
    algorithm, _ = choose("kl-lucb", {}, IID, 0.8, 0.1)
    assert isinstance(algorithm, ct.KLLUCB)
    assert (algorithm.confidence, algorithm.tolerance) == (0.8, 0.1)
    with pytest.raises(
        ct.SettingError, match="'kzz', which runs to a horizon, but confidence needs one of confident-top, conf"
    ):
        choose("kzz", {}, IID, 0.8, 0.0)
    with pytest.raises(ct.UnknownAlgorithmError):
        choose("confident", {}, IID, 0.8, 0.0)
    with pytest.raises(ct.InputError, match="this algorithm object has its own options"):
        choose(ct.ConfidentTop(), {}, IID, 0.8, 0.0)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "give exactly one of horizon, budget and confidence: none was given"),
        ({"horizon": 100, "confidence": 0.9}, "give exactly one of .*: horizon and confidence were given"),
        ({"horizon": 100, "max_horizon": 1_000}, "max_horizon= only applies with confidence="),
        ({"horizon": 100, "tolerance": 0.1}, "tolerance= only applies with confidence="),
    ],
)
def test_exactly_one_of_horizon_and_confidence_is_given(more, message):
    with pytest.raises(ct.InputError, match=message):
        ct.identify(IID, 1, agents=2, **more)
