"""What an agent may be asked and may answer, given what crossed before: both sides look, and believe nothing else.

A coordinator checks every answer against its question: lengths, ranges, counts that can be, pulls within the
horizon, arms that the agent was really dealt; and in a search against its earlier answers. A site checks every
question before its agent sees it: what it says, and whether it is its turn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from collabtop.errors import ProtocolError
from collabtop.problem import Problem
from collabtop.protocol import hashing, sampling, shuffling
from collabtop.protocol.messages import (
    TIES_AFTER,
    TIES_BEFORE,
    Accepted,
    Border,
    CoarseMeans,
    CountTies,
    Cut,
    Deal,
    Hand,
    HandOver,
    Held,
    Ints,
    Means,
    Message,
    Narrow,
    OpenArms,
    Prune,
    Pull,
    PullHand,
    PullOpen,
    Reals,
    Reply,
    Request,
    Sample,
    Tied,
    Values,
    Window,
)
from collabtop.teams.sites.sorted_values import SortedValues

_MOST_COEFFICIENTS = 1_000
_MOST_STAGES = 100_000
_NO_ARMS = np.empty(0, np.int64)


class PublicState:
    """What both sides know of an agent from the messages that crossed, kept by each for itself.

    >>> state = PublicState(0, Problem(n=4, m=1, agents=2, horizon=20))
    >>> request = Request(0, 1, (Pull(None, np.array([3])),))
    >>> state.check_request(request)
    >>> state.check_reply(request, Reply(0, 1, 12, Means(np.array([0.5, 0.25, 1.0, 0.0]))))
    >>> state.check_reply(request, Reply(0, 1, 12, Means(np.array([0.5, 0.25, 1.5, 0.0]))))
    Traceback (most recent call last):
        ...
    collabtop.errors.ProtocolError: a mean or value lies outside [0, 1]
    """

    def __init__(self, agent: int, problem: Problem) -> None:
        self.agent, self._problem = agent, problem
        self.last = 0
        """Number of the last request that was answered."""
        self.answers = 0
        """Requests answered so far."""
        self.made = 0
        """Pulls made so far."""
        self._hand: Ints = _NO_ARMS  # what the agent was dealt, settled or not
        self._held = 0
        self._accepted = 0
        self._open: int | None = None  # None: all arms
        self._pulls = 0  # pulls of each arm held
        self._in_order: Literal["none", "means", "gaps"] = "none"
        """What the agent has in order, of each arm held: nothing yet (or of more arms), their means, their gaps."""
        self._told: SortedValues | None = None
        """What the agent told of these; None: nothing yet."""
        self._top = 0  # how many of the arms held the last border calls good
        self._pruned_hand: tuple[Ints, int] = _NO_ARMS, 0
        """What `Prune` deals is a hand of its own: the arms of the last one, and how many were handed over."""

    # -- questions

    def check_request(self, request: Request) -> None:
        """Refuse what no coordinator would ask at this point."""
        _need(request.agent == self.agent, "a request to another agent")
        _need(request.number > self.last, "a request that was answered long ago")
        _need(0 < len(request.messages) <= 16, "a request of no or too many messages")
        *told, question = request.messages
        _need(type(question) in _ANSWERS, "a request that asks nothing")
        # How many arms a cut accepted is known from its answer alone, and every hand is checked against that.
        _need(not any(isinstance(message, Cut) for message in told), "a cut whose answer nobody waits for")
        trial = self._copy()
        for message in request.messages:
            check = _QUESTIONS.get(type(message))
            if check is None:
                raise ProtocolError(f"{type(message).__name__} is no question")
            check(trial, message)
        _need(trial.made <= self._problem.horizon, "pulls past the horizon")

    def _copy(self) -> PublicState:
        twin = PublicState(self.agent, self._problem)
        vars(twin).update(vars(self))
        return twin

    def _deal(self, message: Deal) -> None:
        coefficients = message.coefficients
        _need(0 < len(coefficients) <= _MOST_COEFFICIENTS, "a hash of no or too many coefficients")
        _need(_within(coefficients, 0, hashing.PRIME - 1), "a coefficient outside of the field")
        p = self._problem
        self._hand = hashing.hand(coefficients, p.n, p.agents, self.agent)
        self._held, self._pulls, self._accepted = len(self._hand), 0, 0
        self._in_order = "none"

    def _pull_hand(self, message: PullHand) -> None:
        _need(message.times >= 0, "a negative number of pulls")
        self.made += message.times * self._held
        self._pulls += message.times
        _need(self._pulls > 0, "means of arms that were never pulled")
        self._in_order, self._told = "means", None

    def _sample(self, message: Sample) -> None:
        self._need_values()
        _need(0 < message.rank < message.total, "a rank outside of what there is")

    def _narrow(self, message: Narrow) -> None:
        self._need_values()
        for place in (message.low_place, message.high_place):
            _need(TIES_AFTER <= place <= self._held, "a place that the agent does not have")

    def _count_ties(self, message: CountTies) -> None:
        self._need_values()

    def _need_values(self) -> None:
        _need(self._in_order != "none", "values of arms that were not pulled since they were dealt or cut")

    def _border(self, message: Border) -> None:
        _need(self._in_order == "means", "a border between arms that were not pulled since the last one")
        _need(math.isfinite(message.upper) and math.isfinite(message.lower), "no border")
        _need(0 <= message.top <= self._held, "a count that cannot be")
        self._in_order, self._told, self._top = "gaps", None, message.top

    def _cut(self, message: Cut) -> None:
        _need(self._in_order == "gaps", "a cut without a border")
        _need(0 <= message.keep <= self._held, "a count that cannot be")
        self._held, self._in_order = message.keep, "none"

    def _hand_over(self, message: HandOver) -> None:
        _need(self._pulls > 0, "means of arms that were never pulled")

    def _prune(self, message: Prune) -> None:
        sizes, pulls = message.sizes, message.pulls
        _need(0 < len(sizes) == len(pulls) <= _MOST_STAGES, "stages that do not fit together")
        _need(message.seed >= 0 and _within(sizes, 0, self._problem.n), "a size or seed that cannot be")
        _need(int(pulls[0]) >= 1 and bool((np.diff(pulls) >= 0).all()), "pulls that become fewer")
        hand = shuffling.hand(message.seed, self._problem.n, self._problem.agents, self.agent)
        held, so_far = len(hand), 0
        for size, total in zip(sizes.tolist(), pulls.tolist(), strict=True):
            self.made += held * (total - so_far)
            held, so_far = min(held, size), total
        self._pruned_hand = hand, held

    def _pull(self, message: Pull) -> None:
        arms, times = message.arms, message.times
        count = self._problem.n if arms is None else len(arms)
        _need(len(times) in (1, count), "not one number of pulls an arm")
        _need(_within(times, 0, self._problem.horizon), "a number of pulls that cannot be")
        if arms is not None:
            _need(_within(arms, 0, self._problem.n - 1) and _distinct(arms), "arms that are none, or the same twice")
        self.made += int(np.broadcast_to(times, count).sum())

    def _open_arms(self, message: OpenArms) -> None:
        _need(0 <= message.count <= self._problem.n and message.times >= 0, "a count that cannot be")

    def _pull_open(self, message: PullOpen) -> None:
        now = self._problem.n if self._open is None else self._open
        if message.survived is not None:
            _need(len(message.survived) == now, "flags of another number of arms than are open")
            now = int(np.count_nonzero(message.survived))
        _need(message.times >= 1 and 0 <= message.coarseness < 1, "pulls or rounding that cannot be")
        self._open = now
        self.made += now * message.times

    # -- answers

    def check_reply(self, request: Request, reply: Reply) -> None:
        """Refuse what no honest agent would answer to this request, and take in what it changes."""
        question, answer = request.messages[-1], reply.answer
        _need(reply.agent == self.agent == request.agent, "an answer for another agent")
        _need(reply.number == request.number, "an answer to another request")
        _need(answer.free == (), "an answer that calls its numbers free")
        expected, check = _ANSWERS[type(question)]
        _need(type(answer) is expected, f"{type(answer).__name__} is no answer to {type(question).__name__}")
        after = self._copy()
        for message in request.messages[:-1]:
            _QUESTIONS[type(message)](after, message)
        held_before = after._held
        _QUESTIONS[type(question)](after, question)
        _need(reply.pulls == after.made - self.made, "another number of pulls than was asked for")
        check(after, question, answer)
        if isinstance(answer, Accepted):
            _need(answer.count <= held_before - after._held, "more accepted arms than were settled")
            _need(answer.count <= after._top, "more accepted arms than are good")
            _need(after._top - answer.count <= after._held, "more good arms kept than were to be kept")
        vars(self).update(vars(after))
        self.last = request.number
        self.answers += 1

    def _held_reply(self, question: Deal, answer: Held) -> None:
        _need(answer.size == self._held, "another number of arms than were dealt")

    def _values(self, question: Sample, answer: Values) -> None:
        places = sampling.around(question.rank, question.total, self._held)
        _need(len(answer.values) == len(places), "more or fewer values than were asked for")
        _ordered(answer.values)
        self._told = self._known().shown(places, answer.values)

    def _known(self) -> SortedValues:
        return SortedValues(self._held) if self._told is None else self._told

    def _window(self, question: Narrow, answer: Window) -> None:
        _need(0 <= answer.start <= answer.stop <= self._held, "places that the agent does not have")
        places = sampling.between(answer.start, answer.stop)
        _need(len(answer.values) == len(places), "more or fewer values than were asked for")
        _ordered(answer.values)
        if len(places):
            inside = question.low <= answer.values[0] and answer.values[-1] <= question.high
            _need(bool(inside), "values outside of the window")
        known = self._known().shown(places, answer.values)
        for asked, bound, told in (
            (question.low_place, question.low, answer.start),
            (question.high_place, question.high, answer.stop),
        ):
            _need(asked < 0 or told == asked, "another place than was asked for")
            if asked < 0:
                known = known.split(told, bound, equal_below=asked == TIES_BEFORE)
        self._told = known

    def _tied(self, question: CountTies, answer: Tied) -> None:
        below, up_to = answer.below, answer.below + answer.equal
        _need(0 <= below <= up_to <= self._held, "ties that cannot be")
        known = self._known().split(below, question.value, equal_below=False)
        self._told = known.split(up_to, question.value, equal_below=True)

    def _cut_reply(self, question: Cut, answer: Accepted) -> None:
        _need(answer.count >= 0, "a count that cannot be")
        self._accepted += answer.count

    def _hand_reply(self, question: HandOver, answer: Hand) -> None:
        self._check_hand(answer, self._hand, self._held if question.live else 0, self._accepted)

    def _pruned(self, question: Prune, answer: Hand) -> None:
        hand, left = self._pruned_hand
        self._check_hand(answer, hand, left, 0)

    def _check_hand(self, answer: Hand, hand: Ints, live: int, accepted: int) -> None:
        _need(len(answer.arms) == len(answer.means) == live, "another number of arms than it holds")
        _need(len(answer.accepted) == len(answer.accepted_means) == accepted, "another number of accepted arms")
        named = np.concatenate([answer.arms, answer.accepted])
        _need(_distinct(named) and bool(np.isin(named, hand).all()), "arms that the agent was not dealt")
        _in_range(answer.means)
        _in_range(answer.accepted_means)

    def _means(self, question: Pull, answer: Means) -> None:
        count = self._problem.n if question.arms is None else len(question.arms)
        pulled = int(np.count_nonzero(np.broadcast_to(question.times, count)))
        _need(len(answer.means) == pulled, "more or fewer means than arms pulled")
        _in_range(answer.means)

    def _coarse(self, question: PullOpen, answer: CoarseMeans) -> None:
        if answer.packed is None:
            _need(answer.steps == 0 and answer.exact is not None, "no means, or means told twice")
            means = answer.means()
            _need(len(means) == self._open, "more or fewer means than arms pulled")
            _in_range(means)
            return
        _need(answer.exact is None and answer.steps >= 1, "no means, or means told twice")
        _need(answer.packed.count == self._open, "more or fewer means than arms pulled")
        _need(answer.packed.width == max(1, answer.steps.bit_length()), "numbers packed in another way")
        _in_range(answer.means())


def _need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ProtocolError(otherwise)


def _within(numbers: Ints, low: int, high: int) -> bool:
    return not len(numbers) or bool(numbers.min() >= low and numbers.max() <= high)


def _distinct(numbers: Ints) -> bool:
    return len(np.unique(numbers)) == len(numbers)


def _in_range(means: Reals) -> None:
    # NaN is in no range, so it fails this too.
    _need(bool(((means >= 0) & (means <= 1)).all()), "a mean or value lies outside [0, 1]")


def _ordered(values: Reals) -> None:
    _in_range(values)
    _need(bool((np.diff(values) >= 0).all()), "values out of order")


_QUESTIONS: dict[type[Message], Callable[[PublicState, Any], None]] = {
    Deal: PublicState._deal,
    PullHand: PublicState._pull_hand,
    Sample: PublicState._sample,
    Narrow: PublicState._narrow,
    CountTies: PublicState._count_ties,
    Border: PublicState._border,
    Cut: PublicState._cut,
    HandOver: PublicState._hand_over,
    Prune: PublicState._prune,
    Pull: PublicState._pull,
    OpenArms: PublicState._open_arms,
    PullOpen: PublicState._pull_open,
}

_ANSWERS: dict[type[Message], tuple[type[Message], Callable[[PublicState, Any, Any], None]]] = {
    Deal: (Held, PublicState._held_reply),
    Sample: (Values, PublicState._values),
    Narrow: (Window, PublicState._window),
    CountTies: (Tied, PublicState._tied),
    Cut: (Accepted, PublicState._cut_reply),
    HandOver: (Hand, PublicState._hand_reply),
    Prune: (Hand, PublicState._pruned),
    Pull: (Means, PublicState._means),
    PullOpen: (CoarseMeans, PublicState._coarse),
}
