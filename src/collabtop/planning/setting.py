"""What a plan is for: the arms, the problem, and the algorithms that fit."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from numpy.typing import ArrayLike

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.batched_sar import BatchedSAR
from collabtop.algorithms.collab_top_iid import CollabTopIID
from collabtop.algorithms.collab_top_noniid import CollabTopNonIID
from collabtop.algorithms.confident_top import ConfidentTop, ConfidentTopNonIID
from collabtop.algorithms.fed_elim import FedElim
from collabtop.algorithms.frugal_top import FrugalTop
from collabtop.algorithms.frugal_top_noniid import FrugalTopNonIID
from collabtop.algorithms.hkk import HKK
from collabtop.algorithms.kzz import KZZ
from collabtop.algorithms.nsar import NSAR
from collabtop.algorithms.registry import make_algorithm
from collabtop.algorithms.sar import SAR
from collabtop.algorithms.sequential_halving import SequentialHalving
from collabtop.algorithms.tzz import TZZ
from collabtop.algorithms.uniform import Uniform
from collabtop.arms import BernoulliArms, HeterogeneousArms, SimulatedArms
from collabtop.datasets import equal_gaps
from collabtop.errors import InputError, SettingError
from collabtop.privacy import NoiseScale, Privacy
from collabtop.problem import Problem, as_means
from collabtop.runs.spec import check_private
from collabtop.validation import real_number, whole_number, wrong_value

_COUNTS = {"round_trips": "trips", "rounds": "rounds"}


def full_title(algorithm: str, options: Mapping[str, Any]) -> str:
    """The name of an algorithm, with its schedule or its number of rounds if it has one.

    >>> full_title("collab-top-iid", {"schedule": "full"}), full_title("frugal-top", {"round_trips": None})
    ('collab-top-iid, full', 'frugal-top')
    """
    counts = [f"{options[name]} {unit}" for name, unit in _COUNTS.items() if options.get(name)]
    detail = ", ".join([options["schedule"]] if options.get("schedule") else counts)
    return f"{algorithm}, {detail}" if detail else algorithm


def with_noise(problem: Problem, privacy: Privacy | None) -> Problem:
    """The problem with the noise of a run with this privacy, for simulations."""
    if privacy is None:
        return problem
    scale = NoiseScale.of(privacy, problem.n, problem.horizon)
    return msgspec.structs.replace(problem, noise=scale.deviation)


def named_algorithms(
    algorithms: Sequence[str | Algorithm], arms: SimulatedArms, problem: Problem, privacy: Privacy | None = None
) -> list[Algorithm]:
    """The algorithms with these names, if they fit."""
    listed = [algorithms] if isinstance(algorithms, str | Algorithm) else algorithms
    chosen = [make_algorithm(entry) if isinstance(entry, str) else entry for entry in listed]
    if not chosen:
        raise InputError("algorithms is empty: name at least one, or omit it", argument="algorithms")
    for algorithm in chosen:
        algorithm.check(problem)
        if privacy is not None:
            check_private(algorithm, argument="algorithms")
        if algorithm.iid_only and not arms.iid:
            raise SettingError(
                f"{algorithm.title} needs arms that are the same for all agents, but these means differ",
                argument="algorithms",
            )
    return chosen


def all_that_fit(
    arms: SimulatedArms, problem: Problem, error: float, privacy: Privacy | None = None
) -> list[Algorithm]:
    """The algorithms to compare for these arms."""
    iid = [
        FrugalTop(),
        CollabTopIID(),
        CollabTopIID("full"),
        KZZ(),
        KZZ(balanced=True),
        BatchedSAR(),
        TZZ(),
        HKK(),
        Uniform(),
    ]
    mixed = [FrugalTopNonIID(), CollabTopNonIID(), CollabTopNonIID("full"), Uniform()]
    confident: list[Algorithm] = [ConfidentTop(1 - error)]
    if not arms.iid:
        confident = [ConfidentTopNonIID(1 - error), FedElim(1 - error)]
    alone = [SAR(), NSAR(), SequentialHalving()] if arms.iid else []
    tried: list[Algorithm] = [*(iid if arms.iid else mixed), *alone, *confident]
    possible = [algorithm for algorithm in tried if algorithm.private or privacy is None]
    return [algorithm for algorithm in possible if _fits(algorithm, problem)]


def _fits(algorithm: Algorithm, problem: Problem) -> bool:
    try:
        algorithm.check(problem)
    except SettingError:
        return False
    return True


def planned_arms(
    n: int | None, m: int | None, agents: int | None, gap: float | None, means: ArrayLike | None
) -> tuple[SimulatedArms, Problem, str]:
    """The arms to plan for, the problem (its horizon is to be found), and what to call the arms."""
    if (gap is None) == (means is None):
        given = "both were given" if gap is not None else "neither was given"
        raise InputError(f"give exactly one of gap and means: {given}")
    if means is None:
        if n is None:
            raise InputError("n is missing: a gap does not tell the number of arms", argument="n")
        n = whole_number("n", n, least=2)
        m = wanted_below(m, n)
        arms: SimulatedArms = equal_gaps(n, m, real_number("gap", gap))
        instance = f"equal gaps of {gap:g}, the hardest arms with that gap"
    else:
        values = means.means if isinstance(means, SimulatedArms) else as_means(means)
        weights = means.weights if isinstance(means, SimulatedArms) else None
        arms = HeterogeneousArms(values, weights=weights) if values.ndim == 2 else BernoulliArms(values)
        if n is not None and n != arms.n:
            raise wrong_value("n", n, f"there are {arms.n} means (n may be None)")
        m = wanted_below(m, arms.n)
        instance = "the means given"
    if agents is None:
        agents = arms.agents
    if agents is None:
        raise InputError("agents is missing: give the number of agents", argument="agents")
    if arms.agents not in (None, agents):
        raise wrong_value("agents", agents, f"the means are for {arms.agents} agents")
    agents = whole_number("agents", agents, least=1)
    return arms, Problem(arms.n, m, agents, horizon=1, weights=arms.weights), instance


def wanted_below(m: Any, n: int) -> int:
    """How many arms are wanted, if that is fewer than there are."""
    if m is None:
        raise InputError("m is missing: how many of the best are wanted?", argument="m")
    m = whole_number("m", m, least=1)
    if m >= n:
        raise wrong_value("m", m, f"at most {n - 1} of {n} arms can be planned for")
    return int(m)
