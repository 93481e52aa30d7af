"""Agents of one process, which answer one after the other, or make simulated pulls together."""

from collections.abc import Callable, Sequence
from operator import attrgetter

from collabtop.arms import Arms
from collabtop.arms.base import Recorder
from collabtop.arms.division import Division
from collabtop.problem import opposite
from collabtop.protocol.agent import Agent
from collabtop.protocol.batches import Batches
from collabtop.protocol.messages import Ints, Means, Pull, Reply, Request
from collabtop.protocol.setup import Setup

_sends_squares = attrgetter("sends_squares")

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

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        """Let each agent answer its request."""
        return [self.members[request.agent].answer(request) for request in requests]

    @property
    def pull_together(self) -> DividedPull | None:
        """How agents make the pulls of an exchange together; None if each has to make its own."""
        if self._pull is None or not self._recorder.is_idle or any(map(_sends_squares, self.members)):
            return None
        return self._pull_together

    def _pull_together(self, question: Pull, arms: Ints, division: Division) -> Means:
        assert self._pull is not None
        assert question.arms is not None
        members = self.members[: len(division.sizes)]
        for agent, pulls in zip(members, division.pulls, strict=True):
            agent.check_horizon(pulls)
            agent.draws.pulls_made += pulls
        sums = self._pull(question.arms, division, [agent.draws for agent in members])
        if self._mirrored:
            sums = opposite(sums, division.times, bounded=self._problem.bounded)
        self.batches.append((arms, division.times_by_arm, division.add_up(sums), None))
        return Means(sums / division.times)
