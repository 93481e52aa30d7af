"""How the pulls of a shared round are divided among the agents, and the sums of their rewards."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TypeVar

import numpy as np

from collabtop.arms.division import Division, EqualDivision
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import SiteError
from collabtop.protocol.messages import CoarseMeans, Flags, Ints, Means, Message, Moments, Pull, PullOpen, Reals
from collabtop.stats import bounds, trimmed_mean

# The same shares are needed in every run of a study; those of more arms than this are not worth the memory.
_CACHED_ARMS = 10_000

_Answer = TypeVar("_Answer", Means, Moments, CoarseMeans)


class AllAgents:
    """Pulls that every agent makes of every live arm, added up over the agents.

    An arm's value is the average over the agents that are still present, weighted if the problem has weights: when an
    agent is lost, its earlier rewards are subtracted again. With `trim`, it is the trimmed mean: the average without
    the `trim` smallest and the `trim` largest of the agents' means. Rewards are stored per agent only if one of these
    needs them.
    """

    def __init__(self, coordinator: Coordinator, trim: int = 0) -> None:
        self._coordinator = coordinator
        self._trim = trim
        self._reported = np.zeros(coordinator.scoreboard.n if trim else 0)  # the trimmed sums so far
        self._pulls_by_arm = np.zeros(coordinator.scoreboard.n if trim else 0)  # by each agent
        self._sums_by_agent: dict[int, Reals] = {}
        self._pulls_by_agent: Counter[int] = Counter()
        self._subtracted: frozenset[int] = coordinator.lost
        self.squares = np.zeros(0)
        """Sums of the squares of the last pulls, after `SendSquares`."""
        self._added: tuple[Reals, int] | None = None  # with weights, what was returned so far of each arm

    def pull(self, live: Ints, times: int, *, all_live: bool = False) -> tuple[Reals, int]:
        """Let every agent pull every live arm `times` times: what to add to the sums and to the pulls of each arm.

        `all_live` means that no arm has been settled yet, which every agent knows, so the list is not sent.
        """
        sums = self._pull_together(live, times, all_live=all_live)
        if sums is not None:
            return sums, times * self._coordinator.agents
        shares = self._shares(live, times)
        arms, free = None if all_live else live, _free_fields(self._coordinator)
        questions: dict[int, Message] = {
            agent: Pull(arms, np.array([count]), _starts(self._coordinator, live, offset), free=free)
            for agent, (offset, count) in shares.items()
        }
        answers = self._coordinator.ask_present(questions, Means)
        return self._add_up(live, shares, answers, (answer.means for answer in answers.values()))

    def _pull_together(self, live: Ints, times: int, *, all_live: bool) -> Reals | None:
        """The same by arrays, if no agent counts differently or is treated apart; None otherwise."""
        coordinator, arms = self._coordinator, len(live)
        agents = coordinator.agents
        if self._by_agent or coordinator.problem.weights is not None or not _can_join(coordinator, arms * agents):
            return None
        division = EqualDivision(arms, agents, [times])
        means = coordinator.ask_together(live, division, ("arms", "times") if all_live else ("times",))
        return None if means is None else division.add_up(means * times)

    def pull_divided(
        self, live: Ints, pulls: int, *, all_live: bool = False, cut_short: bool = False
    ) -> tuple[Reals, int]:
        """Let all agents together pull every live arm `pulls` times, each on different examples, the same for all arms.

        Agents know `pulls` unless the round is cut short, and `SendSquares`: `squares` are then those of these pulls.
        """
        coordinator = self._coordinator
        pulls = coordinator.affordable(live, pulls)
        each, left_over = divmod(pulls, coordinator.agents)
        counts = [each + (agent < left_over) for agent in range(coordinator.agents)]
        shares = {agent: (sum(counts[:agent]), count) for agent, count in enumerate(counts) if count}
        free = ("starts",) if cut_short else ("times", "starts")
        questions: dict[int, Message] = {
            agent: Pull(None if all_live else live, np.array([count]), _starts(coordinator, live, offset), free=free)
            for agent, (offset, count) in shares.items()
        }
        answers = coordinator.ask(questions, Moments)
        self._add_squares(live, shares, answers, lambda answer: answer.squares)
        return self._add_up(live, shares, answers, (answer.means for answer in answers.values()))

    def pull_open(self, live: Ints, survived: Flags | None, times: int, coarseness: float) -> tuple[Reals, int]:
        """The same, with the survivors sent as flags, and means rounded with this coarseness."""
        shares = self._shares(live, times)
        question = PullOpen(survived, times, coarseness, free=("times", "coarseness"))
        answers = self._coordinator.ask_present(dict.fromkeys(shares, question), CoarseMeans)
        self._add_squares(live, shares, answers, CoarseMeans.squares)
        # Many are unpacked one after the other: together they would take K times the memory of the arms.
        few = len(live) * len(answers) <= _CACHED_ARMS
        means = CoarseMeans.all_means(list(answers.values())) if few else map(CoarseMeans.means, answers.values())
        return self._add_up(live, shares, answers, means)

    @property
    def _by_agent(self) -> bool:
        """Whether the rewards of each agent are stored, because they may have to be left out."""
        return self._coordinator.tolerates_loss or self._trim > 0

    def _add_squares(
        self,
        live: Ints,
        shares: Mapping[int, tuple[int, int]],
        answers: Mapping[int, _Answer],
        squares_of: Callable[[_Answer], Reals | None],
    ) -> None:
        self.squares = np.zeros(len(live))
        for agent, answer in answers.items():
            local = squares_of(answer)
            if local is not None:
                self.squares += local * shares[agent][1]

    def _shares(self, live: Ints, times: int) -> dict[int, tuple[int, int]]:
        """By agent: how many pulls of an arm the agents before it make, and how many it makes, if any."""
        coordinator = self._coordinator
        before = int(coordinator.scoreboard.pulls(live).max()) if coordinator.problem.numbered else 0
        shares = {agent: coordinator.problem.share(agent, times, before) for agent in coordinator.present}
        return {agent: (start - before, count) for agent, (start, count) in shares.items() if count}

    def _add_up(
        self,
        live: Ints,
        shares: Mapping[int, tuple[int, int]],
        answers: Mapping[int, _Answer],
        means: Iterable[Reals],
    ) -> tuple[Reals, int]:
        coordinator = self._coordinator
        if shares and not answers:
            raise SiteError("all agents are lost for good")
        sums, pulls, by_agent, problem = np.zeros(len(live)), 0, self._by_agent, coordinator.problem
        for agent, local_means in zip(answers, means, strict=True):
            times = shares[agent][1]
            sums += local_means * (times * problem.weight(agent))
            pulls += times
            self._pulls_by_agent[agent] += times
            if by_agent:
                self._sums_by_agent.setdefault(agent, np.zeros(coordinator.scoreboard.n))[live] += local_means * times
        if coordinator.tolerates_loss and coordinator.problem.weights is not None:
            return self._add_up_again(live)
        for agent in coordinator.lost - self._subtracted:
            if agent in self._sums_by_agent:
                sums -= self._sums_by_agent.pop(agent)[live]
                pulls -= self._pulls_by_agent[agent]
        self._subtracted = coordinator.lost
        return (self._trimmed(live, pulls), pulls) if self._trim else (sums, pulls)

    def _trimmed(self, live: Ints, pulls: int) -> Reals:
        """What to add to the sums so that they give the trimmed means of all pulls so far."""
        if len(self._sums_by_agent) <= 2 * self._trim:
            raise SiteError(
                f"{len(self._sums_by_agent)} agents are left, but at least {2 * self._trim + 1} are needed if "
                f"{self._trim} may lie"
            )
        agents = self._sums_by_agent.items()
        means = np.array([sums[live] / self._pulls_by_agent[agent] for agent, sums in agents])
        self._pulls_by_arm[live] = max(self._pulls_by_agent[agent] for agent, _ in agents)
        total = int(self._coordinator.scoreboard.pulls(live)[0]) + pulls
        before = self._reported[live]
        self._reported[live] = trimmed_mean(means, self._trim) * total
        return self._reported[live] - before

    def inconsistent(self, false_alarm: float, rounds: int) -> frozenset[int]:
        """The agents whose means do not fit those of the others, if at most `trim` agents lie.

        All honest agents see the same arms, so with probability 1 - `false_alarm` the intervals of their means have a
        point in common, for all arms and after any of the `rounds`. It lies in at least K - `trim` intervals: an agent
        whose interval for some arm ends before that can be, or begins after it, is not honest.
        """
        agents, pulls = list(self._sums_by_agent), self._pulls_by_arm
        evidence = math.log(2 * len(agents) * len(pulls) * rounds / false_alarm)
        ends = [bounds(np.clip(self._sums_by_agent[agent] / pulls, 0.0, 1.0), pulls, evidence) for agent in agents]
        low, high = np.array([low for low, _ in ends]), np.array([high for _, high in ends])
        least, most = np.sort(low, axis=0)[-self._trim - 1], np.sort(high, axis=0)[self._trim]
        wrong = ((low > most) | (high < least)).any(axis=1)
        return frozenset(agent for agent, flagged in zip(agents, wrong, strict=True) if flagged)

    def _add_up_again(self, live: Ints) -> tuple[Reals, int]:
        """What is missing to the weighted sums over all present agents: each loss changes the weights of the others."""
        problem, lost = self._coordinator.problem, self._coordinator.lost
        present = [agent for agent in self._sums_by_agent if agent not in lost]
        average = sum(map(problem.weight, present)) / len(present)
        total = sum((problem.weight(agent) / average * self._sums_by_agent[agent] for agent in present), np.zeros(1))
        pulls = sum(self._pulls_by_agent[agent] for agent in present)
        before, pulls_before = self._added or (np.zeros(problem.n), 0)
        self._added = total, pulls
        return (total - before)[live], pulls - pulls_before


def pull_in_turn(coordinator: Coordinator, live: Ints, pulls: int, *, all_live: bool = False) -> tuple[Reals, int]:
    """Pull every live arm `pulls` times, each agent its share of each arm: what to add to the sums and to the pulls.

    Pulls left over after an equal division go to the agents in turn, continuing from arm to arm. Every agent gets the
    list of live arms.
    """
    pulls = coordinator.affordable(live, pulls)
    shares = round_robin_shares if len(live) * coordinator.agents <= _CACHED_ARMS else round_robin_shares.__wrapped__
    if pulls >= coordinator.agents and _can_join(coordinator, len(live) * coordinator.agents):
        division, free_arms = round_robin_division(len(live), pulls, coordinator.agents), ("arms",) if all_live else ()
        means = coordinator.ask_together(live, division, (*free_arms, "times"))
        if means is not None:
            return division.add_up(means * division.divisors), pulls
    times_by_agent = shares(len(live), pulls, coordinator.agents)
    arms, starts, free = None if all_live else live, _starts(coordinator, live, 0), _free_fields(coordinator)
    questions: dict[int, Message] = {}
    for agent, times in enumerate(times_by_agent):
        if times.any():
            questions[agent] = Pull(arms, times, starts, free=free)
        if starts is not None:
            starts = starts + times
    sums = np.zeros(len(live))
    for agent, answer in coordinator.ask(questions, Means).items():
        times = times_by_agent[agent]
        if len(answer.means) == len(live):
            sums += answer.means * times
        else:
            pulled = times > 0
            sums[pulled] += answer.means * times[pulled]
    return sums, pulls


def _can_join(coordinator: Coordinator, pulled: int) -> bool:
    """Whether the pulls of an exchange may be joined: there are few, and they have no numbers."""
    return pulled <= _CACHED_ARMS and not coordinator.problem.numbered


def _starts(coordinator: Coordinator, arms: Ints, offsets: Ints | int) -> Ints | None:
    """The numbers of pulls of these arms, `offsets` after those that the coordinator knows of; None if not needed."""
    return coordinator.scoreboard.pulls(arms) + offsets if coordinator.problem.numbered else None


def _free_fields(coordinator: Coordinator, *fields: str) -> tuple[str, ...]:
    """The fields of a `Pull` that follow from what all know: the times, the starts if there are any, and `fields`."""
    return (*fields, "times", "starts") if coordinator.problem.numbered else (*fields, "times")


@lru_cache(maxsize=256)
def round_robin_shares(arms: int, pulls: int, agents: int) -> list[Ints]:
    """How often each agent pulls each arm under `pull_in_turn`, agent 0 first.

    >>> round_robin_shares(arms=3, pulls=5, agents=2)
    [array([3, 2, 3]), array([2, 3, 2])]
    """
    each, left_over = divmod(pulls, agents)
    first = np.arange(arms) * left_over % agents  # the agent that gets the arm's first left-over pull
    return [each + ((agent - first) % agents < left_over) for agent in range(agents)]


@lru_cache(maxsize=256)
def round_robin_division(arms: int, pulls: int, agents: int) -> Division:
    """The `round_robin_shares` of all agents, one after the other, if each pulls each arm."""
    times = np.concatenate(round_robin_shares(arms, pulls, agents))
    return Division(arms, np.tile(np.arange(arms), agents), times, [arms] * agents)


def pull_balanced(coordinator: Coordinator, live: Ints, pulls: int, *, all_live: bool = False) -> tuple[Reals, int]:
    """Pull every live arm `pulls` times, with BalancedPullDist: what to add to the sums and to the pulls of each arm.

    Each arm is pulled by as few agents as an equal load allows.
    """
    pulls = coordinator.affordable(live, pulls)
    if pulls == 0:
        return np.zeros(len(live)), 0
    if _can_join(coordinator, len(live)):
        division, free = balanced_division(len(live), pulls, coordinator.agents), ("arms",) if all_live else ()
        means = coordinator.ask_together(live, division, (*free, "times"))
        if means is not None:
            return division.add_up(means * division.divisors), pulls
    share_by_agent, questions = _balanced_questions(coordinator, live, pulls, all_live=all_live)
    answers, sums = coordinator.ask_present(questions, Means), np.zeros(len(live))
    for agent, (first, times) in share_by_agent.items():
        span = slice(first, first + len(times))
        if agent in answers:
            sums[span] += answers[agent].means * times
        else:
            sums[span] += _pull_numbered(coordinator, live[span], times, questions[agent].starts)
    return sums, pulls


def pull_balanced_squares(
    coordinator: Coordinator, live: Ints, pulls: int, *, all_live: bool = False
) -> tuple[Reals, int, Reals]:
    """The same with agents that know `SendSquares`, and also what to add to the sums of squares."""
    pulls = coordinator.affordable(live, pulls)
    sums, squares = np.zeros(len(live)), np.zeros(len(live))
    share_by_agent, questions = _balanced_questions(coordinator, live, pulls, all_live=all_live)
    answers = coordinator.ask(questions, Moments)
    for agent, (first, times) in share_by_agent.items():
        span = slice(first, first + len(times))
        sums[span] += answers[agent].means * times
        squares[span] += answers[agent].squares * times
    return sums, pulls, squares


def _balanced_questions(
    coordinator: Coordinator, live: Ints, pulls: int, *, all_live: bool
) -> tuple[dict[int, tuple[int, Ints]], dict[int, Pull]]:
    """By agent: its first arm and the pulls of it and those after it, and the question that asks for them."""
    shares = balanced_shares if len(live) <= _CACHED_ARMS else balanced_shares.__wrapped__
    present = coordinator.present
    share_by_agent = dict(zip(present, shares(len(live), pulls, len(present)), strict=False))
    starts_by_agent = _balanced_starts(coordinator, live, pulls, share_by_agent)
    free = _free_fields(coordinator, *(("arms",) if all_live else ()))
    questions = {
        agent: Pull(live[first : first + len(times)], times, starts_by_agent.get(agent), free=free)
        for agent, (first, times) in share_by_agent.items()
    }
    return share_by_agent, questions


def _balanced_starts(
    coordinator: Coordinator, live: Ints, pulls: int, share_by_agent: Mapping[int, tuple[int, Ints]]
) -> dict[int, Ints]:
    """The numbers of the first pulls of each agent's share; none if pulls need no numbers."""
    if not coordinator.problem.numbered:
        return {}
    starts: dict[int, Ints] = {}
    position = 0  # in the row of all pulls, which the shares divide
    for agent, (first, times) in share_by_agent.items():
        starts[agent] = coordinator.scoreboard.pulls(live[first : first + len(times)])
        starts[agent][0] += position % pulls  # an earlier agent may have begun this arm
        position += int(times.sum())
    return starts


@lru_cache(maxsize=256)
def balanced_shares(arms: int, pulls: int, agents: int) -> list[tuple[int, Ints]]:
    """The `balanced_share` of every agent that has one, agent 0 first.

    >>> balanced_shares(arms=3, pulls=5, agents=2)
    [(0, array([5, 3])), (1, array([2, 5]))]
    """
    shares = [balanced_share(arms, pulls, agents, agent) for agent in range(agents)]
    return [(first, times) for first, times in shares if len(times)]


@lru_cache(maxsize=256)
def balanced_division(arms: int, pulls: int, agents: int) -> Division:
    """The `balanced_shares` of all agents, one after the other.

    >>> division = balanced_division(arms=3, pulls=5, agents=2)
    >>> division.positions, division.times
    (array([0, 1, 1, 2]), array([5, 3, 2, 5]))
    """
    shares = balanced_shares(arms, pulls, agents)
    positions = np.concatenate([np.arange(first, first + len(times)) for first, times in shares])
    return Division(arms, positions, np.concatenate([times for _, times in shares]), [len(t) for _, t in shares])


def balanced_share(arms: int, pulls: int, agents: int, agent: int) -> tuple[int, Ints]:
    """One agent's share under BalancedPullDist: its first arm, and how often to pull it and those after it.

    All pulls of arm 0, then those of arm 1 and so on, are laid in a row, which is cut into equal lengths.

    >>> balanced_share(arms=3, pulls=5, agents=2, agent=0)
    (0, array([5, 3]))
    >>> balanced_share(arms=3, pulls=5, agents=2, agent=1)
    (1, array([2, 5]))
    """
    length = balanced_time(arms, pulls, agents)
    start = min(agent * length, arms * pulls)
    stop = min(start + length, arms * pulls)
    if start == stop:
        return 0, np.empty(0, np.int64)
    first, last = start // pulls, (stop - 1) // pulls
    times = np.full(last - first + 1, pulls)
    times[0] -= start - first * pulls
    times[-1] -= (last + 1) * pulls - stop
    return first, times


def balanced_time(arms: int, pulls: int, agents: int) -> int:
    """Time steps for `pulls` pulls of each of `arms` arms, divided evenly over the agents.

    >>> balanced_time(arms=3, pulls=5, agents=2)
    8
    """
    return -(-arms * pulls // agents)


def pulling_agents(arms: int, pulls: int, agents: int) -> int:
    """How many agents make pulls if `pulls` pulls of each of `arms` arms are divided evenly; the first ones do.

    >>> pulling_agents(arms=3, pulls=5, agents=2), pulling_agents(arms=3, pulls=1, agents=5)
    (2, 3)
    """
    return -(-arms * pulls // max(1, balanced_time(arms, pulls, agents)))


def pull_each(coordinator: Coordinator, arms: Ints, times: Ints) -> Reals:
    """Pull each arm its own number of times, divided evenly over the agents; returns the sums."""
    return _pull_numbered(coordinator, arms, times, _starts(coordinator, arms, 0))


def _pull_numbered(coordinator: Coordinator, arms: Ints, times: Ints, starts: Ints | None) -> Reals:
    """The agents that are present make these pulls, and those of agents that are lost meanwhile; returns the sums."""
    sums, missing = np.zeros(len(arms)), times.copy()
    while missing.any():
        present = coordinator.present
        length = balanced_time(1, int(missing.sum()), max(1, len(present)))
        check_time(coordinator, length)
        ends = np.cumsum(missing)
        shares: dict[int, Ints] = {}
        questions: dict[int, Message] = {}
        for i, agent in enumerate(present):
            low, high = i * length, (i + 1) * length
            begin = np.clip(ends - missing, low, high)
            shares[agent] = share = np.clip(ends, low, high) - begin
            if share.any():
                first = None if starts is None else (starts + times - missing + begin - (ends - missing))[share > 0]
                questions[agent] = Pull(arms[share > 0], share[share > 0], first)
        for agent, answer in coordinator.ask_present(questions, Means).items():
            share = shares[agent]
            sums[share > 0] += answer.means * share[share > 0]
            missing -= share
    return sums


def check_time(coordinator: Coordinator, needed: int) -> None:
    """Raise `SiteError` if the time left does not suffice to replace the pulls of a lost agent."""
    if not coordinator.present:
        raise SiteError("all agents are lost for good")
    if needed > coordinator.time_left:
        raise SiteError(
            f"an agent is lost for good, and replacing its pulls takes {needed:,} time steps, "
            f"but only {max(0, coordinator.time_left):,} are left until the horizon"
        )
