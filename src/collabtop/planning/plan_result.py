"""A plan: which horizon each algorithm needs for an error, and what a run then costs, as data and as tables."""

from typing import Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table

from collabtop.runs.result import plain_text


class PlanRow(msgspec.Struct, frozen=True):
    """What one algorithm needs for one error."""

    algorithm: str
    options: dict[str, Any]
    error: float
    """The probability of a wrong answer that is planned for."""
    bound_horizon: int | None
    """The smallest horizon for which that error is proved; None where there is no proof, or none that reaches it."""
    bound_words: int | None
    """The most words that a run can take, at any horizon; None where there is no such number.

    There is none for an algorithm that stops early, and only the order K log2(n)^2 + m for collab-top-iid.
    """
    bound_round_trips: int | None
    """The most round trips that a run can take, at any horizon."""
    horizon: int | None
    """The horizon at which simulated runs have that error; None if it was not found.

    For an algorithm that stops early, the mean time it takes; None if the limit stopped some of the runs.
    """
    horizon_low: int | None
    """Lower end of its 95% interval; for an algorithm that stops early, 95% of its runs lie between the two."""
    horizon_high: int | None
    words: float | None
    """Mean words of a run near that horizon."""
    bits: float | None
    round_trips: float | None
    runs: int
    """Simulated runs behind this row."""
    note: str
    """A remark on this row, or ""."""

    @property
    def title(self) -> str:
        """The algorithm, with its schedule if it has one."""
        schedule = self.options.get("schedule")
        return f"{self.algorithm}, {schedule}" if schedule else self.algorithm


class Plan(msgspec.Struct, frozen=True):
    """Which horizon gives which error, and what it costs, for each algorithm."""

    n: int
    m: int
    agents: int
    instance: str
    """The arms that were planned for."""
    gap: float
    """The gap between the m-th best arm and the next."""
    complexity: float
    """The sum of 1 / gap^2 over the arms (the paper's H<m>)."""
    rows: tuple[PlanRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain Python objects."""
        data: dict[str, Any] = msgspec.json.decode(self.to_json())
        return data

    def to_json(self) -> str:
        """The plan as JSON."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        return plain_text(self, width=120)

    def __rich__(self) -> Group:
        title = f"The best {self.m:,} of {self.n:,} arms with {self.agents:,} agents: {self.instance}"
        simulated = _table("By simulation", "horizon", "95% interval", "words", "bits", "trips")
        simulated.add_column("note")
        proved = _table("By proof", "enough horizon", "most words", "most trips")
        proved.caption = (
            f"gap at the border {self.gap:.3g}   H {self.complexity:,.4g}   H / K {self.complexity / self.agents:,.4g}"
        )
        for row in self.rows:
            interval = "-" if row.horizon_low is None else f"{row.horizon_low:,} to {row.horizon_high:,}"
            head = row.title, f"{row.error:g}"
            numbers = (row.horizon, interval, row.words, row.bits, row.round_trips)
            simulated.add_row(*head, *map(_shown, numbers), row.note)
            proved.add_row(*head, *map(_shown, (row.bound_horizon, row.bound_words, row.bound_round_trips)))
        if not any(row.runs for row in self.rows):
            return Group(title, "", proved)
        return Group(title, "", simulated, "", proved)


def _table(title: str, *numbers: str) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("algorithm", no_wrap=True)
    for column in ("error", *numbers):
        table.add_column(column, justify="right")
    return table


def _shown(number: float | str | None) -> str:
    if number is None:
        return "-"
    return number if isinstance(number, str) else f"{number:,.0f}"
