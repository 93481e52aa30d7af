"""Rebuilding an agent that was lost: its state is a fold over the requests it got and the rewards it drew.

A team whose agents are elsewhere keeps both as they pass. A lost agent begins again in a new epoch, gets the same
requests once more, recalls the rewards that were reported, and has to give the replies that it gave.
"""

from __future__ import annotations

import hashlib

from collabtop.errors import ProtocolError
from collabtop.teams.remote.envelope import SealedReply, SealedRequest


def digest_of(reply: SealedReply) -> bytes:
    """What two replies have in common if and only if they say the same, in whatever epoch."""
    head = f"{reply.agent} {reply.number} {reply.pulls} ".encode()
    return hashlib.blake2b(head + reply.answer, digest_size=16).digest()


class AgentHistory:
    """What every agent of a run was asked, what it said, what it drew, and which life of it is the present one.

    >>> history = AgentHistory(agents=2)
    >>> history.asked(SealedRequest(0, 1, 1, (b"what?",)))
    >>> reply = SealedReply(0, 1, 1, 30, b"that")
    >>> history.answered(reply)
    >>> history.lose(1)                                   # the next life is epoch 1
    >>> history.epochs, history.answered_requests(1)
    ([0, 1], [SealedRequest(epoch=1, agent=1, number=1, messages=(b'what?',))])
    >>> history.check(1, [digest_of(reply)])
    """

    def __init__(self, agents: int) -> None:
        self.epochs = [0] * agents
        """Which life each agent is in."""
        self._asked: list[list[SealedRequest]] = [[] for _ in range(agents)]
        self._said: list[list[bytes]] = [[] for _ in range(agents)]

    def asked(self, request: SealedRequest) -> None:
        """Take note of a request that goes out for the first time."""
        self._asked[request.agent].append(request)

    def answered(self, reply: SealedReply) -> None:
        """Take note of the reply to an agent's latest request; one from another life is no reply."""
        agent = reply.agent
        latest = self._asked[agent][-1] if self._asked[agent] else None
        if reply.epoch != self.epochs[agent] or latest is None or reply.number != latest.number:
            raise ProtocolError(
                f"agent {agent} answered request {reply.number} in epoch {reply.epoch}, but it is in epoch "
                f"{self.epochs[agent]} and was asked {latest.number if latest else 'nothing'}"
            )
        if len(self._said[agent]) == len(self._asked[agent]):
            raise ProtocolError(f"agent {agent} answered request {reply.number} twice")
        self._said[agent].append(digest_of(reply))

    def lose(self, agent: int) -> None:
        """The agent's state is lost: what it says from now on it says in a new epoch."""
        self.epochs[agent] += 1

    def is_waiting(self, agent: int) -> bool:
        """Whether the agent owes a reply."""
        return len(self._said[agent]) < len(self._asked[agent])

    def latest(self, agent: int) -> SealedRequest:
        """The request that was sent last, for the agent's present life."""
        return self._for_now(self._asked[agent][-1])

    def answered_requests(self, agent: int) -> list[SealedRequest]:
        """All requests that the agent answered, for its present life."""
        return [self._for_now(request) for request in self._asked[agent][: len(self._said[agent])]]

    def check(self, agent: int, said: list[bytes]) -> None:
        """See that a rebuilt agent said what it had said before."""
        if said != self._said[agent]:
            raise ProtocolError(
                f"agent {agent} was rebuilt from the messages it got and gave other replies: the arms do not give "
                "the same rewards for the same draws (a function's rewards are never drawn again, so these are arms "
                "that call themselves repeatable and are not)"
            )

    def _for_now(self, request: SealedRequest) -> SealedRequest:
        return SealedRequest(self.epochs[request.agent], request.agent, request.number, request.messages)
