"""The pulls of single candidates, read from a run's log when a page asks for them, and compared pair by pair."""

import math
import threading
import time
from collections import Counter, deque
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from collabtop.arms.draws import ALL_AGENTS, example_order
from collabtop.arms.unit import DEFAULT_UNIT, Unit
from collabtop.runlog.format import Exchange, Header, Record, Rewards, Sums, Timestamp
from collabtop.stats import Z_95, wilson_interval
from collabtop.watch.log_follower import LogFollower
from collabtop.watch.thinning import ThinnedSeries

MAX_PULLS_KEPT = 20_000
"""The most pulls of a candidate that are listed and compared, the latest ones. All are counted."""
ROWS_PER_PAGE = 20
_SEPARATING = 20
"""How many examples that separate two candidates are listed."""

Example = tuple[int, int]
"""The owner of an example (`ALL_AGENTS` if all agents share it), and its position in the order common to all arms."""


class Pull(msgspec.Struct):
    """One pull of a candidate."""

    agent: int
    number: int
    """Counted over all pulls of the agent."""
    reward: float
    """As an internal value; NaN: the pull failed for good."""
    at: float
    """Seconds since 1970, or NaN."""
    example: Example | None = None
    """Known if the arms are paired, once the exchange is complete."""


class PullHistory:
    """The pulls of one candidate as far as the log was read."""

    def __init__(self, path: Path, arm: int) -> None:
        self.arm = arm
        self._path = path
        self.lock = threading.Lock()
        """Must be held to use it."""
        self._restart()

    def _restart(self) -> None:
        self._follower = LogFollower(self._path)
        self.header: Header | None = None
        self.kept: deque[Pull] = deque(maxlen=MAX_PULLS_KEPT)
        """The latest pulls whose rewards the log holds one by one."""
        self.pulls_by_agent: Counter[int] = Counter()
        self.failed = 0
        self.points = ThinnedSeries()
        """Pulls, those that failed, mean and time, after a selection of the records."""
        self._total, self._at = 0.0, math.nan
        self._unnumbered: dict[int, list[Pull]] = {}
        self._next_replicate: Counter[int] = Counter()

    def update(self, seconds: float) -> bool:
        """Read on for at most so long; whether the log was read to its end."""
        deadline = time.monotonic() + seconds
        while True:
            records = self._follower.read()
            if self._follower.restarted:
                self._restart()
                continue
            for record in records:
                self._add(record)
            if not self._follower.has_more:
                return True
            if time.monotonic() > deadline:
                return False

    def _add(self, record: Record) -> None:
        match record:
            case Header():
                self.header = record
            case Timestamp():
                self._at = record.at
            case Rewards():
                self._add_rewards(record)
            case Sums():
                self._add_sums(record)
            case Exchange():
                self._number_pulls()

    def _add_rewards(self, record: Rewards) -> None:
        arms, rewards = record.unpack()
        places = np.flatnonzero(arms == self.arm)
        if not len(places):
            return
        own = rewards[places]
        pulls = [
            Pull(record.agent, record.first + place, reward, self._at)
            for place, reward in zip(places.tolist(), own.tolist(), strict=True)
        ]
        self.kept.extend(pulls)
        failed = np.isnan(own)
        self.failed += int(failed.sum())
        self._count(record.agent, len(own), float(own[~failed].sum()))
        if self.is_paired:
            self._unnumbered.setdefault(record.agent, []).extend(pulls)
            if self.header is not None and (self.header.agents == 1 or not self.header.iid):
                self._number_pulls()

    def _add_sums(self, record: Sums) -> None:
        arms, times, sums = record.unpack()
        own = arms == self.arm
        if own.any():
            self._count(record.agent, int(times[own].sum()), float(sums[own].sum()))

    def _count(self, agent: int, pulls: int, total: float) -> None:
        self.pulls_by_agent[agent] += pulls
        self._total += total
        if self.pulls > self.failed:
            self.points.add((self.pulls, self.failed, self._total / (self.pulls - self.failed), self._at))

    def _number_pulls(self) -> None:
        """Find the examples of an exchange's pulls: agents that share examples use them in the order of the agents."""
        for agent in sorted(self._unnumbered):
            owner = ALL_AGENTS if self.header is not None and self.header.iid else agent
            for pull in self._unnumbered[agent]:
                pull.example = owner, self._next_replicate[owner]
                self._next_replicate[owner] += 1
        self._unnumbered.clear()

    @property
    def pulls(self) -> int:
        """All pulls."""
        return self.pulls_by_agent.total()

    @property
    def is_paired(self) -> bool:
        """Whether the pulls of different candidates use the same examples."""
        return self.header is not None and self.header.paired

    @property
    def population(self) -> int | None:
        """The number of examples if each is used once."""
        return None if self.header is None else self.header.pull_limit

    @property
    def unit(self) -> Unit:
        """The unit of the user's rewards."""
        return DEFAULT_UNIT if self.header is None else self.header.unit

    def rewards_by_example(self) -> dict[Example, float]:
        """The reward on each example that was used successfully; on the latest lap, if there were several."""
        return {
            pull.example: pull.reward for pull in self.kept if pull.example is not None and not math.isnan(pull.reward)
        }

    def example_name(self, example: Example) -> str:
        """What the page calls an example: its number in the user's list if that is known."""
        owner, replicate = example
        if owner != ALL_AGENTS:
            return f"{replicate} of agent {owner}"
        if self.header is not None and self.population and self.header.arms_class == "DatasetArms":
            lap, position = divmod(replicate, self.population)
            return str(int(example_order(self.header.seed, ALL_AGENTS, lap, self.population)[position]))
        return str(replicate)


def candidate_view(history: PullHistory, page: int) -> dict[str, Any]:
    """What the page shows about a candidate, with one page of its pulls, newest first."""
    first = page * ROWS_PER_PAGE
    newest = list(islice(reversed(history.kept), first, first + ROWS_PER_PAGE))
    return {
        "pulls": history.pulls,
        "failed": history.failed,
        "points": [_point(history, *point) for point in history.points],
        "agents": sorted(history.pulls_by_agent.items()),
        "listed": len(history.kept),
        "pages": math.ceil(len(history.kept) / ROWS_PER_PAGE),
        "rows": [_row(history, pull) for pull in newest],
    }


def _point(history: PullHistory, pulls: int, failed: int, mean: float, at: float) -> list[float | None]:
    unit = history.unit
    ends: tuple[float | None, float | None] = None, None
    if unit.bounded:
        ends = unit.shown_interval(*wilson_interval(mean, pulls - failed, population=history.population))
    return [pulls, unit.shown(mean), *ends, None if math.isnan(at) else at]


def _row(history: PullHistory, pull: Pull) -> dict[str, Any]:
    return {
        "agent": pull.agent,
        "number": pull.number,
        "reward": None if math.isnan(pull.reward) else history.unit.shown(pull.reward),
        "at": None if math.isnan(pull.at) else pull.at,
        "example": None if pull.example is None else history.example_name(pull.example),
    }


def comparison_view(first: PullHistory, second: PullHistory) -> dict[str, Any]:
    """Two candidates on the examples that both were scored on: the difference, its interval, and where they differ."""
    ours, theirs, unit = first.rewards_by_example(), second.rewards_by_example(), first.unit
    pairs = [(example, ours[example], theirs[example]) for example in sorted(ours.keys() & theirs.keys())]
    differences = np.array([one - other for _, one, other in pairs])
    separating = sorted(pairs, key=lambda pair: -abs(pair[1] - pair[2]))[:_SEPARATING]
    return {
        "paired": first.is_paired and bool(first.kept) and bool(second.kept),
        "common": len(pairs),
        "better": int((differences > 0).sum()),
        "worse": int((differences < 0).sum()),
        "difference": difference_interval(unit.shown(differences) - unit.shown(0.0), first.population),
        "separating": [
            [first.example_name(example), unit.shown(one), unit.shown(other)]
            for example, one, other in separating
            if one != other
        ],
    }


def difference_interval(differences: ArrayLike, population: int | None = None) -> list[float] | None:
    """The mean of paired differences with its 95% interval; None for fewer than two.

    `population` is the number of examples if each is used once: over all of them, the difference is exact.

    >>> [round(value, 3) for value in difference_interval([0.1, 0.3, 0.2, 0.2])]
    [0.2, 0.12, 0.28]
    >>> difference_interval([1.0]) is None
    True
    """
    values = np.asarray(differences, np.float64)
    count = len(values)
    if count < 2:
        return None
    unseen = 1.0 if population is None else max(0.0, 1 - count / population)
    half = Z_95 * float(values.std(ddof=1)) * math.sqrt(unseen / count)
    mean = float(values.mean())
    return [mean, mean - half, mean + half]
