"""FedElim (Reddy, Karthik and Tan 2023): the best arms of all agents together, and those of each agent on its own."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import msgspec
import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.confident_top import check_confidence
from collabtop.algorithms.hkk import unpaired_only
from collabtop.algorithms.shared.elimination import guess_rest, settle_rest
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import ProtocolError
from collabtop.problem import Problem, effective_agents
from collabtop.protocol.extension import AgentAccess, AgentExtension, register_extension
from collabtop.protocol.messages import Flags, Ints, Message, Reals, kinds_of
from collabtop.protocol.ties import perturbed, smallest


class PullBoth(Message, frozen=True, tag="fed-elim.PullBoth"):
    """Drop the global arms that did not survive; pull all arms that are open, globally or for yourself.

    Pull each until it has `total` pulls, settle those of your own arms that are clear of your border, and send the
    means of the global arms. `evidence` is ln(8 n / delta).
    """

    survived: Flags
    """Empty the first time: all arms are open then, which every agent knows."""
    total: int
    evidence: float
    tolerance: float


class GlobalMeans(Message, frozen=True, tag="fed-elim.GlobalMeans"):
    """The means of the arms that are open globally, over all pulls of the agent."""

    means: Reals


class FinishLocal(Message, frozen=True, tag="fed-elim.FinishLocal"):
    """The global arms are settled: double the pulls of your own open arms, from `total`, in up to `time` time steps."""

    total: int
    time: int
    evidence: float
    tolerance: float


class LocalTop(Message, frozen=True, tag="fed-elim.LocalTop"):
    """The agent's own best arms, and whether all of them are sure."""

    arms: Ints
    sure: bool


@register_extension
class FedElimAgent(AgentExtension):
    """An agent's own arms: which are still open, and which it has accepted."""

    name: ClassVar[str] = "fed-elim"
    messages: ClassVar[Mapping[type[Message], type[Message] | None]] = {PullBoth: GlobalMeans, FinishLocal: LocalTop}

    def __init__(self, agent: AgentAccess) -> None:
        super().__init__(agent)
        n = agent.problem.n
        self._sums, self._pulls = np.zeros(n), np.zeros(n, np.int64)
        self._global, self._local = np.arange(n), np.arange(n)  # open arms
        self._accepted = np.empty(0, np.int64)

    def handle(self, message: PullBoth | FinishLocal) -> GlobalMeans | LocalTop:
        """Pull all open arms, or finish with the agent's own."""
        if isinstance(message, PullBoth):
            if len(message.survived):
                self._global = self._global[message.survived]
            self._pull(np.union1d(self._global, self._local), message.total)
            self._settle(message)
            return GlobalMeans(self._sums[self._global] / self._pulls[self._global])
        time_left = message.time
        while len(self._local) * message.total <= time_left and len(self._local):
            time_left -= len(self._local) * message.total
            message = msgspec.structs.replace(message, total=2 * message.total)
            self._pull(self._local, message.total)
            self._settle(message)
        return self._answer()

    def _pull(self, arms: Ints, total: int) -> None:
        """Pull each of these arms, which all have the same number of pulls, until it has `total`."""
        new = total - int(self._pulls[arms[0]]) if len(arms) else 0
        if new:
            self._sums[arms] += self.agent.pull(arms, np.array([new]))
            self._pulls[arms] += new

    def _settle(self, message: PullBoth | FinishLocal) -> None:
        """Accept and reject the agent's own arms that are clear of its border."""
        problem, arms = self.agent.problem, self._local
        if not len(arms):
            return
        evidence = message.evidence + math.log(problem.agents)
        values = perturbed(self._sums[arms] / message.total, self.agent.rng)
        spread = radius(evidence, message.total, message.total)
        accepted, rejected = clear_of_border(values, problem.m - len(self._accepted), spread, message.tolerance)
        self._accepted = np.append(self._accepted, arms[accepted])
        self._local = arms[~(accepted | rejected)]
        missing = problem.m - len(self._accepted)
        if missing in (0, len(self._local)):
            self._accepted, self._local = np.append(self._accepted, self._local[:missing]), self._local[:0]

    def _answer(self) -> LocalTop:
        """The accepted arms, completed with the best of those that are still open."""
        missing, arms = self.agent.problem.m - len(self._accepted), self._local
        worst_first = np.argsort(perturbed(self._sums[arms] / np.maximum(1, self._pulls[arms]), self.agent.rng))
        best = arms[worst_first[len(arms) - missing :]]
        return LocalTop(np.sort(np.append(self._accepted, best)), not len(arms))

    # What sites check:

    @classmethod
    def check(cls, message: PullBoth | FinishLocal, problem: Problem) -> None:
        """Pulls and times within the horizon, and real numbers."""
        if not 1 <= message.total <= problem.horizon or not math.isfinite(message.evidence + message.tolerance):
            raise ProtocolError("more pulls than the horizon allows, or evidence that is no number")
        if isinstance(message, PullBoth) and len(message.survived) > problem.n:
            raise ProtocolError("more flags than arms")
        if isinstance(message, FinishLocal) and not 0 <= message.time <= problem.horizon:
            raise ProtocolError("more time than the horizon allows")

    @classmethod
    def check_answer(cls, message: PullBoth | FinishLocal, answer: GlobalMeans | LocalTop, problem: Problem) -> None:
        """Means in range, or m different arms."""
        if isinstance(answer, GlobalMeans):
            in_range = bool(((answer.means >= 0) & (answer.means <= 1)).all())
            if not in_range or len(answer.means) > problem.n:
                raise ProtocolError("a mean outside [0, 1], or more means than arms")
            return
        named = set(answer.arms.tolist())
        if len(named) != len(answer.arms) or len(named) != problem.m or not named <= set(range(problem.n)):
            raise ProtocolError("local best arms that do not exist, or not m of them")

    @classmethod
    def smallest_batch(cls, message: PullBoth | FinishLocal) -> int:
        """Each step doubles the pulls of an open arm."""
        return message.total if isinstance(message, FinishLocal) else max(1, message.total // 2)


@dataclass(frozen=True)
class FedElim(Algorithm):
    """Stop when the best arms of all agents together, and those of each agent on its own, are known.

    Args:
        confidence: the required probability that all these answers are right (1 - delta).
        tolerance: arms that are at most this much worse than the m-th best also count as right (epsilon).

    >>> import collabtop as ct
    >>> arms = ct.HeterogeneousArms([[0.9, 0.1], [0.6, 0.9], [0.2, 0.2]])
    >>> result = ct.identify(arms, m=1, confidence=0.95, algorithm="fed-elim", seed=1)
    >>> result.top, result.local_top, result.local_sure
    ([1], [[0], [1]], [True, True])
    """

    name: ClassVar[str] = "fed-elim"
    summary: ClassVar[str] = "Stops when the best arms are known: of all agents together, and of each on its own."
    stops_early: ClassVar[bool] = True
    needs_bounds: ClassVar[bool] = True
    messages: ClassVar[tuple[type[Message], ...]] = (PullBoth, FinishLocal)
    extension: ClassVar[type[AgentExtension] | None] = FedElimAgent
    confidence: float = 0.95
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        check_confidence(self.confidence, self.tolerance)

    def check(self, problem: Problem) -> None:
        """Raise `SettingError` if arms are paired."""
        unpaired_only(self, problem)

    def smallest_horizon(self, problem: Problem) -> int:
        """One pull per arm by every agent."""
        return problem.n

    def most_shared_rounds(self, problem: Problem) -> int:
        """How often the pulls of an arm can double: round r, from 0, begins only if n arms with 2^r pulls each fit.

        >>> FedElim().most_shared_rounds(Problem(n=4, m=1, agents=3, horizon=31))     # 1, 2 and 4 pulls of 4 arms
        3
        """
        return max(1, problem.horizon // problem.n).bit_length()

    def most_words(self, problem: Problem) -> int:
        """What a run takes in which no arm is settled before the horizon.

        From every agent n means in each shared round, and m arms and a flag at the end; to it n flags in each shared
        round but the first, and one word for the kind of the message, which depends on the means.

        >>> FedElim().most_words(Problem(n=4, m=1, agents=3, horizon=31))     # 3 agents, each 4 + 2 * (1 + 4 + 4) + 2
        72
        """
        later = self.most_shared_rounds(problem) - 1
        return problem.agents * (problem.n + later * (2 * problem.n + 1) + problem.m + 1)

    def most_round_trips(self, problem: Problem) -> int:
        """One per shared round, and one for the agents' own arms.

        >>> FedElim().most_round_trips(Problem(n=4, m=1, agents=3, horizon=31))
        4
        """
        return self.most_shared_rounds(problem) + 1

    def run(self, coordinator: Coordinator, problem: Problem, rng: np.random.Generator) -> None:
        """Double the pulls of all open arms until the global ones are settled; then agents finish their own."""
        board, evidence = coordinator.scoreboard, math.log(8 * problem.n / (1 - self.confidence))
        agents = effective_agents(problem.weights, problem.agents)
        known, either = ("total", "evidence", "tolerance"), kinds_of(PullBoth, FinishLocal)
        rounds, total, live = 0, 0, np.arange(problem.n)
        survived = np.empty(0, np.bool_)
        while len(live) and 2**rounds * problem.n <= problem.horizon:  # an agent may still need all arms for itself
            total = 2**rounds  # t
            coordinator.begin_round("shared", live=len(live))
            chosen_from = either if rounds else ()
            question = PullBoth(survived, total, evidence, self.tolerance, free=known, chosen_from=chosen_from)
            answers = coordinator.ask_all(question, GlobalMeans)
            weighted = [problem.weight(agent) * answer.means for agent, answer in enumerate(answers)]
            board.note_means(live, np.sum(weighted, axis=0) / problem.agents)
            values, spread = perturbed(board.means(live), rng), radius(evidence, total, agents * total)
            accepted, rejected = clear_of_border(values, problem.m - board.accepted, spread, self.tolerance)
            board.accept(live[accepted], rounds, "shared")
            board.reject(live[rejected], rounds, "shared")
            survived = ~(accepted | rejected)
            live = settle_rest(board, live[survived], problem.m, rounds, "shared")
            rounds += 1
        out_of_time = 2**rounds * problem.n > problem.horizon
        if len(live):
            guess_rest(board, live, problem.m, rounds - 1, rng)
        coordinator.begin_round("local", live=0)
        time = problem.horizon - problem.n * total
        chosen_from = () if out_of_time else either
        finish = FinishLocal(total, time, evidence, self.tolerance, free=(*known, "time"), chosen_from=chosen_from)
        for agent, answer in enumerate(coordinator.ask_all(finish, LocalTop)):
            board.note_local_top(agent, answer.arms, sure=answer.sure)


def radius(evidence: float, total: int, pulls: float) -> float:
    """Half an interval for a mean over `pulls` pulls, after `total` pulls of an arm by each agent.

    Intervals of n arms are all right, for t = 1, 2, 4, ..., with probability 1 - delta / 3 if the evidence is
    ln(8 n / delta): two sides of n arms, and the sum of 1 / t^2 is 4 / 3.

    >>> round(radius(math.log(8 * 10 / 0.05), total=64, pulls=640), 3)
    0.111
    """
    return math.sqrt((evidence + 2 * math.log(total)) / (2 * pulls))


def clear_of_border(values: Reals, to_accept: int, spread: float, tolerance: float) -> tuple[Flags, Flags]:
    """The arms more than two radii above the best of the others, and those as far below the worst of the best.

    >>> clear_of_border(np.array([0.9, 0.6, 0.5, 0.1]), to_accept=2, spread=0.1, tolerance=0.0)
    (array([ True, False, False, False]), array([False, False, False,  True]))
    """
    top = ~smallest(values, len(values) - to_accept)
    lower, upper = values[~top].max(), values[top].min()
    if upper - lower + tolerance > 2 * spread:
        return top, ~top
    return top & (values - lower > 2 * spread), ~top & (upper - values > 2 * spread)
