"""A team: the transport between the coordinator and the agents. Requests go out, replies come back."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import ClassVar

from collabtop.arms import Arms
from collabtop.errors import ProtocolError
from collabtop.protocol.batches import Batch
from collabtop.protocol.crew import DividedPull
from collabtop.protocol.ledger import TransportStats
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.recorder import RewardRecorder

_address = attrgetter("agent", "number")


class Team(ABC):
    """Where agents run, and how requests reach them.

    A subclass writes `open`, `deliver` and, where it has to give something back, `close`. It does not count,
    interpret or change messages: the `Coordinator` counts, and the agents interpret. So a team may delay, repeat or
    watch, and the run stays the same. `collabtop.testing.check_team` tells whether it does.

    >>> import collabtop as ct
    >>> class Traced(ct.LocalTeam):
    ...     def deliver(self, requests):
    ...         print([type(message).__name__ for message in requests[0].messages])
    ...         return super().deliver(requests)
    >>> arms = ct.BernoulliArms([0.9, 0.5])
    >>> ct.identify(arms, m=1, agents=2, horizon=100, algorithm="uniform", seed=1, team=Traced()).top
    ['Pull']
    [0]
    """

    tolerates_loss: bool = False
    """Whether a run continues when agents are lost for good: replies may then be fewer than requests."""
    messages_are_free: ClassVar[bool] = False
    """Whether agents share a process with the coordinator, so that words and round trips cost next to nothing."""
    agents_outlive_run: ClassVar[bool] = False
    """Whether the agents live on when this process ends, and keep their rewards to themselves: a resumed run then uses
    their logged replies."""

    @abstractmethod
    def open(self, arms: Arms, setup: Setup, recorder: RewardRecorder) -> None:
        """Start `setup.problem.agents` agents that pull `arms` and let `recorder` keep what they draw."""

    @abstractmethod
    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Pass each request to its agent and return one reply per request, in the same order.

        A team that tolerates loss leaves out the replies of agents that are lost for good.
        """

    @property
    def pull_together(self) -> DividedPull | None:
        """A way to make simulated pulls for several agents at once, without a message to each, if there is one.

        The coordinator counts the same messages. For teams that share memory with their agents.
        """
        return None

    def halt(self) -> None:  # noqa: B027  (the run then stops at the next request)
        """Ask the agents to stop after the pulls under way; `deliver` then raises `AgentHalted`.

        May be called from any thread, at any time between `open` and `close`.
        """

    def finish(self) -> None:  # noqa: B027  (most agents need not know)
        """Tell the agents that the run is over; called once the answer is known and logged, before `close`."""

    def close(self) -> None:  # noqa: B027  (most teams have nothing to give back)
        """Release what `open` took; called after every run, including one that failed."""

    def observed(self) -> Sequence[Batch] | None:
        """All batches of pulls that the agents made, or None if the team does not share memory with them."""
        return None

    def transport_stats(self) -> TransportStats:
        """What the transport has cost so far in this run."""
        return TransportStats()


def check_replies(requests: Sequence[Request], replies: Iterable[Reply], team: Team) -> list[Reply]:
    """The replies, if each is to its request; a team that tolerates loss may leave some out."""
    replies, expected = list(replies), requests
    if team.tolerates_loss:
        agents = {reply.agent for reply in replies}
        expected = [request for request in requests if request.agent in agents]
    if len(replies) != len(expected):
        raise ProtocolError(f"{len(requests)} agents were asked, {len(replies)} replied")
    if list(map(_address, replies)) != list(map(_address, expected)):
        for request, reply in zip(expected, replies, strict=True):
            if _address(reply) != _address(request):
                raise ProtocolError(f"agent {request.agent} was asked, agent {reply.agent} replied")
    return replies
