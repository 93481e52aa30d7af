"""All messages between the coordinator and an agent. Nothing else is sent.

===========  =====================================  ===============================  ===================
request      content                                answer                           used in
===========  =====================================  ===============================  ===================
Deal         coefficients of the hash               Held: size of the hand           collab-top-iid
PullHand     pull every arm of the hand             (no answer)                      local rounds
Sample       send values around this rank           Values                           CollabSearch
Narrow       send values between these two          Window: positions and values     CollabSearch
Border       the values at ranks m_r and m_r + 1    (no answer)                      local rounds
Cut          keep the arms with the smallest gaps   Accepted: how many are accepted  local rounds
HandOver     send the rest of the hand              Hand: arms with their means      after local rounds
TimeUsed     time steps of the local rounds         (no answer)                      schedule "full"
Prune        deal by this seed, prune locally       Hand: arms with their means      frugal-top
Pull         pull these arms                        Means: one per arm pulled        all shared rounds
OpenArms     the number of open arms                (no answer)                      confident-top
SendSquares  answer Pull with Moments from now on:   (no answer)                      confident-top
             means, and mean squares
PullOpen     which arms survived; pull them         CoarseMeans: means rounded       frugal-top-noniid
                                                    according to their noise
Bill         send what your pulls were charged      Charged: their cost so far       top-up rounds
===========  =====================================  ===============================  ===================

Each number in a message costs one word. Fields that follow from n, m, K, T and the algorithm (`Problem`), or from
what the agent was sent before, are sent for convenience only: they are listed in `free` and cost nothing.

The kind of a message is free if it follows from the same. If it does not, it tells the agent something. The sender
then lists the kinds that were possible in `chosen_from`, and the choice costs one word.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from collabtop.protocol.packing import Packed

# As NDArray[...] was defined before NumPy 2.5, where it is an alias that msgspec does not understand.
Ints = np.ndarray[tuple[Any, ...], np.dtype[np.int64]]
Reals = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]
Flags = np.ndarray[tuple[Any, ...], np.dtype[np.bool_]]


class Message(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    forbid_unknown_fields=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    tag=True,
    tag_field="kind",
):
    """The base class of messages; the tag of a subclass is its kind."""

    free: tuple[str, ...] = ()
    """Fields that follow from what the agent knows, and therefore cost no word."""
    chosen_from: tuple[str, ...] = ()
    """All kinds that could have been sent instead, and this one, if the choice depends on data or chance."""


def kind_of(message: type[Message]) -> str:
    """The kind of a message class: its pinned tag, which the ledger, the wire and logs use.

    >>> kind_of(Deal)
    'Deal'
    """
    return str(message.__struct_config__.tag)


def is_extension_kind(message: type[Message]) -> bool:
    """Whether a message class belongs to an extension, whose kinds are the extension's name, a point and a word.

    >>> is_extension_kind(Deal)
    False
    """
    return "." in kind_of(message)


def kinds_of(*messages: type[Message]) -> tuple[str, ...]:
    """The kinds of several message classes, for `Message.chosen_from`.

    >>> kinds_of(PullHand, HandOver)
    ('PullHand', 'HandOver')
    """
    return tuple(kind_of(message) for message in messages)


class Deal(Message, frozen=True, tag="Deal"):
    """Compute your hand: the arms that the hash with these coefficients deals to you."""

    coefficients: Ints


class Held(Message, frozen=True, tag="Held"):
    """How many arms the agent holds (the paper's |I_r^k|)."""

    size: int


class PullHand(Message, frozen=True, tag="PullHand"):
    """Pull each arm of your hand `times` times, and sort them by their perturbed means."""

    times: int


class Sample(Message, frozen=True, tag="Sample"):
    """Send some of your values around the position that corresponds to rank `rank` of all `total` values."""

    rank: int
    total: int


class Values(Message, frozen=True, tag="Values"):
    """The requested values, in ascending order."""

    values: Reals


class Narrow(Message, frozen=True, tag="Narrow"):
    """Send (some of) your values after `low` and up to `high`.

    `low_place` and `high_place` state how the agent's values equal to the bound are ordered: `TIES_BEFORE` or
    `TIES_AFTER` it. The agent that sent the bound gets the number of its values up to it instead.
    """

    low: float
    low_place: int
    high: float
    high_place: int


TIES_BEFORE = -1
TIES_AFTER = -2


class Window(Message, frozen=True, tag="Window"):
    """The agent's positions `start` to `stop` lie between the bounds; `values` are (some of) the values there."""

    start: int
    stop: int
    values: Reals


class Border(Message, frozen=True, tag="Border"):
    """The perturbed means ranked m_r and m_r + 1, and how many of the agent's arms rank m_r or better."""

    upper: float
    lower: float
    top: int


class Cut(Message, frozen=True, tag="Cut"):
    """Keep the `keep` arms with the smallest gaps, and settle the others."""

    keep: int


class Accepted(Message, frozen=True, tag="Accepted"):
    """How many of the settled arms the agent accepted (the paper's |A_r^k|)."""

    count: int


class HandOver(Message, frozen=True, tag="HandOver"):
    """Send the arms you accepted and, if `live`, those still open."""

    live: bool


class TimeUsed(Message, frozen=True, tag="TimeUsed"):
    """The local rounds took `time` time steps: with this, an agent can compute the pulls of the shared rounds."""

    time: int


class Prune(Message, frozen=True, tag="Prune"):
    """Take your hand from the shuffle with this seed, prune it in stages, and send what remains.

    In stage j, pull each remaining arm until it has `pulls[j]` pulls, then keep the best `sizes[j]`.
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
    """Pull these arms (None: all); `times` has one number per arm, or a single number for all of them.

    `starts` is the number of each arm's first of these pulls, counted over all agents; None unless arms are paired.
    """

    arms: Ints | None
    times: Ints
    starts: Ints | None = None


class SendSquares(Message, frozen=True, tag="SendSquares"):
    """From now on, send a mean square with every mean: answer `Pull` with `Moments`.

    If arms are paired, it is that of (1 + x - average) / 2 - 1/2, with the average over all arms that are pulled on the
    same example. Otherwise, it is that of the rewards x.
    """


class Means(Message, frozen=True, tag="Means"):
    """The means of the pulls just made, one per arm that was pulled."""

    means: Reals


class Moments(Message, frozen=True, tag="Moments"):
    """The means of the pulls just made and their mean squares, after `SendSquares`."""

    means: Reals
    squares: Reals


class OpenArms(Message, frozen=True, tag="OpenArms"):
    """`count` arms are still open, and each is pulled `times` times."""

    count: int
    times: int


class PullOpen(Message, frozen=True, tag="PullOpen"):
    """Keep the open arms that survived (None: all), pull each of them `times` times, and send rounded means.

    Rounding may add a share `coarseness` to the sampling variance of a mean.
    """

    survived: Flags | None
    times: int
    coarseness: float


class CoarseMeans(Message, frozen=True, tag="CoarseMeans"):
    """The means of the pulls just made: rounded to `steps` steps from 0 to 1 (packed), or exact if without noise.

    The steps are even, or `arcsine`: narrower near 0 and 1, where means of 0/1 rewards have less noise.
    """

    steps: int
    arcsine: bool
    packed: Packed | None
    exact: Reals | None
    packed_squares: Packed | None = None
    """After `SendSquares`: the mean squares, in the same form as the means: as numbers of steps ..."""
    exact_squares: Reals | None = None
    """... or as they are."""

    def squares(self) -> Reals | None:
        """The mean squares, if they were requested."""
        return self.exact_squares if self.packed_squares is None else self.packed_squares.unpack() / self.steps

    def means(self) -> Reals:
        """The means, rounded or exact."""
        if self.packed is None:
            return np.empty(0) if self.exact is None else self.exact
        return self._means_of(self.packed.unpack())

    def _means_of(self, numbers: Ints) -> Reals:
        return arcsine_levels(numbers, self.steps) if self.arcsine else numbers / self.steps

    @staticmethod
    def all_means(answers: "Sequence[CoarseMeans]") -> "list[Reals]":
        """The means of several answers; those with the same steps are unpacked together."""
        means: dict[int, Reals] = {}
        rows_by_form: dict[tuple[int, int, int, bool], list[tuple[int, Packed]]] = {}
        for row, answer in enumerate(answers):
            if answer.packed is None:
                means[row] = answer.means()
            else:
                form = answer.packed.count, answer.packed.width, answer.steps, answer.arcsine
                rows_by_form.setdefault(form, []).append((row, answer.packed))
        for rows in rows_by_form.values():
            numbers = Packed.unpack_rows([packed for _, packed in rows])
            first, _ = rows[0]
            means.update(zip([row for row, _ in rows], answers[first]._means_of(numbers), strict=True))
        return [means[row] for row in range(len(answers))]


def arcsine_levels(numbers: Ints | Reals, steps: Reals | int) -> Reals:
    """The means at these numbers of steps on the arcsine scale, on which 0/1 rewards of all means are equally noisy.

    >>> arcsine_levels(np.array([0, 1, 2, 3]), steps=3).round(2)
    array([0.  , 0.25, 0.75, 1.  ])
    """
    levels: Reals = np.sin(numbers * (np.pi / 2 / steps)) ** 2
    return levels


class Bill(Message, frozen=True, tag="Bill"):
    """Send what your pulls were charged so far."""


class Charged(Message, frozen=True, tag="Charged"):
    """What the agent's pulls were charged so far."""

    cost: float


class Request(msgspec.Struct, frozen=True, gc=False):
    """A request to one agent: the messages since the last one; the last of them is the question."""

    agent: int
    number: int
    messages: tuple[Message, ...]


class Reply(msgspec.Struct, frozen=True, gc=False):
    """The reply of one agent; `pulls` is the number of pulls made for it."""

    agent: int
    number: int
    pulls: int
    answer: Message
