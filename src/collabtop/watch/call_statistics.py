"""How fast and how well a run makes its calls: pulls and cost over time, latency, and failed attempts by kind."""

import re
from collections import Counter, deque

import numpy as np

from collabtop.protocol.messages import Reals
from collabtop.runlog.format import FailedAttempt, Header, Record, Rewards, Timestamp
from collabtop.watch.thinning import ThinnedSeries

_SECONDS_OF_PACE = 60.0
_MAX_TIMESTAMPS = 600
_MAX_LATENCIES = 2_000
MAX_ERROR_KINDS = 20
"""The most kinds of errors that are counted apart."""
_KIND = re.compile(r"raised (\w{1,60})")


class CallStatistics:
    """What the records of a log say about the calls of the user's function.

    >>> calls = CallStatistics()
    >>> for second in range(5):
    ...     calls.add(Timestamp(100.0 + second), pulls=20 * second)
    >>> calls.per_second
    20.0
    """

    def __init__(self) -> None:
        self.points = ThinnedSeries()
        """Time, pulls and cost after a selection of the timestamps."""
        self.errors: Counter[str] = Counter()
        """Failed attempts by the kind of error."""
        self.spent: Reals | None = None
        """What the pulls of each candidate were charged, once a pull has reported it."""
        self.waited = 0.0
        """Seconds that all calls together waited for rate limits."""
        self._n = 0
        self._cost = 0.0
        self._recent: deque[tuple[float, int, float]] = deque(maxlen=_MAX_TIMESTAMPS)
        self._latencies: deque[float] = deque(maxlen=_MAX_LATENCIES)

    def add(self, record: Record, pulls: int) -> None:
        """Add a record; `pulls` is the number of pulls up to it."""
        match record:
            case Header():
                self._n = record.n
            case Timestamp():
                self._add_time(record.at, pulls)
            case Rewards():
                self._add_rewards(record)
            case FailedAttempt():
                kind = _kind_of(record.error)
                self.errors[kind if kind in self.errors or len(self.errors) < MAX_ERROR_KINDS else "others"] += 1

    def _add_time(self, at: float, pulls: int) -> None:
        point = at, pulls, self._cost
        self.points.add(point)
        self._recent.append(point)
        while len(self._recent) > 2 and self._recent[-1][0] - self._recent[0][0] > _SECONDS_OF_PACE:
            self._recent.popleft()

    def _add_rewards(self, record: Rewards) -> None:
        self.waited += record.waited
        if record.seconds:
            self._latencies.append(record.seconds / record.pulls)
        costs = record.unpack_costs()
        if costs is not None:
            if self.spent is None:
                self.spent = np.zeros(self._n)
            np.add.at(self.spent, record.unpack()[0], np.nan_to_num(costs))
            self._cost += float(np.nansum(costs))

    @property
    def per_second(self) -> float | None:
        """Pulls per second over the last minute of the log."""
        return self._pace(1)

    @property
    def cost_per_minute(self) -> float | None:
        """What pulls were charged per minute, over the last minute of the log."""
        pace = self._pace(2)
        return None if pace is None or self.spent is None else 60 * pace

    def _pace(self, column: int) -> float | None:
        if len(self._recent) < 2:
            return None
        before, after = self._recent[0], self._recent[-1]
        return (after[column] - before[column]) / (after[0] - before[0]) if after[0] > before[0] else None

    @property
    def latency(self) -> list[float] | None:
        """Seconds per call: the median, the 90% and the 99% quantile of the latest records; None if unknown."""
        if not self._latencies:
            return None
        quantiles: list[float] = np.quantile(self._latencies, (0.5, 0.9, 0.99)).tolist()
        return quantiles


def _kind_of(error: str) -> str:
    """The kind of an error: the name of the exception, or that the reward was not valid.

    >>> _kind_of("raised TimeoutError: no answer"), _kind_of("returned 7, but a reward lies in [0, 1]")
    ('TimeoutError', 'invalid reward')
    """
    raised = _KIND.match(error)
    return raised[1] if raised else "invalid reward" if error.startswith("returned") else "others"
