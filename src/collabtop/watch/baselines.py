"""Baselines for a run's words: the simulated cost of a baseline algorithm, and the order of the paper's bound."""

import math
from itertools import accumulate

import msgspec
import numpy as np

from collabtop.arms import BernoulliArms, HeterogeneousArms
from collabtop.errors import InputError
from collabtop.runlog.format import Header
from collabtop.runs.identification import identify
from collabtop.runs.replay import too_large


class Baseline(msgspec.Struct, frozen=True):
    """The cost of a baseline algorithm with the same n, m, K and T, simulated."""

    name: str
    time: list[int]
    """Time steps after each of its rounds; the lists below hold what it has sent by then."""
    words: list[int]
    bits: list[int]
    round_trips: list[int]
    error: str | None = None
    """Why the algorithm cannot run at this size; the lists are empty then."""


class Order(msgspec.Struct, frozen=True):
    """The order of the paper's bound on words. The paper states it without a constant."""

    words: int
    formula: str


def baseline_of(header: Header) -> Baseline:
    """Simulate `kzz` (for non-IID arms, the paper's `collab-top-noniid`) with the run's n, m, K and T.

    The words that these algorithms send hardly depend on the rewards, so evenly spaced means are used.

    >>> from collabtop.runs.checkpoint import make_header
    >>> from collabtop.runs.spec import make_spec
    >>> header = make_header(make_spec(BernoulliArms(np.full(588, 0.5)), 8, agents=10, horizon=300_000, seed=7))
    >>> baseline_of(header).words[-1]
    17540
    """
    name = "kzz" if header.iid else "collab-top-noniid"
    if (problem := too_large(header)) is not None:
        return Baseline(name, [], [], [], [], problem)
    means = np.linspace(0.2, 0.8, header.n)
    try:
        result = identify(
            BernoulliArms(means) if header.iid else HeterogeneousArms(np.tile(means[:, None], (1, header.agents))),
            header.m,
            agents=header.agents,
            horizon=header.horizon,
            algorithm=name,
            seed=header.seed,
        )
    except InputError as error:
        return Baseline(name, [], [], [], [], str(error))
    return Baseline(
        name,
        list(accumulate(summary.time for summary in result.rounds)),
        list(accumulate(summary.words for summary in result.rounds)),
        list(accumulate(summary.bits for summary in result.rounds)),
        list(accumulate(summary.round_trips for summary in result.rounds)),
    )


def order_of(header: Header) -> Order:
    """The order of the words that the paper proves for its own algorithm.

    >>> from collabtop.runs.checkpoint import make_header
    >>> from collabtop.runs.spec import make_spec
    >>> header = make_header(make_spec(BernoulliArms(np.full(588, 0.5)), 8, agents=10, horizon=300_000, seed=7))
    >>> order_of(header)
    Order(words=854, formula='K log2(n)^2 + m')
    """
    log = math.log2(max(2, header.n))
    if header.iid:
        return Order(round(header.agents * log**2 + header.m), "K log2(n)^2 + m")
    return Order(round(header.agents * header.n * log), "K n log2(n)")
