"""Which algorithm a run uses: the one asked for, or the best for the kind of arms and what is promised."""

from __future__ import annotations

from typing import Any

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.confident_top import ConfidentTop, ConfidentTopNonIID
from collabtop.algorithms.frugal_top import FrugalTop
from collabtop.algorithms.frugal_top_noniid import FrugalTopNonIID
from collabtop.algorithms.registry import algorithm_options, make_algorithm
from collabtop.arms import Arms
from collabtop.errors import InputError, SettingError


def choose(
    algorithm: str | Algorithm, options: dict[str, Any], arms: Arms, confidence: float | None, tolerance: float
) -> tuple[Algorithm, str]:
    """The algorithm to run, and why."""
    if isinstance(algorithm, Algorithm):
        if options:
            raise InputError("options go with an algorithm's name; this algorithm object has its own")
        if confidence is not None:
            raise InputError("confidence goes with an algorithm's name; this algorithm object has its own options")
        return algorithm, "asked for"
    if not isinstance(algorithm, str):
        raise InputError(f"algorithm is {algorithm!r:.80}, but a name or an algorithm object is needed")
    if algorithm == "auto":
        if options:
            raise InputError(f"options {sorted(options)} need an algorithm: name one")
        return _automatic(arms, confidence, tolerance)
    if confidence is not None:
        make_algorithm(algorithm)  # an unknown name is the first thing to say
        if "confidence" not in algorithm_options(algorithm):
            raise SettingError(
                f"{algorithm} runs to a horizon; confidence works with confident-top, confident-top-noniid, kl-lucb"
            )
        options = {"confidence": confidence, "tolerance": tolerance, **options}
    return make_algorithm(algorithm, **options), "asked for"


def _automatic(arms: Arms, confidence: float | None, tolerance: float) -> tuple[Algorithm, str]:
    if confidence is not None:
        if arms.iid:
            return ConfidentTop(confidence, tolerance), "a confidence was asked for, and all agents see the same arms"
        return ConfidentTopNonIID(confidence, tolerance), "a confidence was asked for, and arms differ between agents"
    if arms.iid:
        return FrugalTop(), "all agents see the same arms: fewest words and round trips, whole horizon spent"
    return FrugalTopNonIID(), "arms differ between agents, so all must pull all: fewest bits, whole horizon spent"
