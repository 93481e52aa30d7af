"""Validation of requests and answers, given the messages before them. Both sides use it and trust nothing else.

A coordinator checks every answer against its request: lengths, ranges, counts, pulls within the horizon, arms that the
agent was dealt, and in a search also against earlier answers. A site checks every request before its agent sees it:
its content, and whether it is in order.
"""

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from collabtop.errors import ProtocolError
from collabtop.problem import Problem
from collabtop.protocol import hashing, sampling, shuffling
from collabtop.protocol import messages as msg
from collabtop.protocol.extension import extension_of
from collabtop.protocol.messages import Ints, Message, Reals, Reply, Request, kind_of
from collabtop.teams.sites.pull_counts import PullCounts, distinct, need, pull_counts, within
from collabtop.teams.sites.sorted_values import SortedValues

_MOST_COEFFICIENTS = 1_000
_MOST_STAGES = 100_000
_ROUNDING = 1e-9
_NO_ARMS = np.empty(0, np.int64)


class PublicState:
    """What the messages so far reveal about an agent. Each side keeps its own copy.

    >>> state = PublicState(0, Problem(n=4, m=1, agents=2, horizon=20))
    >>> request = Request(0, 1, (msg.Pull(None, np.array([3])),))
    >>> state.check_request(request)
    >>> state.check_reply(request, Reply(0, 1, 12, msg.Means(np.array([0.5, 0.25, 1.0, 0.0]))))
    >>> state.check_reply(request, Reply(0, 1, 12, msg.Means(np.array([0.5, 0.25, 1.5, 0.0]))))
    Traceback (most recent call last):
        ...
    collabtop.errors.ProtocolError: a mean or value outside [0, 1]
    """

    def __init__(self, agent: int, problem: Problem, margin: float = 0.0) -> None:
        self.agent, self._problem = agent, problem
        self._margin = margin
        """By how much the noise of privacy may move a sum out of its range."""
        self.last_request = 0
        """Number of the last request that was answered."""
        self.answers = 0
        """Requests answered so far."""
        self.total_pulls = 0
        """Pulls made so far."""
        self._hand: Ints = _NO_ARMS
        """The arms that the agent was dealt, settled or not."""
        self._held = 0
        """How many of them are not settled."""
        self._accepted = 0
        """How many of them it accepted."""
        self._open: int | None = None
        """How many arms are open in the rounds of `PullOpen`; None: all."""
        self._pulls = 0
        """Pulls of each held arm."""
        self._sorted: Literal["none", "means", "gaps"] = "none"
        """What the agent has sorted: nothing since the last deal or cut, or the means or gaps of the held arms."""
        self._bounds: SortedValues | None = None
        """What the agent revealed about the sorted values; None: nothing yet."""
        self._top = 0
        """How many of the held arms are above the last border."""
        self._sends_squares = False
        """Whether it was asked to send squares with means."""
        self._counts = PullCounts(0, 0, 0)
        """What the last `Pull` asked for."""
        self._pruned_hand: tuple[Ints, int] = _NO_ARMS, 0
        """The separate hand that the last `Prune` dealt, and how many of its arms were handed over."""

    # -- requests

    def check_request(self, request: Request) -> None:
        """Raise `ProtocolError` if no coordinator would send this request now."""
        need(request.agent == self.agent, "a request for a different agent")
        need(request.number > self.last_request, "a request that was answered before")
        need(0 < len(request.messages) <= 16, "a request with no messages or too many")
        *instructions, question = request.messages
        need(_answer_kind(type(question)) is not None, "a request without a question")
        # Only its answer tells how many arms a cut accepted, and every hand is checked against that number.
        need(not any(isinstance(message, msg.Cut) for message in instructions), "a cut without an answer")
        trial = self._copy()
        for message in request.messages:
            trial._add_request(message)
        need(trial.total_pulls <= self._problem.horizon, "pulls beyond the horizon")

    def _add_request(self, message: Message) -> None:
        """Check a message to the agent, and update the state by it."""
        check, extension = _QUESTIONS.get(type(message)), extension_of(type(message))
        if check is not None:
            check(self, message)
        elif extension is not None:  # how many pulls it takes is known from the reply
            extension.check(message, self._problem)
        else:
            raise ProtocolError(f"{kind_of(type(message))} is not a request")

    def _copy(self) -> "PublicState":
        twin = PublicState.__new__(PublicState)
        vars(twin).update(vars(self))
        return twin

    def _deal(self, message: msg.Deal) -> None:
        coefficients = message.coefficients
        need(0 < len(coefficients) <= _MOST_COEFFICIENTS, "a hash with no coefficients or too many")
        need(within(coefficients, 0, hashing.PRIME - 1), "a coefficient outside the field")
        p = self._problem
        self._hand = hashing.hand(coefficients, p.n, p.agents, self.agent)
        self._held, self._pulls, self._accepted = len(self._hand), 0, 0
        self._sorted = "none"

    def _pull_hand(self, message: msg.PullHand) -> None:
        need(message.times >= 0, "a negative number of pulls")
        self.total_pulls += message.times * self._held
        self._pulls += message.times
        need(self._pulls > 0, "means of arms that were never pulled")
        self._sorted, self._bounds = "means", None

    def _sample(self, message: msg.Sample) -> None:
        self._need_values()
        need(0 < message.rank < message.total, "a rank out of range")

    def _narrow(self, message: msg.Narrow) -> None:
        self._need_values()
        for position in (message.low_place, message.high_place):
            need(msg.TIES_AFTER <= position <= self._held, "a position out of range")

    def _need_values(self) -> None:
        need(self._sorted != "none", "values of arms that were not pulled since the last deal or cut")

    def _border(self, message: msg.Border) -> None:
        need(self._sorted == "means", "a border of arms that were not pulled since the last border")
        need(math.isfinite(message.upper) and math.isfinite(message.lower), "a border that is not finite")
        need(0 <= message.top <= self._held, "a count out of range")
        self._sorted, self._bounds, self._top = "gaps", None, message.top

    def _cut(self, message: msg.Cut) -> None:
        need(self._sorted == "gaps", "a cut without a border")
        need(0 <= message.keep <= self._held, "a count out of range")
        self._held, self._sorted = message.keep, "none"

    def _hand_over(self, message: msg.HandOver) -> None:
        need(self._pulls > 0, "means of arms that were never pulled")

    def _prune(self, message: msg.Prune) -> None:
        sizes, pulls = message.sizes, message.pulls
        need(0 < len(sizes) == len(pulls) <= _MOST_STAGES, "no stages, too many, or of different lengths")
        need(message.seed >= 0 and within(sizes, 0, self._problem.n), "a size or seed out of range")
        need(int(pulls[0]) >= 1 and bool((np.diff(pulls) >= 0).all()), "pulls in decreasing order")
        hand = shuffling.hand(message.seed, self._problem.n, self._problem.agents, self.agent)
        held, before = len(hand), 0
        for size, total in zip(sizes.tolist(), pulls.tolist(), strict=True):
            self.total_pulls += held * (total - before)
            held, before = min(held, size), total
        self._pruned_hand = hand, held

    def _pull(self, message: msg.Pull) -> None:
        self._counts = pull_counts(message, self._problem)
        self.total_pulls += self._counts.pulls

    def _open_arms(self, message: msg.OpenArms) -> None:
        need(0 <= message.count <= self._problem.n and message.times >= 0, "a count out of range")

    def _send_squares(self, message: msg.SendSquares) -> None:
        self._sends_squares = True

    def _check_squares(self, means: Reals, squares: Reals | None) -> None:
        """Mean squares come with means after `SendSquares`, and are possible for these means."""
        if not self._sends_squares:
            need(squares is None, "squares that were not requested")
            return
        need(squares is not None and len(squares) == len(means), "a different number of squares than of means")
        assert squares is not None
        least, most = (0.0, 0.25) if self._problem.paired else (means**2, means)
        possible = (squares >= least - _ROUNDING) & (squares <= most + _ROUNDING)
        need(bool((possible & (squares >= 0) & (squares <= 1)).all()), "squares out of range")

    def _time_used(self, message: msg.TimeUsed) -> None:
        need(0 <= message.time <= self._problem.horizon, "a time out of range")

    def _pull_open(self, message: msg.PullOpen) -> None:
        count = self._problem.n if self._open is None else self._open
        if message.survived is not None:
            need(len(message.survived) == count, "flags for a different number of arms than are open")
            count = int(np.count_nonzero(message.survived))
        need(message.times >= 1 and 0 <= message.coarseness < 1, "pulls or coarseness out of range")
        self._open = count
        self.total_pulls += count * message.times

    # -- answers

    def check_reply(self, request: Request, reply: Reply) -> None:
        """Raise `ProtocolError` if no honest agent would give this answer, else update the state."""
        question, answer = request.messages[-1], reply.answer
        need(reply.agent == self.agent == request.agent, "an answer for a different agent")
        need(reply.number == request.number, "an answer to a different request")
        need(answer.free == answer.chosen_from == (), "an answer that marks its numbers as free")
        before = dict(vars(self))
        try:
            self._add_reply(request, question, reply)
        except BaseException:
            vars(self).update(before)
            raise
        self.last_request = request.number
        self.answers += 1

    def _add_reply(self, request: Request, question: Message, reply: Reply) -> None:
        """Check a reply, and update the state by the request and the reply; after an error, it may be half updated."""
        answer, pulls_before = reply.answer, self.total_pulls
        for message in request.messages[:-1]:
            self._add_request(message)
        expected = _answer_kind(type(question))
        if expected is msg.Means and self._sends_squares:
            expected = msg.Moments
        if type(answer) is not expected:
            raise ProtocolError(f"{type(answer).__name__} is not an answer to {type(question).__name__}")
        held_before = self._held
        self._add_request(question)
        self._check_pulls(request, reply.pulls, self.total_pulls - pulls_before)
        if (extension := extension_of(type(question))) is not None:
            extension.check_answer(question, answer, self._problem)
        else:
            _ANSWERS[type(question)][1](self, question, answer)
        if isinstance(answer, msg.Accepted):
            need(answer.count <= held_before - self._held, "more accepted arms than were settled")
            need(answer.count <= self._top, "more accepted arms than are above the border")
            need(self._top - answer.count <= self._held, "too few accepted arms for those above the border")

    def _check_pulls(self, request: Request, made: int, requested: int) -> None:
        """Check the pulls made for a request; for messages of extensions only the most is known."""
        if made == requested:
            return
        extended = [(extension_of(type(message)), message) for message in request.messages]
        most = sum(kind.most_pulls(message, self._problem) for kind, message in extended if kind is not None)
        need(requested <= made <= requested + most, "a different number of pulls than requested")
        self.total_pulls += made - requested
        need(self.total_pulls <= self._problem.horizon, "pulls beyond the horizon")

    def _held_reply(self, question: msg.Deal, answer: msg.Held) -> None:
        need(answer.size == self._held, "a different number of arms than dealt")

    def _values(self, question: msg.Sample, answer: msg.Values) -> None:
        positions = sampling.around(question.rank, question.total, self._held)
        need(len(answer.values) == len(positions), "a different number of values than requested")
        self._ordered(answer.values)
        self._bounds = self._current_bounds().with_values(positions, answer.values)

    def _current_bounds(self) -> SortedValues:
        return SortedValues(self._held) if self._bounds is None else self._bounds

    def _window(self, question: msg.Narrow, answer: msg.Window) -> None:
        need(0 <= answer.start <= answer.stop <= self._held, "positions out of range")
        positions = sampling.between(answer.start, answer.stop)
        need(len(answer.values) == len(positions), "a different number of values than requested")
        self._ordered(answer.values)
        if len(positions):
            inside = question.low <= answer.values[0] and answer.values[-1] <= question.high
            need(bool(inside), "values outside the window")
        bounds = self._current_bounds().with_values(positions, answer.values)
        for asked, bound, answered in (
            (question.low_place, question.low, answer.start),
            (question.high_place, question.high, answer.stop),
        ):
            need(asked < 0 or answered == asked, "a different position than requested")
            if asked < 0:
                bounds = bounds.with_split(answered, bound, equal_below=asked == msg.TIES_BEFORE)
        self._bounds = bounds

    def _cut_reply(self, question: msg.Cut, answer: msg.Accepted) -> None:
        need(answer.count >= 0, "a count out of range")
        self._accepted += answer.count

    def _hand_reply(self, question: msg.HandOver, answer: msg.Hand) -> None:
        self._check_hand(answer, self._hand, self._held if question.live else 0, self._accepted)

    def _pruned(self, question: msg.Prune, answer: msg.Hand) -> None:
        hand, left = self._pruned_hand
        batches = np.count_nonzero(np.diff(question.pulls, prepend=0))
        self._check_hand(answer, hand, left, 0, slack=self._margin * batches / int(question.pulls[-1]))

    def _check_hand(self, answer: msg.Hand, hand: Ints, live: int, accepted: int, slack: float = 0.0) -> None:
        need(len(answer.arms) == len(answer.means) == live, "a different number of arms than held")
        need(
            len(answer.accepted) == len(answer.accepted_means) == accepted,
            "a different number of accepted arms than before",
        )
        named = np.concatenate([answer.arms, answer.accepted])
        need(
            distinct(named) and bool(np.isin(named, hand).all()), "repeated arms, or arms that the agent was not dealt"
        )
        self._in_range(answer.means, slack)
        self._in_range(answer.accepted_means)

    def _means(self, question: msg.Pull, answer: msg.Means | msg.Moments) -> None:
        counts = self._counts
        need(len(answer.means) == counts.arms, "a different number of means than arms pulled")
        self._in_range(answer.means, self._margin / counts.fewest)
        self._check_squares(answer.means, answer.squares if isinstance(answer, msg.Moments) else None)

    def _coarse(self, question: msg.PullOpen, answer: msg.CoarseMeans) -> None:
        if answer.packed is None:
            is_exact = answer.steps == 0 and not answer.arcsine and answer.exact is not None
            need(is_exact, "no means, or means in both forms")
            means = answer.means()
            need(len(means) == self._open, "a different number of means than arms pulled")
            self._in_range(means)
            need(answer.packed_squares is None, "squares in a different form than means")
            self._check_squares(means, answer.exact_squares)
            return
        need(self._problem.bounded, "rounded means of rewards without bounds")
        need(answer.exact is None and answer.steps >= 1, "no means, or means in both forms")
        need(answer.packed.count == self._open, "a different number of means than arms pulled")
        need(answer.packed.width == max(1, answer.steps.bit_length()), "numbers packed with the wrong width")
        need(within(answer.packed.unpack(), 0, answer.steps), "a mean or value outside [0, 1]")
        need(answer.exact_squares is None, "squares in a different form than means")
        if answer.packed_squares is not None:
            numbers = answer.packed_squares
            need(numbers.count == self._open, "a different number of squares than of means")
            need(numbers.width == answer.packed.width and not answer.arcsine, "numbers packed with the wrong width")
            need(within(numbers.unpack(), 0, answer.steps), "squares out of range")
        self._check_squares(answer.means(), answer.squares())

    def _in_range(self, values: Reals, slack: float = 0.0) -> None:
        # NaN fails these comparisons too.
        if self._problem.bounded:
            if not within(values, -slack, 1 + slack):
                raise ProtocolError("a mean or value outside [0, 1]" + (", with noise" if slack else ""))
        else:
            need(bool(np.isfinite(values).all()), "a mean or value that is not finite")

    def _ordered(self, values: Reals) -> None:
        self._in_range(values)
        need(bool((np.diff(values) >= 0).all()), "values out of order")


def _answer_kind(question: type[Message]) -> type[Message] | None:
    """The kind of the answer to a question; None if it has none."""
    extension = extension_of(question)
    if extension is not None:
        return extension.messages[question]
    return _ANSWERS[question][0] if question in _ANSWERS else None


_QUESTIONS: dict[type[Message], Callable[[PublicState, Any], None]] = {
    msg.Deal: PublicState._deal,
    msg.PullHand: PublicState._pull_hand,
    msg.Sample: PublicState._sample,
    msg.Narrow: PublicState._narrow,
    msg.Border: PublicState._border,
    msg.Cut: PublicState._cut,
    msg.HandOver: PublicState._hand_over,
    msg.Prune: PublicState._prune,
    msg.Pull: PublicState._pull,
    msg.OpenArms: PublicState._open_arms,
    msg.SendSquares: PublicState._send_squares,
    msg.TimeUsed: PublicState._time_used,
    msg.PullOpen: PublicState._pull_open,
}

_ANSWERS: dict[type[Message], tuple[type[Message], Callable[[PublicState, Any, Any], None]]] = {
    msg.Deal: (msg.Held, PublicState._held_reply),
    msg.Sample: (msg.Values, PublicState._values),
    msg.Narrow: (msg.Window, PublicState._window),
    msg.Cut: (msg.Accepted, PublicState._cut_reply),
    msg.HandOver: (msg.Hand, PublicState._hand_reply),
    msg.Prune: (msg.Hand, PublicState._pruned),
    msg.Pull: (msg.Means, PublicState._means),
    msg.PullOpen: (msg.CoarseMeans, PublicState._coarse),
}
