"""What stands beside a run's words: the cost of the older algorithm, and the order the paper proves."""

from __future__ import annotations

import math
from itertools import accumulate

import msgspec
import numpy as np

from collabtop.arms import BernoulliArms, HeterogeneousArms
from collabtop.errors import InputError
from collabtop.runlog.format import Header
from collabtop.runs.identification import identify


class Rival(msgspec.Struct, frozen=True):
    """What another algorithm costs for as many candidates, agents and time steps, as simulated here."""

    name: str
    time: list[int]
    """Time steps after each of its rounds ..."""
    words: list[int]
    """... and what was said until then."""
    bits: list[int]
    round_trips: list[int]
    trouble: str | None = None
    """Why there is none."""


class Order(msgspec.Struct, frozen=True):
    """The paper's bound on words, without the constant that it leaves open."""

    words: int
    formula: str


def rival_of(header: Header) -> Rival:
    """Simulate `kzz` (for arms that differ between agents, the paper's `collab-top-noniid`) at the run's size.

    What it says does not depend on the rewards but for a round more or less, so means spread evenly stand for them.

    >>> from collabtop.runs.checkpoint import make_header
    >>> from collabtop.runs.spec import make_spec
    >>> header = make_header(make_spec(BernoulliArms(np.full(588, 0.5)), 8, agents=10, horizon=300_000, seed=7))
    >>> rival_of(header).words[-1]
    17540
    """
    name = "kzz" if header.iid else "collab-top-noniid"
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
        return Rival(name, [], [], [], [], str(error))
    rounds = result.rounds
    return Rival(
        name,
        list(accumulate(one.time for one in rounds)),
        list(accumulate(one.words for one in rounds)),
        list(accumulate(one.bits for one in rounds)),
        list(accumulate(one.round_trips for one in rounds)),
    )


def order_of(header: Header) -> Order:
    """The order of words that the paper proves for its own algorithm.

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
