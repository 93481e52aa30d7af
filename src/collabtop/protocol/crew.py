"""Agents of one process, which answer one after the other, or together where pulls are simulated."""

from collections.abc import Callable, Sequence
from operator import attrgetter

from collabtop.arms import Arms
from collabtop.arms.base import Recorder
from collabtop.arms.division import Division, EqualDivision, HandDivision
from collabtop.problem import opposite
from collabtop.protocol import shuffling
from collabtop.protocol.agent import Agent, hand_of
from collabtop.protocol.batches import Batches
from collabtop.protocol.messages import Ints, Means, Message, Prune, Pull, PullOpen, Reals, Reply, Request
from collabtop.protocol.open_arms import OpenArms, halves
from collabtop.protocol.pruning import prune_all
from collabtop.protocol.setup import Setup

_FEW_ARMS = 1 << 14
_sends_squares = attrgetter("sends_squares")


def _asks_open(request: Request) -> bool:
    return type(request.messages[-1]) is PullOpen


DividedPull = Callable[[Pull, Ints, Division], Means]
"""Makes the pulls of an exchange: from the questions to all agents, joined in one, the arms and their division. Returns
the answers, joined in one too."""


class Crew:
    """All agents of a run in one process.

    Simulated pulls take less time than the messages for them, so agents can make those of an exchange together. Each
    still draws from its own generator, so its means are those that it sends on its own.

    >>> import numpy as np
    >>> from collabtop.arms import BernoulliArms
    >>> from collabtop.problem import Problem
    >>> crew = Crew(BernoulliArms([1.0, 0.0]), Setup(Problem(n=2, m=1, agents=2, horizon=8), seed=1), Recorder())
    >>> division = Division(arms=2, positions=np.array([0, 1]), times=np.array([4, 4]), sizes=[1, 1])
    >>> crew.pull_together(Pull(np.array([1, 0]), division.times), np.array([1, 0]), division)
    Means(means=array([0., 1.]))
    """

    def __init__(self, arms: Arms, setup: Setup, recorder: Recorder) -> None:
        self.batches = Batches(setup.problem.n)
        """All batches of pulls so far."""
        agents = range(setup.problem.agents)
        self.members = [Agent(number, arms, setup, recorder, batches=self.batches) for number in agents]
        self._problem, self._mirrored, self._recorder = setup.problem, setup.mirrored, recorder
        plain = not (setup.problem.numbered or setup.prices or setup.privacy)
        self._pull = arms.pull_together if plain else None
        n, count = setup.problem.n, setup.problem.agents
        self._pulls_open_together = n * count <= _FEW_ARMS
        self._open: OpenArms | None = None  # of all agents, as long as they have been asked together
        self._prunes_together = count <= n <= _FEW_ARMS

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        """Let each agent answer its request."""
        question = self._common_question(requests)
        if isinstance(question, PullOpen) and self._pulls_open_together:
            return self._answer_together(requests, lambda: self._pull_open(question))
        if isinstance(question, Prune) and self._prunes_together:
            return self._answer_together(requests, lambda: self._prune(question))
        if self._pulls_open_together and any(map(_asks_open, requests)):
            self._part()
        return [self.members[request.agent].answer(request) for request in requests]

    def _part(self) -> None:
        """From now on, let each agent pull its open arms on its own."""
        self._pulls_open_together = False
        if self._open is not None:
            for agent, open_arms in zip(self.members, self._open.by_agent(), strict=True):
                agent.open_arms = open_arms

    def _common_question(self, requests: Sequence[Request]) -> Message | None:
        """The one message that all agents get, if they can answer it together; else None."""
        if not requests or not self._can_pull_together:
            return None
        first = requests[0].messages
        if type(first[0]) not in (PullOpen, Prune):
            return None
        alike = all(len(request.messages) == 1 and request.messages[0] is first[0] for request in requests)
        everyone = len(requests) == len(self.members) and all(map(Agent.is_new, self.members, requests))
        return first[0] if alike and everyone else None

    def _answer_together(self, requests: Sequence[Request], handle: Callable[[], Sequence[Message]]) -> list[Reply]:
        before = [agent.draws.pulls_made for agent in self.members]
        answers = handle()
        pulls = [agent.draws.pulls_made - made for agent, made in zip(self.members, before, strict=True)]
        return list(map(Agent.reply, self.members, requests, pulls, answers))

    @property
    def _can_pull_together(self) -> bool:
        return self._pull is not None and self._recorder.is_idle and not any(map(_sends_squares, self.members))

    @property
    def pull_together(self) -> DividedPull | None:
        """How agents make the pulls of an exchange together; None if each has to make its own."""
        return self._pull_together if self._can_pull_together else None

    def _pull_together(self, question: Pull, arms: Ints, division: Division) -> Means:
        assert question.arms is not None
        sums = self._sums(question.arms, division)
        self.batches.append((arms, division.times_by_arm, division.add_up(sums), None))
        return Means(sums / division.divisors)

    def _pull_open(self, question: PullOpen) -> Sequence[Message]:
        open_arms = self._open = self._open or OpenArms(self._problem.n, len(self.members))
        open_arms.keep(question.survived)
        arms, times, agents = open_arms.arms, halves(question.times), len(self.members)
        open_arms.pulls += question.times * agents
        division, rngs = EqualDivision(len(arms), agents, times), [agent.rng for agent in self.members]
        drawn = self._sums(division.arms_of(arms), division)
        parts = drawn.reshape(agents, len(times), len(arms)).swapaxes(0, 1)
        self.batches.append((arms, division.times_by_arm, division.add_up(drawn), None))
        return open_arms.answers(list(parts), times, question.coarseness, rngs)

    def _prune(self, question: Prune) -> Sequence[Message]:
        n, agents = self._problem.n, len(self.members)
        hands = [shuffling.hand(question.seed, n, agents, agent) for agent in range(agents)]
        pruned = prune_all(hands, question.sizes.tolist(), question.pulls.tolist(), self._pull_hands)
        return [hand_of(arms, sums, question) for arms, sums in pruned]

    def _pull_hands(self, arms: Ints, times: int, before: int, held: Sequence[int]) -> Reals:
        """Let each agent pull the arms of its hand, of which there are so many; returns one sum per arm."""
        division = HandDivision(held, times)
        sums = self._sums(arms, division)
        self.batches.append((arms, division.times, sums, None))
        return sums

    def _sums(self, arms: Ints, division: Division) -> Reals:
        """Let the agents draw their parts of a division; returns one sum per position."""
        assert self._pull is not None
        draws = []
        for agent, pulls in zip(self.members, division.pulls, strict=False):  # the first agents, if not all pull
            agent.check_horizon(pulls)
            agent.draws.pulls_made += pulls
            draws.append(agent.draws)
        sums = self._pull(arms, division, draws)
        return opposite(sums, division.times, bounded=self._problem.bounded) if self._mirrored else sums
