"""The live arms of a run as bars in a terminal, one bar per round."""

import math
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from collabtop.display.round_outcomes import MEANINGS, RoundOutcome, round_outcomes
from collabtop.runs.result import Result

_WIDTH = 24  # keeps the table within 80 columns


class _Part(NamedTuple):
    field: str
    mark: str
    ascii: str  # for terminals without Unicode
    style: str


_PARTS = (
    _Part("kept", "█", "#", "blue"),
    _Part("accepted", "▓", "+", "green"),
    _Part("rejected", "░", ".", "red"),
    _Part("inside", "▒", ":", "yellow"),
)


class LiveArmsBars:
    """Bars of the arms kept, accepted, rejected and settled inside agents, round by round.

    The length of a bar is the logarithm of the number of open arms. The parts of a bar are drawn to scale, but each
    part that is not empty is at least one cell wide. Print it with Rich.

    >>> import collabtop as ct
    >>> from rich.console import Console
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1, 0.2])
    >>> result = ct.identify(arms, m=1, agents=2, horizon=400, algorithm="kzz", seed=1)
    >>> Console(width=100).print(LiveArmsBars(result))                                      # doctest: +SKIP
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        for name in ("round", "phase", "live"):
            table.add_column(name, justify="right" if name == "live" else "left")
        table.add_column("outcome", min_width=_WIDTH, no_wrap=True)
        for part in _PARTS:
            table.add_column(part.field, justify="right")
        for outcome in round_outcomes(self._result):
            counts = [f"{getattr(outcome, part.field):,}" for part in _PARTS]
            bar = _bar(outcome, self._result.n, ascii_only=options.ascii_only)
            table.add_row(str(outcome.round), outcome.phase, f"{outcome.live:,}", bar, *counts)
        yield Text(f"\n{self._result.algorithm}, round by round", "bold")
        yield table
        yield _legend(ascii_only=options.ascii_only)


def _legend(*, ascii_only: bool) -> Text:
    legend = Text()
    for part in _PARTS:
        legend.append(part.ascii if ascii_only else part.mark, part.style)
        legend.append(f" {MEANINGS[part.field]}  ")
    return legend


def _bar(outcome: RoundOutcome, most: int, *, ascii_only: bool) -> Text:
    length = max(1, round(_WIDTH * math.log2(1 + outcome.live) / math.log2(1 + most)))
    cells = divide_bar([getattr(outcome, part.field) for part in _PARTS], length)
    bar = Text()
    for part, count in zip(_PARTS, cells, strict=True):
        bar.append((part.ascii if ascii_only else part.mark) * count, part.style)
    return bar


def divide_bar(counts: list[int], length: int) -> list[int]:
    """Divide a bar in proportion to the counts, with at least one cell per count above zero.

    >>> divide_bar([73, 1, 73, 0], length=20)
    [9, 1, 10, 0]
    """
    total = sum(counts)
    cells = [0 if count == 0 else max(1, round(length * count / total)) for count in counts]
    largest = cells.index(max(cells))
    cells[largest] = max(1, cells[largest] + length - sum(cells))
    return cells
