"""Rewards that were logged before, as arms: drawn from with replacement, or replayed."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from collabtop.arms.base import Arms, Ints, Reals
from collabtop.arms.draws import Draws
from collabtop.errors import FileError, InputError, PullError, reason
from collabtop.problem import as_means

_NAMES = {
    "candidate": ("candidate", "arm", "label", "name"),
    "reward": ("reward", "score"),
    "agent": ("agent", "site"),
}


class LoggedArms(Arms):
    """Arms whose rewards are on file: a pull draws one of a candidate's rewards, or replays the next one.

    Args:
        rewards: for each candidate its rewards; or, non-IID, for each candidate a list of rewards for each agent.
        labels: what to call the candidates.
        replay: give each reward once, in order, instead of drawing with replacement. When they are used up, the
            run stops.
        dealt_to: with `replay` and IID rewards, the number of agents: agent k replays every K-th reward from
            its k-th on, so that no reward is used twice.

    >>> import collabtop as ct
    >>> arms = ct.LoggedArms([[0, 1, 0], [1, 1, 0, 1]], labels=["old", "new"])
    >>> ct.identify(arms, m=1, agents=2, horizon=200, seed=1).top
    ['new']
    """

    repeatable: ClassVar[bool] = True

    def __init__(
        self,
        rewards: Sequence[Any],
        *,
        labels: Sequence[str] | None = None,
        replay: bool = False,
        dealt_to: int | None = None,
    ) -> None:
        by_agent = bool(len(rewards)) and all(len(it) and np.ndim(it[0]) == 1 for it in rewards)
        table = [
            [_rewards(some, f"rewards[{arm}]") for some in (it if by_agent else [it])] for arm, it in enumerate(rewards)
        ]
        if len({len(it) for it in table}) > 1:
            raise InputError("rewards has more agents for some candidates than for others", argument="rewards")
        super().__init__(len(table), labels=labels, agents=len(table[0]) if by_agent and table else None)
        if replay and not by_agent and dealt_to is None:
            raise InputError(
                "dealt_to is missing: replayed rewards are dealt to so many agents, such as dealt_to=10",
                argument="dealt_to",
            )
        if replay and dealt_to is not None and not by_agent:
            table = [[it[0][agent::dealt_to] for agent in range(dealt_to)] for it in table]
        self._table, self._replay = table, replay

    def identity(self) -> list[Any]:
        """The rewards belong to it."""
        return [*super().identity(), self._replay, [[some.tobytes() for some in it] for it in self._table]]

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Draw, or take the next ones."""
        take = self._next if self._replay else self._draw
        pairs = zip(arms.tolist(), np.broadcast_to(times, arms.shape).tolist(), strict=True)
        return np.array([take(arm, count, draws) for arm, count in pairs], np.float64)

    def _of(self, arm: int, agent: int) -> Reals:
        lists = self._table[arm]
        if len(lists) > 1 and agent >= len(lists):
            raise PullError(f"the rewards are dealt to {len(lists)} agents, but there is an agent {agent}", "")
        return lists[agent if len(lists) > 1 else 0]

    def _draw(self, arm: int, count: int, draws: Draws) -> float:
        rewards = self._of(arm, draws.agent)
        return float(rewards[draws.bulk.integers(len(rewards), size=count)].sum())

    def _next(self, arm: int, count: int, draws: Draws) -> float:
        rewards, first = self._of(arm, draws.agent), draws.made_of[arm]
        if first + count > len(rewards):
            label = self.label(arm)
            raise PullError(
                f"candidate {label!r} has {len(rewards)} logged rewards for agent {draws.agent}, but {first + count} "
                "pulls were asked for: log more, lower the horizon, or draw with replacement",
                label,
            )
        draws.made_of[arm] += count
        return float(rewards[first : first + count].sum())


def read_rewards(path: str | PathLike[str], *, replay: bool = False, dealt_to: int | None = None) -> LoggedArms:
    r"""Read a CSV file of logged rewards: one row a pull, with columns candidate, reward and perhaps agent.

    With a column `agent`, each agent draws from its own rows (non-IID).

    >>> import collabtop as ct, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rewards.csv"
    >>> _ = path.write_text("candidate,reward\nold,0\nnew,1\nold,1\nnew,1\n")
    >>> ct.read_rewards(path).labels
    ('old', 'new')
    """
    columns, rows = _rows(path)
    rewards: dict[str, dict[str, list[float]]] = {}
    for line, row in rows:
        agent = row[columns["agent"]].strip() if "agent" in columns else ""
        value = _reward(row[columns["reward"]], f"{path}, line {line}")
        rewards.setdefault(row[columns["candidate"]].strip(), {}).setdefault(agent, []).append(value)
    if not rewards:
        raise FileError(f"{path}: no rewards in it")
    labels = list(rewards)
    if "agent" not in columns:
        return LoggedArms([it[""] for it in rewards.values()], labels=labels, replay=replay, dealt_to=dealt_to)
    agents = sorted({agent for it in rewards.values() for agent in it}, key=lambda name: (len(name), name))
    for label, it in rewards.items():
        missing = [agent for agent in agents if agent not in it]
        if missing:
            raise FileError(f"{path}: candidate {label!r} has no reward of agent {missing[0]!r}")
    return LoggedArms([[it[agent] for agent in agents] for it in rewards.values()], labels=labels, replay=replay)


def _rows(path: str | PathLike[str]) -> tuple[dict[str, int], list[tuple[int, list[str]]]]:
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileError(f"{path}: {reason(error)}") from None
    except UnicodeDecodeError:
        raise FileError(f"{path}: not UTF-8 text") from None
    reader = csv.reader(io.StringIO(text), skipinitialspace=True)
    rows = [(reader.line_num, row) for row in reader if row]
    if not rows:
        raise FileError(f"{path}: no rewards in it")
    header = [cell.strip().lower() for cell in rows[0][1]]
    columns = {what: header.index(name) for what, names in _NAMES.items() for name in names if name in header}
    for needed in ("candidate", "reward"):
        if needed not in columns:
            raise FileError(f"{path}, line 1: no column {needed!r} in {', '.join(header)!r:.80}")
    for line, row in rows[1:]:
        if len(row) != len(header):
            raise FileError(f"{path}, line {line}: {len(row)} columns, but line 1 has {len(header)}")
    return columns, rows[1:]


def _reward(cell: str, where: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise FileError(f"{where}: found {cell!r:.80}, but a reward lies in [0, 1]")
    return value


def _rewards(values: ArrayLike, name: str) -> Reals:
    rewards = as_means(values, name)
    if rewards.ndim != 1 or not len(rewards):
        raise InputError(f"{name} has no rewards, but each candidate needs some", argument="rewards")
    return rewards
