"""The algorithm of a run: the requested one, or the default for these arms and this kind of limit."""

from typing import Any

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.collab_top_noniid import CollabTopNonIID
from collabtop.algorithms.confident_top import ConfidentTop, ConfidentTopNonIID
from collabtop.algorithms.frugal_top import FrugalTop
from collabtop.algorithms.frugal_top_noniid import FrugalTopNonIID
from collabtop.algorithms.kzz import KZZ
from collabtop.algorithms.paired_top import PairedTop
from collabtop.algorithms.registry import algorithms_where, make_algorithm
from collabtop.algorithms.robust_top import RobustTop
from collabtop.arms import Arms
from collabtop.errors import InputError, SettingError
from collabtop.validation import whole_number, wrong_value


def choose(
    algorithm: str | Algorithm,
    options: dict[str, Any],
    arms: Arms,
    confidence: float | None,
    tolerance: float,
    *,
    robust: int = 0,
    private: bool = False,
    messages_are_free: bool = False,
) -> tuple[Algorithm, str]:
    """The algorithm to run, and the reason for it."""
    if robust:
        return _robust(robust, algorithm, confidence)
    if isinstance(algorithm, Algorithm):
        if options:
            raise InputError(
                "options only applies to an algorithm given by name; this algorithm object has its own",
                argument="options",
            )
        if confidence is not None:
            raise InputError(
                "confidence only applies to an algorithm given by name; this algorithm object has its own options",
                argument="confidence",
            )
        return algorithm, "requested"
    if not isinstance(algorithm, str):
        raise wrong_value("algorithm", algorithm, "a name or an algorithm object is needed")
    if algorithm == "auto":
        if options:
            raise InputError(
                f"options has {sorted(options)}, but algorithm is 'auto': name the algorithm that they are for",
                argument="options",
            )
        if private and confidence is None:
            return _private(arms)
        return _automatic(arms, confidence, tolerance, messages_are_free=messages_are_free)
    if confidence is not None:
        if not make_algorithm(algorithm).stops_early:
            raise SettingError(
                f"algorithm is {algorithm!r}, which runs to a horizon, but confidence needs one of "
                f"{', '.join(algorithms_where(stops_early=True))}",
                argument="algorithm",
            )
        options = {"confidence": confidence, "tolerance": tolerance, **options}
    return make_algorithm(algorithm, **options), "requested"


def _robust(liars: int, algorithm: str | Algorithm, confidence: float | None) -> tuple[Algorithm, str]:
    """The algorithm for agents of which some may lie."""
    whole_number("robust", liars, least=0)
    if confidence is not None:
        raise InputError(
            "robust= only applies with horizon= or budget=: no confidence holds if agents lie", argument="robust"
        )
    if algorithm not in ("auto", RobustTop.name):
        raise InputError(
            f"robust= only applies with algorithm='auto' or {RobustTop.name!r}, but algorithm is {algorithm!r}",
            argument="robust",
        )
    return RobustTop(liars=liars), f"up to {liars} of the agents may lie, so extreme means are left out"


def _private(arms: Arms) -> tuple[Algorithm, str]:
    """The algorithm for runs with differential privacy: each batch of an arm adds noise, so they should be few."""
    if arms.iid:
        return KZZ(balanced=True), "privacy adds noise to each batch, and it has few and large ones"
    return CollabTopNonIID("full"), "privacy adds noise to each batch, and every agent has few and large ones"


def _automatic(
    arms: Arms, confidence: float | None, tolerance: float, *, messages_are_free: bool
) -> tuple[Algorithm, str]:
    """The default algorithm, and the reason for it."""
    if confidence is not None:
        if arms.iid:
            return ConfidentTop(confidence, tolerance), "confidence is given, and all agents see the same arms"
        return ConfidentTopNonIID(confidence, tolerance), "confidence is given, and arms differ between agents"
    if arms.iid and arms.paired and messages_are_free:
        return PairedTop(), (
            "candidates are compared on the same examples, and messages are free on one machine, so it takes many "
            "small steps"
        )
    if arms.iid:
        return FrugalTop(), "all agents see the same arms; it takes the fewest words and round trips"
    return FrugalTopNonIID(), "arms differ between agents, so every agent pulls every arm; it takes the fewest bits"
