"""The local team: agents in this process, which answer one after the other."""

from collections.abc import Sequence
from typing import ClassVar

from collabtop.arms import Arms
from collabtop.coordination.team import Team
from collabtop.protocol.batches import Batch
from collabtop.protocol.crew import Crew, DividedPull
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.recorder import RewardRecorder


class LocalTeam(Team):
    """Agents in this process, asked one after the other (`team="local"`).

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5])
    >>> ct.identify(arms, m=1, agents=3, horizon=100, seed=1, team=ct.LocalTeam()).top
    [0]
    """

    messages_are_free: ClassVar[bool] = True

    def open(self, arms: Arms, setup: Setup, recorder: RewardRecorder) -> None:
        """Create the agents."""
        self._crew = Crew(arms, setup, recorder)
        self._members = self._crew.members

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Let each agent answer in turn."""
        return self._crew.answer(requests)

    @property
    def pull_together(self) -> DividedPull | None:
        """As the agents do, unless a subclass has to see the messages."""
        return self._crew.pull_together if type(self).deliver is LocalTeam.deliver else None

    def halt(self) -> None:
        """Let the agents stop after the current pull."""
        for agent in self._members:
            agent.halt()

    def observed(self) -> Sequence[Batch]:
        """All batches of pulls."""
        return list(self._crew.batches)
