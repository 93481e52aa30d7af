"""The points of a study as a table for the terminal."""

import json
import math
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table

from collabtop.runs.printing import printable
from collabtop.studies.table import PointSummary


def points_table(points: Sequence[PointSummary]) -> Table:
    """One row per point: the share of wrong answers with its 95% interval, and the mean costs.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1])
    >>> table = ct.Study(arms=arms, algorithms="uniform", agents=2, horizon=30, runs=10).run()
    >>> points_table(table.points()).row_count
    1
    """
    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0))
    several = len({point.arms for point in points}) > 1
    for name in [*(["arms"] if several else []), "algorithm"]:
        table.add_column(name, overflow="fold")
    for name in ("m", "K", "T", "runs", "error", "95% interval", "words", "trips", "time"):
        table.add_column(name, justify="right", no_wrap=True)
    for point, name in zip(points, _names(points), strict=True):
        table.add_row(
            *([printable(point.arms)] if several else []),
            printable(name),
            f"{point.m:,}",
            f"{point.agents:,}",
            f"{point.horizon:,}",
            f"{point.runs:,}",
            f"{point.error:.3f}",
            f"{point.error_low:.3f}-{point.error_high:.3f}",
            *(_mean(cost) for cost in (point.words_mean, point.round_trips_mean, point.time_mean)),
        )
    return table


def _mean(cost: float) -> str:
    return "-" if math.isnan(cost) else f"{cost:,.0f}"


def _names(points: Sequence[PointSummary]) -> list[str]:
    """The algorithm of each point, with the options that vary between points of the same algorithm."""
    options = [json.loads(point.options) for point in points]
    values: dict[tuple[str, str], set[str]] = {}
    for point, given in zip(points, options, strict=True):
        for option, value in given.items():
            values.setdefault((point.algorithm, option), set()).add(json.dumps(value))
    return [
        ", ".join([point.algorithm, *(_text(o, v) for o, v in given.items() if len(values[point.algorithm, o]) > 1)])
        for point, given in zip(points, options, strict=True)
    ]


def _text(option: str, value: object) -> str:
    return value if isinstance(value, str) else f"{option}={value}"
