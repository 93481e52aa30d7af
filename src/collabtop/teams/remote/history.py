"""The history of remote agents, from which a lost agent is rebuilt.

An agent's state is a fold over the requests it received and the rewards it drew, and a team keeps both. A lost agent
starts again in a new epoch: it receives the same requests again, uses the rewards that were reported instead of
drawing them, and has to give the same replies as before.
"""

from collabtop.errors import ProtocolError
from collabtop.protocol.messages import Reply
from collabtop.teams.remote.envelope import SealedRequest


class AgentHistory:
    """The requests to every agent of a run, digests of its replies, and its current epoch.

    >>> from collabtop.protocol.messages import Held
    >>> history = AgentHistory(agents=2)
    >>> history.add_request(SealedRequest(0, 1, 1, (b"question",)))
    >>> history.add_reply(Reply(agent=1, number=1, pulls=30, answer=Held(5)), epoch=0, digest=b"...")
    >>> history.begin_epoch(1)                            # its state was lost
    >>> history.epochs, history.answered_requests(1)
    ([0, 1], [SealedRequest(epoch=1, agent=1, number=1, messages=(b'question',))])
    >>> history.check(1, [b"..."])
    """

    def __init__(self, agents: int) -> None:
        self.epochs = [0] * agents
        """The current epoch of each agent."""
        self._requests: list[list[SealedRequest]] = [[] for _ in range(agents)]
        self._digests: list[list[bytes]] = [[] for _ in range(agents)]

    def add_request(self, request: SealedRequest) -> None:
        """Add a request that is sent for the first time."""
        self._requests[request.agent].append(request)

    def add_reply(self, reply: Reply, epoch: int, digest: bytes) -> None:
        """Add the digest of the reply to an agent's latest request; a reply from an earlier epoch is rejected."""
        agent = reply.agent
        latest = self._requests[agent][-1] if self._requests[agent] else None
        if epoch != self.epochs[agent] or latest is None or reply.number != latest.number:
            raise ProtocolError(
                f"agent {agent} answered request {reply.number} in epoch {epoch}, but its epoch is "
                f"{self.epochs[agent]} and its latest request is {latest.number if latest else 'none'}"
            )
        if len(self._digests[agent]) == len(self._requests[agent]):
            raise ProtocolError(f"agent {agent} answered request {reply.number} twice")
        self._digests[agent].append(digest)

    def begin_epoch(self, agent: int) -> None:
        """Begin a new epoch for an agent whose state was lost."""
        self.epochs[agent] += 1

    def is_waiting(self, agent: int) -> bool:
        """Whether the agent has not yet replied to its latest request."""
        return len(self._digests[agent]) < len(self._requests[agent])

    def latest(self, agent: int) -> SealedRequest:
        """The latest request, for the agent's current epoch."""
        return self._in_current_epoch(self._requests[agent][-1])

    def answered_requests(self, agent: int) -> list[SealedRequest]:
        """All requests that the agent answered, for its current epoch."""
        return [self._in_current_epoch(request) for request in self._requests[agent][: len(self._digests[agent])]]

    def check(self, agent: int, digests: list[bytes]) -> None:
        """Check that a rebuilt agent gave the same replies as before."""
        if digests != self._digests[agent]:
            raise ProtocolError(
                f"agent {agent} was rebuilt and gave different replies to the same requests: its arms declare "
                "themselves repeatable, but do not give the same rewards for the same draws"
            )

    def _in_current_epoch(self, request: SealedRequest) -> SealedRequest:
        epoch = self.epochs[request.agent]
        if request.epoch == epoch:
            return request
        return SealedRequest(epoch, request.agent, request.number, request.messages)
