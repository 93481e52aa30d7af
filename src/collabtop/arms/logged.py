"""Arms from logged rewards: every row is used at most once, in a random order or in that of the log."""

import csv
import io
from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.arms.base import Arms, Ints, Reals
from collabtop.arms.draws import Draws, row_order
from collabtop.arms.log_rows import LoggedRow, find_columns, grouped, log_in
from collabtop.arms.tables import library_of
from collabtop.arms.unit import Bounds, Direction, Unit
from collabtop.errors import FileError, InputError, PullError
from collabtop.text_files import read_text


class LoggedArms(Arms):
    """Arms whose rewards were logged earlier: each pull uses one row of the log.

    A log is a finite sample: every row is used at most once, by whichever agent, and the mean of all rows of a
    candidate is still an estimate of what it would return. So a horizon that needs more rows than the log has is
    rejected, and a run with a confidence ends without it when the rows are used up.

    Args:
        rewards: one list of rewards per candidate; for non-IID arms, one list per agent for each candidate. Or a log
            with one row per pull: a pandas or polars data frame, or a list of dictionaries.
        candidate: the column of such a log with the candidates; `"candidate"` by default.
        reward: its column with the rewards; `"reward"` by default.
        agent: its column with the agents, each of which then uses its own rows (non-IID); `"agent"` by default, if
            there is such a column.
        labels: the names of the candidates.
        replay: use the rows in the order of the log, instead of a random one. A horizon that needs more rows than the
            log has is then lowered to the largest that does not.
        replace: draw rows with replacement. Draws are then independent, as sites require, and a horizon may be any
            length, but repeated rows tell nothing new: intervals count at most the number of rows, and a confidence
            is rejected.
        weights: for non-IID arms, how much each agent counts in the value of a candidate, such as the number of people
            behind its rewards; equally, if omitted.
        direction: `"maximize"`, or `"minimize"` if small rewards are better: a latency, an error, a price.
        bounds: the smallest and the largest possible reward, or None if there are none.

    >>> import collabtop as ct
    >>> arms = ct.LoggedArms([[0, 1, 0] * 40, [1, 1, 0, 1] * 30], labels=["old", "new"])
    >>> ct.identify(arms, m=1, agents=2, horizon=100, seed=1).top
    ['new']

    A data frame as the log:

    >>> import pandas
    >>> clicks = pandas.DataFrame({"page": ["old", "new"] * 60, "clicked": [0, 1, 1, 1] * 30})
    >>> arms = ct.LoggedArms(clicks, candidate="page", reward="clicked")
    >>> ct.identify(arms, m=1, agents=2, horizon=50, seed=1).best
    'new'
    """

    repeatable: ClassVar[bool] = True

    def __init__(
        self,
        rewards: Any,
        *,
        candidate: str | None = None,
        reward: str | None = None,
        agent: str | None = None,
        labels: Sequence[str] | None = None,
        replay: bool = False,
        replace: bool = False,
        weights: Sequence[float] | None = None,
        direction: Direction = "maximize",
        bounds: Bounds = (0.0, 1.0),
    ) -> None:
        self.unit = unit = Unit(direction, bounds)
        named = {"candidate": candidate, "reward": reward, "agent": agent}
        log = log_in(rewards, named, unit)
        if log is not None:
            if labels is not None:
                raise InputError("labels do not apply here: the log names its candidates", argument="labels")
            self.candidates, self.library = log.candidates, library_of(rewards)
            rewards, labels = log.rewards, [str(value) for value in log.candidates]
        by_agent = bool(len(rewards)) and all(len(of_arm) and np.ndim(of_arm[0]) == 1 for of_arm in rewards)
        table = [
            [
                _checked_rewards(values, f"rewards[{arm}]{f'[{agent}]' if by_agent else ''}", unit)
                for agent, values in enumerate(of_arm if by_agent else [of_arm])
            ]
            for arm, of_arm in enumerate(rewards)
        ]
        if len({len(of_arm) for of_arm in table}) > 1:
            raise InputError("rewards has more agents for some candidates than for others", argument="rewards")
        agents = len(table[0]) if by_agent and table else None
        super().__init__(len(table), labels=labels, agents=agents, weights=weights)
        if replay and replace:
            raise InputError(
                "replace is True, but replayed rows are used once: leave out one of them", argument="replace"
            )
        self._table, self._replay, self._replace = table, replay, replace
        rows = [min(map(len, of_arm)) for of_arm in table]
        self.smallest_sample, self.sample_size = rows.index(min(rows)), min(rows) * (self.agents or 1)
        self.pull_limit = None if replace else self.sample_size
        self.independent, self.lowers_horizon = replace, replay

    def identity(self) -> list[Any]:
        """The rewards belong to the identity."""
        rewards = [[values.tobytes() for values in of_arm] for of_arm in self._table]
        return [*super().identity(), self._replay, self._replace, rewards]

    def totals(self) -> tuple[Reals, Reals, Reals]:
        """For each candidate the number of its rewards, their sum and the sum of their squares, as internal values.

        >>> [total.tolist() for total in LoggedArms([[0, 1, 1], [0.5]]).totals()]
        [[3.0, 1.0], [2.0, 0.5], [2.0, 0.25]]
        """
        rewards = [np.concatenate(of_arm) for of_arm in self._table]
        totals = [(len(values), values.sum(), (values**2).sum()) for values in rewards]
        counts, sums, squares = np.array(totals, np.float64).T
        return counts, sums, squares

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Use the next rows, or draw some."""
        counts = np.broadcast_to(times, arms.shape).tolist()
        batch = zip(arms.tolist(), counts, draws.next_pulls(arms), strict=True)
        rewards = [self._rows(arm, count, first, draws) for arm, count, first in batch]
        if not self._replace:
            draws.count_pulls(arms, times)
        draws.squares = np.array([rows @ rows for rows in rewards], np.float64)
        return np.array([rows.sum() for rows in rewards], np.float64)

    def _rows(self, arm: int, count: int, first: int, draws: Draws) -> Reals:
        owner = 0 if self.iid else draws.agent
        if owner >= len(self._table[arm]):
            raise PullError(f"the rewards are for {self.agents} agents, but agent {draws.agent} asked for one", "")
        rewards = self._table[arm][owner]
        if self._replace:
            drawn: Reals = rewards[draws.bulk.integers(len(rewards), size=count)]
            return drawn
        if first + count > len(rewards):
            label, whose = self.label(arm), "" if self.iid else f" of agent {draws.agent}"
            raise PullError(
                f"candidate {label!r} has {len(rewards)} logged rewards{whose}, but {first + count} pulls were "
                "requested: log more, or lower the horizon",
                label,
            )
        span = slice(first, first + count)
        return rewards[span if self._replay else row_order(draws.seed, arm, owner, len(rewards))[span]]


def read_rewards(
    path: str | PathLike[str],
    *,
    candidate: str | None = None,
    reward: str | None = None,
    agent: str | None = None,
    replay: bool = False,
    replace: bool = False,
    weights: Sequence[float] | None = None,
    direction: Direction = "maximize",
    bounds: Bounds = (0.0, 1.0),
) -> LoggedArms:
    r"""Read a CSV file of logged rewards: one row per pull, with columns candidate, reward and optionally agent.

    `candidate`, `reward` and `agent` name the columns, if they have other names. If there is a column `agent`, each
    agent uses its own rows (non-IID). `replay` and `replace` are those of `LoggedArms`. `weights` has one number per
    agent, in the order of their names: short ones first, then by alphabet.

    >>> import collabtop as ct, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rewards.csv"
    >>> _ = path.write_text("page,clicked\nold,0\nnew,1\nold,1\nnew,1\n")
    >>> ct.read_rewards(path, candidate="page", reward="clicked").labels
    ('old', 'new')
    """
    unit = Unit(direction, bounds)
    header, rows = _rows(path)
    try:
        columns = find_columns(header, {"candidate": candidate, "reward": reward, "agent": agent})
    except InputError as error:
        raise FileError(f"{path}, line 1: {error}", argument=error.argument) from None
    logged = [
        LoggedRow(
            row[columns["candidate"]].strip(),
            _reward(row[columns["reward"]], f"{path}, line {line}", unit),
            row[columns["agent"]].strip() if "agent" in columns else "",
        )
        for line, row in rows
    ]
    if not logged:
        raise FileError(f"{path}: the file has no rewards")
    try:
        log = grouped(logged)
    except InputError as error:
        raise FileError(f"{path}: {error}", argument=error.argument) from None
    return LoggedArms(
        log.rewards,
        labels=log.candidates,
        replay=replay,
        replace=replace,
        weights=weights,
        direction=direction,
        bounds=bounds,
    )


def _rows(path: str | PathLike[str]) -> tuple[list[str], list[tuple[int, list[str]]]]:
    reader = csv.reader(io.StringIO(read_text(path), newline=None), skipinitialspace=True)
    rows = [(reader.line_num, row) for row in reader if row]
    if not rows:
        raise FileError(f"{path}: the file has no rewards")
    header = [cell.strip() for cell in rows[0][1]]
    for line, row in rows[1:]:
        if len(row) != len(header):
            raise FileError(f"{path}, line {line}: {len(row)} columns, but line 1 has {len(header)}")
    return header, rows[1:]


def _reward(cell: str, where: str, unit: Unit) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise FileError(f"{where}: found {cell!r:.80}, but a number is needed") from None
    if fault := unit.fault(value):
        raise FileError(f"{where}: found {fault}")
    return value


def _checked_rewards(values: ArrayLike, name: str, unit: Unit) -> Reals:
    """Rewards as internal values; `name` is what an error calls them."""
    try:
        rewards = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is {values!r:.80}, but numbers are needed", argument="rewards") from None
    if rewards.ndim != 1 or not len(rewards):
        raise InputError(f"{name} is empty, but each candidate needs at least 1 reward", argument="rewards")
    if (fault := unit.first_fault(rewards)) is not None:
        raise InputError(f"{name}[{fault[0]}] is {fault[1]}", argument="rewards")
    return unit.internal(rewards)
