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
from collabtop.intervals import Evidence
from collabtop.runlog.format import Exchange, FailedAttempt, Header, Record, Rewards, Sums, Timestamp
from collabtop.runlog.tally import Tally
from collabtop.runs.evidence import Seen, shown_ends
from collabtop.runs.printing import printable
from collabtop.stats import Z_95
from collabtop.watch.intervals import RewardEvidence, reward_intervals
from collabtop.watch.log_follower import LogFollower
from collabtop.watch.thinning import ThinnedSeries

MAX_PULLS_KEPT = 20_000
"""The most pulls of a candidate that are listed and compared, the latest ones. All are counted."""
ROWS_PER_PAGE = 20
LARGEST_NOTE_SHOWN = 4_000
"""The most characters of a note that are shown."""
MAX_NOTES_KEPT = 1_000
"""The most notes of a candidate that are kept, the latest ones."""
_EXAMPLES = 60
"""How many examples of a candidate are listed."""
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
    """In the user's unit; NaN: the pull failed for good."""
    at: float
    """Seconds since 1970, or NaN."""
    cost: float
    """What it was charged, or NaN."""
    note: str | None
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
        self._noted: deque[Pull] = deque()
        self.pulls_by_agent: Counter[int] = Counter()
        self.attempts_failed = self.retries = 0
        self.last_error: str | None = None
        self.spent: float | None = None
        """What its pulls were charged, if they reported it."""
        self.points = ThinnedSeries()
        """The time and the numbers behind an interval, after some records."""
        self._tally = Tally(1, 0)
        self._at = math.nan
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
                self._tally = Tally(1, record.agents, iid=record.iid, weights=record.weights)
                self._evidence = RewardEvidence(self._tally, record)
            case Timestamp():
                self._at = record.at
            case Rewards():
                self._add_rewards(record)
            case FailedAttempt():
                self._add_failure(record)
            case Sums():
                self._add_sums(record)
            case Exchange():
                self._number_pulls()
                self._evidence.end_batch()

    def _add_rewards(self, record: Rewards) -> None:
        arms, rewards = record.unpack()
        places = np.flatnonzero(arms == self.arm)
        if not len(places):
            return
        own = rewards[places]
        costs, notes, shown = record.unpack_costs(), dict(record.notes), self.unit.shown(own).tolist()
        pulls = [
            Pull(
                record.agent,
                record.first + place,
                reward,
                self._at,
                math.nan if costs is None else float(costs[place]),
                _shortened(notes.get(place)),
            )
            for place, reward in zip(places.tolist(), shown, strict=True)
        ]
        self.kept.extend(pulls)
        self._noted.extend(pull for pull in pulls if pull.note is not None)
        while len(self._noted) > MAX_NOTES_KEPT:
            self._noted.popleft().note = None
        if costs is not None:
            self.spent = (self.spent or 0.0) + float(np.nansum(costs[places]))
        self._tally.add_rewards(record.agent, np.zeros(len(own), np.int64), own, record.failures)
        self._add_point(record.agent, len(own))
        if self.is_paired:
            self._unnumbered.setdefault(record.agent, []).extend(pulls)
            if self.header is not None and (self.header.agents == 1 or not self.header.iid):
                self._number_pulls()

    def _add_failure(self, record: FailedAttempt) -> None:
        labels = None if self.header is None else self.header.labels
        if record.candidate == (labels[self.arm] if labels else str(self.arm)):
            self.attempts_failed += 1
            self.retries += record.again
            self.last_error = _shortened(record.error)

    def _add_sums(self, record: Sums) -> None:
        arms, times, sums = record.unpack()
        own = arms == self.arm
        if own.any():
            squares, pulls = record.unpack_squares(), int(times[own].sum())
            place = np.zeros(np.count_nonzero(own), np.int64)
            own_squares = None if squares is None else squares[own]
            self._tally.add_sums(record.agent, place, times[own], sums[own], pulls, own_squares)
            self._add_point(record.agent, pulls)

    def _add_point(self, agent: int, pulls: int) -> None:
        self.pulls_by_agent[agent] += pulls
        tally, finite = self._tally, self._evidence.evidence()
        numbers = (*Seen.of(tally), tally.means, tally.failed, *(finite or ()))
        self.points.add((self._at, *(float(column[0]) for column in numbers)))

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
    def failed(self) -> int:
        """Pulls that failed for good."""
        return int(self._tally.failed.sum())

    @property
    def is_paired(self) -> bool:
        """Whether the pulls of different candidates use the same examples."""
        return self.header is not None and self.header.paired

    @property
    def unit(self) -> Unit:
        """The unit of the rewards."""
        return DEFAULT_UNIT if self.header is None else self.header.unit

    @property
    def population(self) -> int | None:
        """The number of examples if each is used once."""
        return None if self.header is None else self.header.pull_limit

    def by_example(self) -> dict[Example, Pull]:
        """The pull on each example that was used successfully."""
        return {pull.example: pull for pull in self.kept if pull.example is not None and not math.isnan(pull.reward)}

    def example_name(self, example: Example) -> str:
        """What the page calls an example: its number in the user's list if that is known."""
        owner, replicate = example
        if owner != ALL_AGENTS:
            return f"{replicate} of agent {owner}"
        if self.header is not None and self.population and self.header.arms_class == "DatasetArms":
            lap, position = divmod(replicate, self.population)
            return str(int(example_order(self.header.seed, ALL_AGENTS, lap, self.population)[position]))
        return str(replicate)


def _shortened(text: str | None) -> str | None:
    """A text of unknown origin and length, as the page shows it."""
    if text is None or len(text) <= LARGEST_NOTE_SHOWN:
        return text and printable(text, markup=False)
    return printable(text[:LARGEST_NOTE_SHOWN], markup=False) + "…"


def candidate_view(history: PullHistory, page: int) -> dict[str, Any]:
    """What the page shows about a candidate, with one page of its pulls, newest first."""
    first = page * ROWS_PER_PAGE
    newest = list(islice(reversed(history.kept), first, first + ROWS_PER_PAGE))
    return {
        "pulls": history.pulls,
        "failed": history.failed,
        "attempts_failed": history.attempts_failed,
        "retries": history.retries,
        "last_error": history.last_error,
        "spent": history.spent,
        "points": _points(history),
        "agents": sorted(history.pulls_by_agent.items()),
        "examples": _examples(history),
        "listed": len(history.kept),
        "pages": math.ceil(len(history.kept) / ROWS_PER_PAGE),
        "rows": [_row(history, pull) for pull in newest],
    }


def _points(history: PullHistory) -> list[list[float | None]]:
    """Pulls, mean, both ends of its interval and time, in the user's unit."""
    if not (points := list(history.points)) or history.header is None:
        return []
    times, *numbers = (np.array(column, np.float64) for column in zip(*points, strict=True))
    seen, means, evidence = Seen(numbers[0].astype(np.int64), *numbers[1:3]), numbers[3], numbers[5:]
    failed = numbers[4].astype(np.int64)
    ends = reward_intervals(seen, means, failed, Evidence(*evidence) if evidence else None, history.header)
    columns = seen.pulls, history.unit.shown(means), *shown_ends(ends, history.unit), times
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [[None if math.isnan(number) else number for number in row] for row in rows if not math.isnan(row[1])]


def _examples(history: PullHistory) -> list[tuple[str, int, float]]:
    """Examples with the number of pulls and their mean reward; those on which the candidate did worst come first."""
    rewards: dict[Example, list[float]] = {}
    for pull in history.kept:
        if pull.example is not None and not math.isnan(pull.reward):
            rewards.setdefault(pull.example, []).append(pull.reward)
    sign = -1 if history.unit.direction == "minimize" else 1
    means = {example: math.fsum(values) / len(values) for example, values in rewards.items()}
    worst = sorted(means, key=lambda example: (sign * means[example], example))[:_EXAMPLES]
    return [(history.example_name(example), len(rewards[example]), means[example]) for example in worst]


def _row(history: PullHistory, pull: Pull) -> dict[str, Any]:
    return {
        "agent": pull.agent,
        "number": pull.number,
        "reward": None if math.isnan(pull.reward) else pull.reward,
        "at": None if math.isnan(pull.at) else pull.at,
        "cost": None if math.isnan(pull.cost) else pull.cost,
        "note": pull.note,
        "example": None if pull.example is None else history.example_name(pull.example),
    }


def comparison_view(first: PullHistory, second: PullHistory) -> dict[str, Any]:
    """Two candidates on the examples that both were scored on: the difference, its interval, and where they differ."""
    ours, theirs = first.by_example(), second.by_example()
    pairs = [(example, ours[example], theirs[example]) for example in sorted(ours.keys() & theirs.keys())]
    differences = np.array([one.reward - other.reward for _, one, other in pairs])
    largest = np.argsort(-np.abs(differences), kind="stable")[:_SEPARATING].tolist()
    return {
        "paired": first.is_paired and bool(first.kept) and bool(second.kept),
        "common": len(pairs),
        "exact": len(pairs) == first.population,
        "higher": int((differences > 0).sum()),
        "lower": int((differences < 0).sum()),
        "difference": difference_interval(differences, first.unit, first.population),
        "separating": [_separating(first, *pairs[index]) for index in largest if differences[index]],
    }


def _separating(history: PullHistory, example: Example, one: Pull, other: Pull) -> dict[str, Any]:
    return {
        "example": history.example_name(example),
        "rewards": [one.reward, other.reward],
        "notes": [one.note, other.note],
    }


def difference_interval(
    differences: ArrayLike, unit: Unit = DEFAULT_UNIT, population: int | None = None
) -> list[float | None] | None:
    """The mean of paired differences with its 95% interval; None for fewer than two.

    It is Student's interval. Where all differences are equal, it is that of the rule of three: with probability .95, at
    most three of `count` further examples would differ. Without bounds, equal differences have no interval.

    `population` is the number of examples if each is used once: over all of them, the difference is exact.

    >>> [round(value, 3) for value in difference_interval([0.1, 0.3, 0.2, 0.2])]
    [0.2, 0.071, 0.329]
    >>> [round(value, 3) for value in difference_interval([0.0] * 30)]
    [0.0, -0.1, 0.1]
    >>> difference_interval([1.0]) is None
    True
    """
    values = np.asarray(differences, np.float64)
    count = len(values)
    if count < 2:
        return None
    unused = 1.0 if population is None else max(0.0, 1 - count / population)
    spread, mean = float(values.std(ddof=1)), float(values.mean())
    if spread == 0 and unit.bounds is None:
        return [mean, None, None]
    if spread == 0:
        half = min(1.0, 3 / count) * unused * unit.shown_difference(1.0)
    else:
        half = _student_quantile(count - 1) * spread * math.sqrt(unused / count)
    return [mean, mean - half, mean + half]


def _student_quantile(freedom: int) -> float:
    """The 97.5% quantile of Student's distribution: exact for one and two degrees of freedom, else within 1%.

    >>> [round(_student_quantile(freedom), 2) for freedom in (1, 2, 3, 10, 100)]
    [12.71, 4.3, 3.16, 2.23, 1.98]
    """
    if freedom <= 2:
        return (12.706204736, 4.302652730)[freedom - 1]
    z = Z_95  # the expansion of Cornish and Fisher
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + float(sum(term / freedom**power for power, term in enumerate(terms, 1)))
