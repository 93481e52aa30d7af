"""A log with one row per pull: which columns hold candidate, reward and agent, and the rewards of each candidate."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from collabtop.arms.calls import reward_fault
from collabtop.arms.tables import library_of
from collabtop.arms.unit import Unit
from collabtop.errors import InputError

_DEFAULT_NAMES = {
    "candidate": ("candidate", "arm", "label", "name"),
    "reward": ("reward", "score"),
    "agent": ("agent", "site"),
}


class LoggedRow(NamedTuple):
    """One pull of a log."""

    candidate: Any
    reward: float
    agent: Any = ""


class LoggedRewards(NamedTuple):
    """The rewards of a log by candidate and, if it has a column for them, by agent."""

    candidates: list[Any]
    rewards: list[Any]


def find_columns(header: Sequence[Any], named: Mapping[str, str | None]) -> dict[str, int]:
    """The position of the columns candidate, reward and, if there is one, agent.

    `named` has the names that the user gave; without one, the usual names are looked for, in any case.

    >>> find_columns(["Time", "Arm", "clicked"], {"candidate": None, "reward": "clicked", "agent": None})
    {'candidate': 1, 'reward': 2}
    """
    columns, lowered = {}, [str(name).lower() for name in header]
    for column, usual in _DEFAULT_NAMES.items():
        name = named[column]
        if name is not None and name not in header:
            raise InputError(f"{column} is {name!r}, but {_there_are(header)}", argument=column)
        if name is not None:
            columns[column] = header.index(name)
        elif known := [lowered.index(name) for name in usual if name in lowered]:
            columns[column] = known[0]
        elif column != "agent":
            raise InputError(f"no column {column!r}: {_there_are(header)}. Name it with {column}=", argument=column)
    return columns


def _there_are(header: Sequence[Any]) -> str:
    return f"the columns are {', '.join(map(str, header))!r:.80}"


def grouped(rows: Iterable[LoggedRow]) -> LoggedRewards:
    """The rewards of each candidate, in the order in which candidates first occur.

    Agents are in the order of their names: short ones first, then by alphabet.
    """
    rewards: dict[Any, dict[Any, list[float]]] = {}
    for row in rows:
        rewards.setdefault(row.candidate, {}).setdefault(row.agent, []).append(row.reward)
    agents = sorted({agent for own in rewards.values() for agent in own}, key=lambda name: (len(str(name)), str(name)))
    if agents == [""]:
        return LoggedRewards(list(rewards), [own[""] for own in rewards.values()])
    for candidate, own in rewards.items():
        missing = [agent for agent in agents if agent not in own]
        if missing:
            raise InputError(f"candidate {candidate!r} has no reward of agent {missing[0]!r}", argument="agent")
    return LoggedRewards(list(rewards), [[own[agent] for agent in agents] for own in rewards.values()])


def log_in(table: Any, named: Mapping[str, str | None], unit: Unit) -> LoggedRewards | None:
    """The rewards of a data frame, or of a list of dictionaries, with one row per pull; None if it is neither."""
    is_frame = library_of(table) is not None
    if not is_frame and not (isinstance(table, Sequence) and len(table) and isinstance(table[0], Mapping)):
        for name in (name for name, value in named.items() if value is not None):
            raise InputError(
                f"{name}= names a column of a log, but rewards is a {type(table).__name__}: pass a data frame, a list "
                "of dictionaries, or a file to read_rewards()",
                argument=name,
            )
        return None
    header = list(table.columns if is_frame else table[0])
    columns = {column: header[position] for column, position in find_columns(header, named).items()}
    try:
        values = {
            column: table[name].to_list() if is_frame else [row[name] for row in table]
            for column, name in columns.items()
        }
    except KeyError as error:
        raise InputError(f"rewards has rows without {error.args[0]!r}", argument="rewards") from None
    agents = values.get("agent") or [""] * len(values["reward"])
    rows = [LoggedRow(*row) for row in zip(values["candidate"], values["reward"], agents, strict=True)]
    for number, row in enumerate(rows):
        if row.candidate is None or row.candidate != row.candidate:  # NaN
            raise InputError(f"rewards, row {number}: there is no candidate", argument="rewards")
        if fault := reward_fault(row.reward, unit):
            raise InputError(f"rewards, row {number}: {fault}", argument="rewards")
    if not rows:
        raise InputError("rewards has no rows, but at least 1 reward is needed", argument="rewards")
    return grouped(rows)
