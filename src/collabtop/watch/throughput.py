"""How fast a run makes pulls: over its whole time for a chart, and now."""

from collections import deque

from collabtop.watch.thinning import ThinnedSeries

_SECONDS_OF_PACE = 60.0
_MAX_TIMESTAMPS = 600


class Throughput:
    """Pulls over time, from the timestamps in the log, which are about a second apart.

    >>> pace = Throughput()
    >>> for second in range(5):
    ...     pace.add(100.0 + second, pulls=20 * second)
    >>> pace.per_second
    20.0
    """

    def __init__(self) -> None:
        self.points = ThinnedSeries()
        """Time and pulls after a selection of the timestamps."""
        self._recent: deque[tuple[float, int]] = deque(maxlen=_MAX_TIMESTAMPS)

    def add(self, at: float, pulls: int) -> None:
        """Note that so many pulls were made by this time."""
        point = at, pulls
        self.points.add(point)
        self._recent.append(point)
        while len(self._recent) > 2 and self._recent[-1][0] - self._recent[0][0] > _SECONDS_OF_PACE:
            self._recent.popleft()

    @property
    def per_second(self) -> float | None:
        """Pulls per second over the last minute of the log."""
        if len(self._recent) < 2:
            return None
        (start, before), (end, after) = self._recent[0], self._recent[-1]
        return (after - before) / (end - start) if end > start else None
