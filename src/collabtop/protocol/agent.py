"""An agent: a state machine that pulls arms and answers the coordinator's requests."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from collabtop.arms import Arms, Draws
from collabtop.arms.base import Recorder
from collabtop.arms.draws import AgentHalted, RewardsMissing
from collabtop.errors import ProtocolError
from collabtop.privacy import Noise
from collabtop.problem import Problem, opposite, squares_of_opposite
from collabtop.protocol import hashing, sampling, shuffling
from collabtop.protocol import messages as msg
from collabtop.protocol.batches import Batches
from collabtop.protocol.extension import AgentExtension, extension_of
from collabtop.protocol.messages import Flags, Ints, Message, Reals, Reply, Request
from collabtop.protocol.open_arms import OpenArms, all_arms, halves
from collabtop.protocol.pruning import prune
from collabtop.protocol.rounding import with_squares
from collabtop.protocol.setup import Setup
from collabtop.protocol.ties import perturbed, random_order, sort

CheckDraw = Callable[[int, int, Ints, Ints], None]
"""Called before a draw with the agent, the number of its first pull, the arms and the times; may raise an error."""

_FEW_ARMS = 32
_NO_ARMS = np.empty(0, np.int64)
_NO_REALS = np.empty(0)
_NO_FLAGS = np.empty(0, np.bool_)


def _total(times: Ints) -> int:
    # For the few arms of a late round, summing in Python is faster than in NumPy.
    return sum(times.tolist()) if len(times) < _FEW_ARMS else int(np.add.reduce(times))


class Agent:
    """One of the K agents: pulls arms, keeps its hand private, and answers the coordinator.

    >>> from collabtop.arms import BernoulliArms
    >>> from collabtop.problem import Problem
    >>> from collabtop.protocol.messages import Request
    >>> agent = Agent(0, BernoulliArms([1.0, 0.0]), Setup(Problem(n=2, m=1, agents=1, horizon=8), seed=1))
    >>> agent.answer(Request(0, 1, (msg.Pull(None, np.array([4])),)))
    Reply(agent=0, number=1, pulls=8, answer=Means(means=array([1., 0.])))
    """

    def __init__(
        self,
        number: int,
        arms: Arms,
        setup: Setup,
        recorder: Recorder | None = None,
        check_draw: CheckDraw | None = None,
        *,
        batches: Batches | None = None,
        noise: Noise | None = None,
        least_squares: int = 0,
    ) -> None:
        self.number = number
        self._least_squares = least_squares  # the squares of smaller batches are sent as if they were unknown
        scale = setup.noise_scale
        if noise is None and scale is not None:
            noise = Noise(scale, scale.margin, setup.seed, number)
        self._noise = noise
        self._examples_used = np.zeros(arms.n if noise is not None and noise.scale.once else 0, np.int64)
        self.batches = batches or Batches(arms.n)
        """All batches of pulls so far (mirrored if the run is), which agents of the same team may share."""
        self._arms, self._recorder, self._check_draw = arms, recorder or Recorder(), check_draw
        self._problem = setup.problem
        self._most_pulls = setup.problem.horizon + setup.extra_pulls
        self._mirrored = setup.mirrored
        self.draws = Draws(setup.seed, number, setup.prices)
        """The agent's source of randomness, and what it has pulled."""
        self._last: Reply | None = None
        # `_keys` are the values that are searched, in ascending order: the means of the hand without ties, later their
        # gaps. `_order` is the index in the hand of each key, `_is_top` whether that arm is above the border.
        self._hand, self._sums, self._pulls = _NO_ARMS, _NO_REALS, 0
        self._means, self._keys, self._order = _NO_REALS, _NO_REALS, _NO_ARMS
        self._is_top: Flags = _NO_FLAGS
        self._accepted: list[tuple[Ints, Reals]] = []
        self.open_arms: OpenArms | None = None
        """The arms that `PullOpen` has left open; None: all."""
        self._own_limit = arms.pull_limit_of(number)
        if self._own_limit is not None:
            self._own_pulls, self._own_sums = np.zeros(arms.n, np.int64), np.zeros(arms.n)
        self._squares: Reals | None = None  # of the last draw, one sum per arm, if known
        self.sends_squares = False
        """Whether this agent answers `Pull` with `Moments`."""
        self._extensions: dict[type[AgentExtension], AgentExtension] = {}

    def answer(self, request: Request) -> Reply:
        """Process the messages of a request and return the reply; a repeated request gets the same reply."""
        if self._last is not None and not self.is_new(request):
            if self._last.number > request.number:
                raise ProtocolError(f"agent {self.number} has answered requests later than request {request.number}")
            return self._last
        pulls_before = self.draws.pulls_made
        answer: Message | None = None
        for message in request.messages:
            if self._noise is not None and type(message) not in PRIVATE_MESSAGES:
                raise ProtocolError(f"{msg.kind_of(type(message))} has no noise, so it is not answered with privacy")
            handler = _HANDLERS.get(type(message))
            answer = handler(self, message) if handler is not None else self._handle_by_extension(message)
        if answer is None:
            raise ProtocolError(f"request {request.number} to agent {self.number} contains no question")
        return self.reply(request, self.draws.pulls_made - pulls_before, answer)

    def is_new(self, request: Request) -> bool:
        """Whether this agent has not replied to the request yet."""
        return self._last is None or self._last.number < request.number

    def reply(self, request: Request, pulls: int, answer: Message) -> Reply:
        """Reply to a request with this answer, for which `pulls` pulls were made."""
        self._last = Reply(self.number, request.number, pulls, answer)
        return self._last

    # -- what an extension uses (`AgentAccess`)

    @property
    def problem(self) -> Problem:
        """The n, m, K and T of the run."""
        return self._problem

    @property
    def rng(self) -> np.random.Generator:
        """The agent's source of randomness."""
        return self.draws.bulk

    def pull(self, arms: Ints, times: Ints, starts: Ints | int = 0) -> Reals:
        """Pull each of `arms` `times` times, and return the sums; `starts` are the numbers of the first pulls."""
        return self._draw(arms, times, starts)

    def _handle_by_extension(self, message: Message) -> Message | None:
        kind = extension_of(type(message))
        if kind is None:
            raise ProtocolError(
                f"agent {self.number} does not understand {msg.kind_of(type(message))}: register the extension that "
                "handles it where the agent runs"
            )
        if kind not in self._extensions:
            self._extensions[kind] = kind(self)
        answer, expected = self._extensions[kind].handle(message), kind.messages[type(message)]
        if type(answer) is not (expected or type(None)):
            wanted = "no answer" if expected is None else expected.__name__
            raise ProtocolError(f"{kind.__name__} handles {type(message).__name__} with {answer!r}, not with {wanted}")
        return answer

    def halt(self) -> None:
        """Stop after the current pull; may be called from any thread."""
        self.draws.halted.set()

    def _draw(self, arms: Ints, times: Ints, starts: Ints | int = 0) -> Reals:
        """Pull the arms and return their sums; `starts` are the numbers of the first pulls, for paired arms."""
        if self._own_limit is not None:
            return self._draw_within_limit(arms, np.broadcast_to(times, arms.shape), self._own_limit)
        if self._problem.numbered:
            self.draws.starts = np.broadcast_to(np.asarray(starts), arms.shape)
        return self._draw_all(arms, times)

    def _draw_parts(self, arms: Ints, parts: Sequence[tuple[int, Ints | int]]) -> list[tuple[Reals, Reals | None]]:
        """Pull the arms for each part (times, and numbers of the first pulls), and return its sums and squares.

        If rewards are missing, those of all parts are requested, since none depends on another.
        """
        drawn: list[tuple[Reals, Reals | None]] = []
        for times, starts in parts:
            with suppress(RewardsMissing):
                sums = self._draw(arms, np.array([times]), starts)
                drawn.append((sums, self._squares))
        if len(drawn) < len(parts):
            raise RewardsMissing
        return drawn

    def _draw_within_limit(self, arms: Ints, times: Ints, limit: int) -> Reals:
        # Once an arm has been scored on all examples of this agent, its mean is exact, and takes the place of rewards.
        made = np.minimum(times, limit - self._own_pulls[arms])
        left, new, squares = made > 0, np.zeros(len(arms)), np.zeros(len(arms))
        self._own_pulls[arms] += made
        if left.any():
            new[left] = self._draw_all(arms[left], made[left])
            squares[left] = np.nan if self._squares is None else self._squares
        self._own_sums[arms] += new
        exact_means: Reals = self._own_sums[arms] / self._own_pulls[arms]
        self._squares = squares + (times - made) * exact_means**2
        return new + (times - made) * exact_means

    def _draw_all(self, arms: Ints, times: Ints) -> Reals:
        count = _total(times) * (len(arms) if len(times) == 1 else 1)
        draws = self.draws
        self.check_horizon(count)
        if draws.is_halted:
            raise AgentHalted
        draws.squares = None
        if self._check_draw is not None:
            self._check_draw(self.number, draws.pulls_made, arms, times)
        if len(self._examples_used):
            self._use_examples(arms, times)
        first = draws.pulls_made
        try:
            sums = self._arms.pull_recorded(arms, times, draws, self._recorder)
        except RewardsMissing:  # pulls that do not depend on these rewards are requested as well
            draws.pulls_made += count
            raise
        draws.pulls_made += count
        squares = draws.squares
        if squares is not None and self._least_squares:
            squares = np.where(times < self._least_squares, np.nan, squares)
        if self._mirrored:
            if squares is not None:
                squares = squares_of_opposite(squares, sums, times, bounded=self._problem.bounded)
            sums = opposite(sums, times, bounded=self._problem.bounded)
        if self._noise is not None:  # before anything is decided or sent
            sums, squares = self._noise.add(sums, times, first), None
        self._squares = squares
        self.batches.append((arms, times, sums, squares))
        return sums

    def check_horizon(self, count: int) -> None:
        """Raise `ProtocolError` if this agent has no time for `count` more pulls."""
        if self.draws.pulls_made + count > self._most_pulls:
            raise ProtocolError(f"agent {self.number} was asked to pull past the horizon")

    def _use_examples(self, arms: Ints, times: Ints) -> None:
        """With privacy of examples: check that no arm is scored on an example twice."""
        first = np.array(self.draws.next_pulls(arms), np.int64)
        after, limit = first + times, self._own_limit or self._arms.pull_limit
        if (first < self._examples_used[arms]).any() or limit is None or (after > limit).any():
            raise ProtocolError("an example would be used twice for a candidate, which privacy of examples forbids")
        self._examples_used[arms] = after

    def _pull(self, message: msg.Pull) -> msg.Means | msg.Moments:
        arms = all_arms(self._problem.n) if message.arms is None else message.arms
        times, starts = message.times, 0 if message.starts is None else message.starts
        if np.count_nonzero(times) < len(times):
            pulled = np.broadcast_to(times > 0, arms.shape)
            starts = np.broadcast_to(np.asarray(starts), arms.shape)[pulled]
            arms, times = arms[pulled], times[times > 0]
        if self.sends_squares and self._problem.paired:
            return self._compare(arms, times, np.broadcast_to(np.asarray(starts), arms.shape))
        means = self._draw(arms, times, starts) / times
        if not self.sends_squares:
            return msg.Means(means)
        if self._squares is None:  # of rewards seen only as sums, an upper bound
            return msg.Moments(means, np.clip(means, means**2, means))
        squares = self._squares / times
        return msg.Moments(means, np.clip(np.where(np.isnan(squares), means, squares), means**2, means))

    def _send_squares(self, message: msg.SendSquares) -> None:
        self.sends_squares = True

    def _compare(self, arms: Ints, times: Ints, starts: Ints) -> msg.Moments:
        """Pull the arms one example after the other, and send how far they are from the average on each."""
        sums, squares = np.zeros(len(arms)), np.zeros(len(arms))
        for rewards, _ in self._draw_parts(arms, [(1, starts + number) for number in range(int(times[0]))]):
            sums += rewards
            squares += ((rewards - rewards.mean()) / 2) ** 2
        return msg.Moments(sums / times, squares / times)

    def _bill(self, message: msg.Bill) -> msg.Charged:
        return msg.Charged(self.draws.charged)

    def _open_arms(self, message: msg.OpenArms | msg.TimeUsed) -> None:
        """Do nothing: the counts determine the number of pulls, which every `Pull` states anyway."""

    def _pull_open(self, message: msg.PullOpen) -> msg.CoarseMeans:
        open_arms = self.open_arms = self.open_arms or OpenArms(self._problem.n, agents=1)
        open_arms.keep(message.survived)
        start, times = self._problem.share(self.number, message.times, open_arms.pulls)
        open_arms.pulls += message.times * self._problem.agents
        if not self._problem.bounded:  # means without bounds are not rounded
            means = self._draw(open_arms.arms, np.array([times]), start) / times
            return msg.CoarseMeans(0, False, None, means)
        counts = halves(times)
        drawn = self._draw_parts(open_arms.arms, list(zip(counts, (start, start + counts[0]), strict=False)))
        parts = [part[np.newaxis] for part, _ in drawn]
        [answer] = open_arms.answers(parts, counts, message.coarseness, [self.draws.bulk])
        if not self.sends_squares:
            return answer
        known = [squares for _, squares in drawn if squares is not None]
        squares = np.add.reduce(known) if len(known) == len(drawn) else None
        return with_squares(answer, np.add.reduce([sums for sums, _ in drawn]), squares, times)

    def _deal(self, message: msg.Deal) -> msg.Held:
        self._hand = hashing.hand(message.coefficients, self._problem.n, self._problem.agents, self.number)
        self._sums, self._pulls, self._accepted = np.zeros(len(self._hand)), 0, []
        return msg.Held(len(self._hand))

    def _pull_hand(self, message: msg.PullHand) -> None:
        if message.times:  # there are no pulls if all examples have been used
            self._sums = self._sums + self._draw(self._hand, np.array([message.times]), self._pulls)
        self._pulls += message.times
        self._means = self._sums / self._pulls
        self._perturb()

    def _perturb(self) -> None:
        # Anew in each round, so that the order of equal arms does not depend on the order in an earlier round. Sorted
        # means are perturbed, in which equal arms are in random order. So what is sent does not depend on the numbers
        # of the arms, not even for a coordinator that knows the seed.
        rng = self.draws.bulk
        self._order = random_order(self._sums, rng)
        self._keys = perturbed(self._means[self._order], rng, bounded=self._problem.bounded)
        sort(self._keys)

    def _sample(self, message: msg.Sample) -> msg.Values:
        return msg.Values(self._keys[sampling.around(message.rank, message.total, len(self._keys))])

    def _narrow(self, message: msg.Narrow) -> msg.Window:
        start = self._position(message.low, message.low_place)
        stop = self._position(message.high, message.high_place)
        return msg.Window(start, stop, self._keys[sampling.between(start, stop)])

    def _position(self, bound: float, place: int) -> int:
        if place >= 0:
            return place
        return int(self._keys.searchsorted(bound, "right" if place == msg.TIES_BEFORE else "left"))

    def _border(self, message: msg.Border) -> None:
        below = len(self._hand) - message.top
        gaps = np.concatenate((message.upper - self._keys[:below], self._keys[below:] - message.lower))
        nearest = gaps.argsort(kind="stable")  # of two sorted runs, which a stable sort merges
        order, self._keys, self._is_top = self._order[nearest], gaps[nearest], nearest >= below
        if len(order) > 1 and self._keys[0] == self._keys[1] and order[0] > order[1]:
            # The two arms next to the border have the same gap: the first in the hand comes first.
            order[:2], self._is_top[:2] = order[1::-1].copy(), self._is_top[1::-1].copy()
        self._order = order

    def _cut(self, message: msg.Cut) -> msg.Accepted:
        accepted = self._order[message.keep :][self._is_top[message.keep :]]
        if len(accepted):
            self._accepted.append((self._hand[accepted], self._means[accepted]))
        stays = np.zeros(len(self._hand), np.bool_)
        stays[self._order[: message.keep]] = True
        kept = stays.nonzero()[0]  # NumPy finds many arms faster by their indices than by flags
        self._hand, self._sums, self._means = self._hand[kept], self._sums[kept], self._means[kept]
        return msg.Accepted(len(accepted))

    def _prune(self, message: msg.Prune) -> msg.Hand:
        # The hand comes from a shuffle in random order, and of equal arms the first stay: ties are broken at random.
        hand = shuffling.hand(message.seed, self._problem.n, self._problem.agents, self.number)
        hand, sums = prune(hand, message.sizes.tolist(), message.pulls.tolist(), self._draw)
        return hand_of(hand, sums, message)

    def _hand_over(self, message: msg.HandOver) -> msg.Hand:
        accepted = [arms for arms, _ in self._accepted]
        accepted_means = [means for _, means in self._accepted]
        return msg.Hand(
            self._hand if message.live else _NO_ARMS,
            self._means if message.live else _NO_REALS,
            np.concatenate(accepted) if accepted else _NO_ARMS,
            np.concatenate(accepted_means) if accepted_means else _NO_REALS,
        )


def hand_of(arms: Ints, sums: Reals, question: msg.Prune) -> msg.Hand:
    """What an agent hands over after pruning."""
    return msg.Hand(arms, sums / question.pulls[-1], _NO_ARMS, _NO_REALS)


PRIVATE_MESSAGES = (msg.Pull, msg.Prune)
"""What agents answer with privacy: all that they send or decide follows from noisy sums of new pulls."""

_HANDLERS: dict[type[Message], Callable[[Agent, Any], Message | None]] = {
    msg.Pull: Agent._pull,
    msg.Deal: Agent._deal,
    msg.PullHand: Agent._pull_hand,
    msg.Sample: Agent._sample,
    msg.Narrow: Agent._narrow,
    msg.Border: Agent._border,
    msg.Cut: Agent._cut,
    msg.HandOver: Agent._hand_over,
    msg.Prune: Agent._prune,
    msg.PullOpen: Agent._pull_open,
    msg.OpenArms: Agent._open_arms,
    msg.SendSquares: Agent._send_squares,
    msg.Bill: Agent._bill,
    msg.TimeUsed: Agent._open_arms,
}
