"""The same picture for a terminal: one bar a round, as long as the arms it began with are many."""

from __future__ import annotations

import math
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from collabtop.display.round_outcomes import RoundOutcome, round_outcomes
from collabtop.runs.result import Result

_WIDTH = 24  # so that all fits into 80 columns


class _Part(NamedTuple):
    name: str
    meaning: str
    mark: str
    plain: str  # for terminals without Unicode
    style: str


_PARTS = (
    _Part("kept", "still open", "█", "#", "blue"),
    _Part("accepted", "accepted", "▓", "+", "green"),
    _Part("rejected", "rejected", "░", ".", "red"),
    _Part("inside", "settled inside an agent", "▒", ":", "yellow"),
)


class SettlingBars:
    """Bars of the arms kept, accepted, rejected and settled inside agents, round by round.

    A bar's length is the logarithm of the arms that were open; inside it, shares are true to scale, and
    nothing that happened is too small to be seen. `print` it with Rich.

    >>> import collabtop as ct
    >>> from rich.console import Console
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1, 0.2])
    >>> result = ct.identify(arms, m=1, agents=2, horizon=400, algorithm="kzz", seed=1)
    >>> Console(width=100).print(SettlingBars(result))                                      # doctest: +SKIP
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        for name in ("round", "phase", "live"):
            table.add_column(name, justify="right" if name == "live" else "left")
        table.add_column("what became of them", min_width=_WIDTH, no_wrap=True)
        for part in _PARTS:
            table.add_column(part.name, justify="right")
        for step in round_outcomes(self._result):
            counts = [f"{getattr(step, part.name):,}" for part in _PARTS]
            bar = _bar(step, self._result.n, plain=options.ascii_only)
            table.add_row(str(step.round), step.phase, f"{step.live:,}", bar, *counts)
        yield Text(f"\n{self._result.algorithm}, round by round", "bold")
        yield table
        yield _legend(options.ascii_only)


def _legend(plain: bool) -> Text:
    legend = Text()
    for part in _PARTS:
        legend.append(part.plain if plain else part.mark, part.style)
        legend.append(f" {part.meaning}  ")
    return legend


def _bar(step: RoundOutcome, most: int, *, plain: bool) -> Text:
    length = max(1, round(_WIDTH * math.log2(1 + step.live) / math.log2(1 + most)))
    cells = shares([getattr(step, part.name) for part in _PARTS], length)
    bar = Text()
    for part, count in zip(_PARTS, cells, strict=True):
        bar.append((part.plain if plain else part.mark) * count, part.style)
    return bar


def shares(counts: list[int], length: int) -> list[int]:
    """Divide a bar: in proportion, but at least one cell for what is there at all.

    >>> shares([73, 1, 73, 0], length=20)
    [9, 1, 10, 0]
    """
    total = sum(counts)
    cells = [0 if count == 0 else max(1, round(length * count / total)) for count in counts]
    largest = cells.index(max(cells))
    cells[largest] = max(1, cells[largest] + length - sum(cells))
    return cells
