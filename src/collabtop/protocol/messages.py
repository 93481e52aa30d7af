"""Everything that crosses between the coordinator and an agent. Nothing else does.

===========  ====================================  ==============================  ===================
request      says                                  answer                          used in
===========  ====================================  ==============================  ===================
Deal         the hash's coefficients               Held: size of the hand          collab-top-iid
PullHand     pull all you hold so many times       (told, not asked)               local rounds
Sample       show values around this rank          Values                          CollabSearch
Narrow       show values between these two         Window: where, and the values   CollabSearch
CountTies    where is this value among yours       Tied: how many below, equal     CollabSearch
Border       the means at ranks m_r and m_r + 1    (told, not asked)               local rounds
Cut          keep so many of the smallest gaps     Accepted: how many were good    local rounds
HandOver     hand over what you hold               Hand: arms with their means     after local rounds
Prune        deal by this seed, prune on your own  Hand: arms with their means     frugal-top
Pull         pull these arms so many times         Means: one an arm pulled        all shared rounds
OpenArms     so many arms are open                 (told, not asked)               confident-top
PullOpen     which arms survived; pull them        CoarseMeans: as few bits        frugal-top-noniid
                                                   as their noise deserves
===========  ====================================  ==============================  ===================

A word is paid for each number in a message. What everybody can work out from n, m, K, T and the
algorithm alone (`Problem`) is carried for convenience, and named in `free`: it is not paid for.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from collabtop.protocol.packing import Packed

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Message(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True, tag=True, tag_field="kind"
):
    """One typed message; its class name is its kind."""

    free: tuple[str, ...] = ()
    """Fields that follow from what all know, and so cost no word."""


def kind_of(message: type[Message]) -> str:
    """The kind of a message class: its pinned tag, which the ledger, the wire and logs use.

    >>> kind_of(Deal)
    'Deal'
    """
    return str(message.__struct_config__.tag)


class Deal(Message, frozen=True, tag="Deal"):
    """Work out your hand: the arms that the hash with these coefficients gives you."""

    coefficients: Ints


class Held(Message, frozen=True, tag="Held"):
    """How many arms the agent holds (the paper's |I_r^k|)."""

    size: int


class PullHand(Message, frozen=True, tag="PullHand"):
    """Pull each arm you hold that many times, and order them by their means."""

    times: int


class Sample(Message, frozen=True, tag="Sample"):
    """Show some of your values around the place where rank `rank` of all `total` would be."""

    rank: int
    total: int


class Values(Message, frozen=True, tag="Values"):
    """The values asked for, in ascending order."""

    values: Reals


class Narrow(Message, frozen=True, tag="Narrow"):
    """Show (some of) your values after `low` and up to `high`.

    A place says where the agent's values equal to that bound belong: `TIES_BEFORE` or `TIES_AFTER` it,
    or, for the agent whose own value it is, the number of its values up to it.
    """

    low: float
    low_place: int
    high: float
    high_place: int


TIES_BEFORE = -1
TIES_AFTER = -2


class Window(Message, frozen=True, tag="Window"):
    """The agent's places `start` to `stop` lie between the bounds, with (some of) the values there."""

    start: int
    stop: int
    values: Reals


class CountTies(Message, frozen=True, tag="CountTies"):
    """The border runs through arms that all have this value: how many of yours do?"""

    value: float


class Tied(Message, frozen=True, tag="Tied"):
    """How many of the agent's values are smaller, and how many are equal."""

    below: int
    equal: int


class Border(Message, frozen=True, tag="Border"):
    """The means ranked m_r and m_r + 1, and how many of the agent's arms rank m_r or better."""

    upper: float
    lower: float
    top: int


class Cut(Message, frozen=True, tag="Cut"):
    """Keep that many of your arms, those with the smallest gaps; settle the others."""

    keep: int


class Accepted(Message, frozen=True, tag="Accepted"):
    """How many of the settled arms the agent accepted (the paper's |A_r^k|)."""

    count: int


class HandOver(Message, frozen=True, tag="HandOver"):
    """Hand over the arms you accepted and, if `live`, the ones still open; `used` is the time gone by."""

    live: bool
    used: int


class Prune(Message, frozen=True, tag="Prune"):
    """Take your hand of the shuffle with this seed, prune it stage by stage on your own, hand over the rest.

    In stage j, pull each arm you hold until it has had `pulls[j]`, then keep the best `sizes[j]`.
    """

    seed: int
    sizes: Ints
    pulls: Ints


class Hand(Message, frozen=True, tag="Hand"):
    """The agent's open arms and accepted arms, with their means."""

    arms: Ints
    means: Reals
    accepted: Ints
    accepted_means: Reals


class Pull(Message, frozen=True, tag="Pull"):
    """Pull these arms (None: all) so many times each: one number for all of them, or one an arm."""

    arms: Ints | None
    times: Ints


class Means(Message, frozen=True, tag="Means"):
    """The mean of the pulls just made, for each arm that was pulled at all."""

    means: Reals


class OpenArms(Message, frozen=True, tag="OpenArms"):
    """So many arms are still open, and each is to be pulled so many times."""

    count: int
    times: int


class PullOpen(Message, frozen=True, tag="PullOpen"):
    """Keep the open arms that survived (None: all of them), pull each so many times, send coarse means.

    Rounding may add a share of `coarseness` to the sampling variance of a mean.
    """

    survived: Flags | None
    times: int
    coarseness: float


class CoarseMeans(Message, frozen=True, tag="CoarseMeans"):
    """The means of the pulls just made, in `steps` from 0 to 1 (packed), or exact where noise is no excuse."""

    steps: int
    packed: Packed | None
    exact: Reals | None

    def means(self) -> Reals:
        """The means, as far as they were told."""
        if self.packed is None:
            return np.empty(0) if self.exact is None else self.exact
        return self.packed.unpack() / self.steps


class Request(msgspec.Struct, frozen=True, gc=False):
    """The envelope of a question: what was told since the last one, and last the question itself."""

    agent: int
    number: int
    messages: tuple[Message, ...]


class Reply(msgspec.Struct, frozen=True, gc=False):
    """The envelope of an answer; `pulls` is for the ledger only."""

    agent: int
    number: int
    pulls: int
    answer: Message
