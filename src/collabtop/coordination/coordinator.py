"""The coordinator: what an algorithm talks to. It asks agents through a team and counts every message."""

import threading
from collections.abc import Collection, Mapping, Sequence
from time import perf_counter
from typing import Any, TypeVar, final

import msgspec
import numpy as np

from collabtop.arms import Arms
from collabtop.arms.division import Division
from collabtop.arms.draws import AgentHalted
from collabtop.coordination.scoreboard import Estimates, LocalAnswer, Scoreboard
from collabtop.coordination.team import Team, check_replies
from collabtop.errors import AgentsGoneError, ProtocolError
from collabtop.events import Exchanged, RoundBegan
from collabtop.protocol.batches import Batch
from collabtop.protocol.ledger import Ledger, Meter, Round, form_of
from collabtop.protocol.messages import Hand, Ints, Message, Prune, Pull, Reals, Reply, Request, kind_of
from collabtop.protocol.setup import Setup
from collabtop.runlog.recorder import RewardRecorder

Answer = TypeVar("Answer", bound=Message)


class Outcome(msgspec.Struct, frozen=True):
    """What a run led to: verdicts, costs, and agents lost on the way."""

    estimates: Estimates
    rounds: tuple[Round, ...]
    ledger: Ledger
    lost: tuple[int, ...] = ()
    """Agents that were lost for good."""
    agent_pulls: tuple[int, ...] = ()
    """Pulls that each agent has reported ..."""
    agent_pulls_in_round: tuple[int, ...] = ()
    """... and those of the current round."""
    suspects: tuple[int, ...] = ()
    """Agents whose answers do not fit those of the others."""
    local_tops: dict[int, LocalAnswer] = {}
    """The best arms of each agent on its own, for algorithms that find them."""


@final
class Coordinator:
    """Asks agents, counts every message, and keeps what was learnt on its scoreboard.

    An algorithm uses `agents`, `present`, `scoreboard`, `time_left`, `begin_round`, `tell_all`, `tell`, `ask_all`,
    `ask` and `ask_present`. Where the agents run is up to the team.

    >>> import numpy as np, collabtop as ct
    >>> from collabtop.protocol.messages import Means, Pull
    >>> from collabtop.protocol.setup import Setup
    >>> coordinator = Coordinator(ct.LocalTeam(), Setup(ct.Problem(n=2, m=1, agents=2, horizon=20), seed=1))
    >>> coordinator.open(ct.BernoulliArms([1.0, 0.0]))
    >>> coordinator.begin_round("shared", live=2)
    >>> [answer.means.tolist() for answer in coordinator.ask_all(Pull(None, np.array([5]), free=("times",)), Means)]
    [[1.0, 0.0], [1.0, 0.0]]
    >>> coordinator.meter.ledger().words
    4
    """

    def __init__(
        self, team: Team, setup: Setup, recorder: RewardRecorder | None = None, *, observable: bool = False
    ) -> None:
        self.agents = setup.problem.agents
        """Number of agents (the paper's K)."""
        self.problem = setup.problem
        """The numbers that every agent knows."""
        self.spent: float | None = None
        """What the pulls of all agents were charged, as they last reported it."""
        self.lost: frozenset[int] = frozenset()
        """Agents that are lost for good."""
        self.suspects: frozenset[int] = frozenset()
        """Agents whose answers do not fit those of the others, if all see the same arms; the algorithm writes it."""
        problem = setup.problem
        self.scoreboard = Scoreboard(
            problem.n,
            problem.population,
            bounded=problem.bounded,
            paired=problem.paired,
            largest_weight=problem.largest_weight,
            deviation=None if setup.noise_scale is None else setup.noise_scale.deviation,
        )
        """What was learnt about each arm; the algorithm writes it."""
        self.meter = Meter(self.agents, setup.problem.horizon)
        self._team, self._setup, self._recorder = team, setup, recorder or RewardRecorder()
        self.latest: Outcome | None = None
        """The outcome so far when agents were last asked, for other threads; only kept if `observable`."""
        self._observable = observable
        self._halted = threading.Event()
        self._is_open = False
        self._number = 0
        self._seconds = 0.0
        self._outgoing: dict[int, list[Message]] = {}  # by agent

    def open(self, arms: Arms) -> None:
        """Start the agents."""
        self._team.open(arms, self._setup, self._recorder)
        self._is_open = True
        if self._halted.is_set():  # while the team was being opened
            self._team.halt()

    # -- what an algorithm uses

    @property
    def present(self) -> list[int]:
        """The agents that are not lost."""
        everyone = range(self.agents)
        return [agent for agent in everyone if agent not in self.lost] if self.lost else list(everyone)

    @property
    def tolerates_loss(self) -> bool:
        """Whether the run continues when agents are lost for good."""
        return self._team.tolerates_loss

    @property
    def time_left(self) -> int:
        """Time steps until the horizon."""
        return self.meter.time_left

    def affordable(self, arms: Ints, pulls: int) -> int:
        """`pulls` more pulls of each of these arms, or as many as the problem's `pull_limit` allows."""
        limit = self.problem.pull_limit
        return pulls if limit is None else max(0, min(pulls, limit - int(self.scoreboard.pulls(arms).max())))

    def begin_round(self, phase: str, live: int) -> None:
        """Begin a round of this phase, with so many arms still open."""
        self.meter.begin_round(phase, live)
        if self._recorder.is_watched:
            self._recorder.publish(RoundBegan(len(self.meter.rounds()) - 1, phase, live))

    def tell_all(self, message: Message) -> None:
        """Send every agent a message that needs no answer; it travels with the next question."""
        present = self.present
        self.meter.count("down", [message], copies=len(present))
        for agent in present:
            self._outgoing.setdefault(agent, []).append(message)

    def tell(self, messages: Mapping[int, Message]) -> None:
        """Send each of these agents a message that needs no answer; it travels with the next question to it."""
        self.meter.count("down", messages.values())
        for agent, message in messages.items():
            self._outgoing.setdefault(agent, []).append(message)

    def ask_all(self, message: Message, expect: type[Answer]) -> list[Answer]:
        """Ask every agent the same question and wait for the answers, agent 0's first."""
        present = self.present
        self.meter.count("down", [message], copies=len(present))
        return list(self._complete(self._exchange([(agent, message) for agent in present], expect), present).values())

    def ask(self, messages: Mapping[int, Message], expect: type[Answer]) -> dict[int, Answer]:
        """Ask each of these agents a question, and wait for all answers."""
        return self._complete(self.ask_present(messages, expect), messages)

    def ask_present(self, messages: Mapping[int, Message], expect: type[Answer]) -> dict[int, Answer]:
        """Ask each of these agents a question; the answers leave out agents that are lost for good by now."""
        self._count_questions(messages)
        return self._exchange(list(messages.items()), expect)

    def ask_together(self, arms: Ints, division: Division, free: tuple[str, ...]) -> Reals | None:
        """Ask agents for their parts of the pulls of these arms: all means, one part after the other.

        It is one exchange, like `ask` with a `Pull` to each agent, and counts the same messages. None if there is no
        faster way than these: if not all agents share memory with this process, or rewards are not simulated.
        """
        pull_together = self._team.pull_together
        if pull_together is None or self.lost or self._outgoing:
            return None
        self._begin_exchange()
        asked = len(division.sizes)
        question = Pull(division.arms_of(arms), division.times, free=free)
        self.meter.count_joined("down", question, asked)
        began = perf_counter()
        answers = pull_together(question, arms, division)
        self._seconds += perf_counter() - began
        self.meter.count_joined("up", answers, asked)
        self.meter.count_pulls([*division.pulls, *[0] * (self.agents - asked)])
        return answers.means

    # -- what a run uses

    def outcome(self) -> Outcome:
        """What the run led to so far."""
        stats = msgspec.structs.replace(self._team.transport_stats(), seconds=self._seconds)
        return Outcome(
            estimates=self.scoreboard.verdict(mirrored=self._setup.mirrored, unit=self._setup.unit),
            rounds=self.meter.rounds(),
            ledger=self.meter.ledger(stats),
            lost=tuple(sorted(self.lost)),
            agent_pulls=tuple(self.meter.agent_pulls),
            agent_pulls_in_round=tuple(self.meter.agent_pulls_in_round),
            suspects=tuple(sorted(self.suspects)),
            local_tops=self.scoreboard.local_tops(mirrored=self._setup.mirrored),
        )

    def halt(self) -> None:
        """Stop the run after the pulls under way: it then raises `AgentHalted`. May be called from any thread."""
        self._halted.set()
        if self._is_open:
            self._team.halt()

    def observed(self) -> Sequence[Batch] | None:
        """All batches of pulls, on teams that share memory with their agents; for looking at, never for deciding."""
        return self._team.observed() if self._is_open else None

    # -- one exchange

    def _count_questions(self, messages: Mapping[int, Message]) -> None:
        different = set(map(id, messages.values()))  # usually one or all
        if len(different) == 1:
            self.meter.count("down", [next(iter(messages.values()))], copies=len(messages))
        else:
            self.meter.count("down", messages.values())

    def _complete(self, answers: dict[int, Answer], asked: Collection[int]) -> dict[int, Answer]:
        if len(answers) < len(asked):
            gone = frozenset(asked) - answers.keys()
            raise AgentsGoneError(f"{len(gone)} agents are lost for good, but this step needs all of them", gone)
        return answers

    def _begin_exchange(self) -> int:
        if self._halted.is_set():
            raise AgentHalted
        if self._observable:
            self.latest = self.outcome()
        self._number += 1
        return self._number

    def _exchange(self, questions: list[tuple[int, Message]], expect: type[Answer]) -> dict[int, Answer]:
        number = self._begin_exchange()
        requests = [Request(agent, number, (*self._outgoing.pop(agent, ()), question)) for agent, question in questions]
        began = perf_counter()
        replies = check_replies(requests, self._team.deliver(requests), self._team)
        self._seconds += perf_counter() - began
        if set(map(form_of, [reply.answer for reply in replies])) - {(expect, (), ())}:
            _check_answers(replies, expect)
        answers: dict[int, Any] = {reply.agent: reply.answer for reply in replies}
        if len(answers) < len(requests):
            self.lost |= {request.agent for request in requests} - answers.keys()
        self.meter.count_replies(replies)
        if self._setup.privacy is not None:
            self._count_noise(requests, answers)
        self._publish_exchange()
        return answers

    def _count_noise(self, requests: Sequence[Request], answers: Mapping[int, Message]) -> None:
        for request in requests:
            answer, question = answers.get(request.agent), request.messages[-1]
            if isinstance(answer, Hand) and isinstance(question, Prune):
                self.scoreboard.add_noise(answer.arms, len(set(question.pulls.tolist())))
            elif answer is not None and isinstance(question, Pull):
                arms = np.arange(self.problem.n) if question.arms is None else question.arms
                self.scoreboard.add_noise(arms[np.broadcast_to(question.times > 0, arms.shape)], 1)

    def _publish_exchange(self) -> None:
        if self._recorder.is_watched:
            ledger, pulls = self.meter.ledger(), sum(counted.pulls for counted in self.meter.rounds())
            self._recorder.publish(Exchanged(self._number, self.meter.time, pulls, ledger.words, ledger.bits))


def _check_answers(replies: Sequence[Reply], expect: type[Message]) -> None:
    for agent, answer in [(reply.agent, reply.answer) for reply in replies]:
        if type(answer) is not expect:  # a subclass would be a choice of kind
            raise ProtocolError(f"agent {agent} sent {kind_of(type(answer))}, not {kind_of(expect)}")
        if answer.free or answer.chosen_from:
            raise ProtocolError(
                f"agent {agent} sent {kind_of(expect)} with free={list(answer.free)} and "
                f"chosen_from={list(answer.chosen_from)}, but an answer pays for every number and has one kind"
            )
