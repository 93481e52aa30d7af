"""A growing series of points for a chart, of which only a limited number is kept."""

from collections.abc import Iterator
from typing import Any

_MAX_POINTS = 240


class ThinnedSeries:
    """Points of a curve: when there are too many, every other one is dropped, and fewer are added from then on.

    >>> series = ThinnedSeries(max_points=4)
    >>> for number in range(10):
    ...     series.add(number)
    >>> list(series)
    [3, 7, 9]
    """

    def __init__(self, max_points: int = _MAX_POINTS) -> None:
        self._max_points = max_points
        self._points: list[Any] = []
        self._step, self._count = 1, 0
        self._last: Any = None

    def add(self, point: Any) -> None:
        """Add the next point; the last one added is always part of the series."""
        self._count += 1
        self._last = point
        if self._count % self._step == 0:
            self._points.append(point)
        if len(self._points) > self._max_points:
            self._points = self._points[1::2]
            self._step *= 2

    def __iter__(self) -> Iterator[Any]:
        yield from self._points
        if self._count % self._step:
            yield self._last
