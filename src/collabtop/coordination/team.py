"""The seam between an algorithm and its agents: ask all or some of them, get their answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from time import perf_counter
from typing import ClassVar, TypeVar

from collabtop.arms import Arms
from collabtop.arms.base import Ints, Reals
from collabtop.errors import AgentsGoneError, ProtocolError
from collabtop.protocol.agent import Setup
from collabtop.protocol.ledger import Meter
from collabtop.protocol.messages import Message, Reply, Request
from collabtop.runlog.file import RunLog

Answer = TypeVar("Answer", bound=Message)


class Team(ABC):
    """K agents and the way to them.

    An algorithm uses `agents`, `begin_round`, `tell_all`, `tell`, `ask_all` and `ask`, which count every
    message as it passes. Where agents run is decided by a subclass, which writes `open` and `deliver`
    (and `close`): requests out, replies back, nothing else.

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

    agents: int
    """Number of agents (the paper's K)."""
    tolerates_loss: bool = False
    """Whether a run goes on when agents are lost for good: replies may then be fewer than requests."""
    lost: frozenset[int] = frozenset()
    """Agents that are gone for good."""
    agents_outlive_run: ClassVar[bool] = False
    """Whether the agents live on when this process ends: a resumed run then takes their logged answers."""

    # -- what a subclass writes

    @abstractmethod
    def open(self, arms: Arms, setup: Setup) -> None:
        """Get the agents ready for a run."""

    @abstractmethod
    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Pass each request to its agent and bring back one reply a request, in the same order.

        A team that may lose agents leaves out the replies of those that are gone for good.
        """

    def close(self) -> None:  # noqa: B027  (most teams have nothing to give back)
        """Let go of what `open` took; called after every run, also after one that failed."""

    def remember(self, log: RunLog) -> None:  # noqa: B027
        """Take what an earlier process of the same run logged; called before `open` where there is a log."""

    def finish(self) -> None:  # noqa: B027
        """Tell the agents that all is done; called when the answer is known and noted, and before `close`."""

    def seen(self) -> list[tuple[Ints, Ints, Reals]] | None:
        """Every batch of pulls the agents made (arms, times, sums), or None where memory is not shared."""
        return None

    # -- what a run does

    def start(self, arms: Arms, setup: Setup) -> None:
        """Begin a run: a fresh meter, fresh agents."""
        self.agents = setup.problem.agents
        self.meter = Meter(self.agents, setup.problem.horizon)
        self._numbers = 0
        self.lost = frozenset()
        self._told: list[list[Message]] = [[] for _ in range(self.agents)]
        self.open(arms, setup)

    # -- what an algorithm does

    @property
    def present(self) -> list[int]:
        """The agents that are not lost."""
        everyone = range(self.agents)
        return [agent for agent in everyone if agent not in self.lost] if self.lost else list(everyone)

    def begin_round(self, phase: str, live: int) -> None:
        """Say that a round begins: its phase, and how many arms are still open."""
        self.meter.begin_round(phase, live)

    def tell_all(self, message: Message) -> None:
        """Tell every agent something; it travels with the next question, so nobody waits for it."""
        present = self.present
        self.meter.count("down", [message], copies=len(present))
        for agent in present:
            self._told[agent].append(message)

    def tell(self, messages: Mapping[int, Message]) -> None:
        """Tell some agents something each; it travels with the next question to them."""
        self.meter.count("down", messages.values())
        for agent, message in messages.items():
            self._told[agent].append(message)

    def ask_all(self, message: Message, expect: type[Answer]) -> list[Answer]:
        """Ask every agent the same and wait for the answers, agent 0's first."""
        present = self.present
        self.meter.count("down", [message], copies=len(present))
        return list(self._all_of(self._exchange([(agent, message) for agent in present], expect), present).values())

    def ask(self, messages: Mapping[int, Message], expect: type[Answer]) -> dict[int, Answer]:
        """Ask some agents something each, and wait for their answers."""
        return self._all_of(self.ask_present(messages, expect), messages)

    def ask_present(self, messages: Mapping[int, Message], expect: type[Answer]) -> dict[int, Answer]:
        """Ask some agents something each; those that are lost now have no answer among what is returned."""
        self.meter.count("down", messages.values())
        return self._exchange(list(messages.items()), expect)

    def _all_of(self, answers: dict[int, Answer], asked: Collection[int]) -> dict[int, Answer]:
        if len(answers) < len(asked):
            gone = frozenset(asked) - answers.keys()
            raise AgentsGoneError(f"{len(gone)} agents are gone for good, and this step needs all of them", gone)
        return answers

    def _exchange(self, questions: list[tuple[int, Message]], expect: type[Answer]) -> dict[int, Answer]:
        self._numbers += 1
        requests = []
        for agent, question in questions:
            told = self._told[agent]
            requests.append(Request(agent, self._numbers, (*told, question) if told else (question,)))
            if told:
                told.clear()
        began = perf_counter()
        replies = list(self.deliver(requests))
        self.meter.transport.seconds += perf_counter() - began
        if len(replies) != len(requests) and self.tolerates_loss:
            requests = self._without_lost(requests, replies)
        if len(replies) != len(requests):
            raise ProtocolError(f"{len(requests)} agents were asked, {len(replies)} replied")
        answers = {}
        for request, reply in zip(requests, replies, strict=True):
            if reply.agent != request.agent or reply.number != request.number:
                raise ProtocolError(f"agent {request.agent} was asked, agent {reply.agent} replied")
            if not isinstance(reply.answer, expect):
                raise ProtocolError(f"agent {reply.agent} sent {type(reply.answer).__name__}, not {expect.__name__}")
            answers[reply.agent] = reply.answer
        self.meter.count_replies(replies)
        return answers

    def _without_lost(self, requests: list[Request], replies: list[Reply]) -> list[Request]:
        """The requests that were answered; whoever did not answer is lost."""
        there = {reply.agent for reply in replies}
        self.lost |= {request.agent for request in requests} - there
        return [request for request in requests if request.agent in there]
