"""Agents of one process, which answer one after the other."""

from collections.abc import Sequence
from itertools import accumulate, repeat

import numpy as np

from collabtop.arms import Arms
from collabtop.arms.base import Recorder
from collabtop.problem import opposite
from collabtop.protocol.agent import Agent, all_arms
from collabtop.protocol.batches import Batches
from collabtop.protocol.messages import Means, Pull, Reply, Request
from collabtop.protocol.setup import Setup

_FEW_ARMS = 1 << 14


class Crew:
    """All agents of a run in one process.

    If every agent has to make simulated pulls of a few arms, NumPy is called once for all of them: its overhead would
    exceed the time of the draws. Each agent still draws from its own generator, so its reply is the one that it gives
    on its own.

    >>> from collabtop.arms import BernoulliArms
    >>> from collabtop.problem import Problem
    >>> crew = Crew(BernoulliArms([1.0, 0.0]), Setup(Problem(n=2, m=1, agents=2, horizon=8), seed=1), Recorder())
    >>> crew.answer([Request(agent, 1, (Pull(np.array([agent]), np.array([4])),)) for agent in (0, 1)])
    [Reply(agent=0, number=1, pulls=4, answer=Means(means=array([1.]))), \
Reply(agent=1, number=1, pulls=4, answer=Means(means=array([0.])))]
    """

    def __init__(self, arms: Arms, setup: Setup, recorder: Recorder) -> None:
        self.batches = Batches(setup.problem.n)
        """All batches of pulls so far."""
        agents = range(setup.problem.agents)
        self.members = [Agent(number, arms, setup, recorder, batches=self.batches) for number in agents]
        self._problem, self._mirrored, self._recorder = setup.problem, setup.mirrored, recorder
        self._pull = None if setup.problem.numbered or setup.prices else arms.pull_together

    def answer(self, requests: Sequence[Request]) -> list[Reply]:
        """Let each agent answer its request."""
        members = [self.members[request.agent] for request in requests]
        if self._pull is not None and self._recorder.is_idle and all(map(Agent.only_pulls, members, requests)):
            replies = self._pull_together(members, requests)
            if replies is not None:
                return replies
        return list(map(Agent.answer, members, requests))

    def _pull_together(self, members: Sequence[Agent], requests: Sequence[Request]) -> list[Reply] | None:
        """The replies to requests for pulls; None if they ask for many arms, or not for pulls of each arm."""
        assert self._pull is not None
        questions: list[Pull] = [request.messages[0] for request in requests]  # type: ignore[misc]
        arms = [all_arms(self._problem.n) if question.arms is None else question.arms for question in questions]
        times = [question.times for question in questions]
        sizes = list(map(len, arms))
        if not 0 < min(sizes) <= sum(sizes) <= _FEW_ARMS or sizes != list(map(len, times)):
            return None
        all_times, ends = np.concatenate(times), list(accumulate(sizes))
        if np.count_nonzero(all_times) < len(all_times):
            return None
        starts = [0, *ends[:-1]]
        pulls = np.add.reduceat(all_times, starts).tolist()
        draws = list(map(Agent.begin_pulls, members, pulls))
        sums = self._pull(np.concatenate(arms), all_times, ends, draws)
        if self._mirrored:
            sums = opposite(sums, all_times, bounded=self._problem.bounded)
        means = sums / all_times
        spans = list(map(slice, starts, ends))
        self.batches.extend(zip(arms, times, [sums[span] for span in spans], repeat(None), strict=False))
        answers = [Means(means[span]) for span in spans]
        return list(map(Agent.end_pulls, members, requests, pulls, answers))
