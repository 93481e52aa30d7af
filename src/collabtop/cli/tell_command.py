"""`collabtop tell`: report the rewards of pulls from a CSV file."""

import csv
import io
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import collabtop as ct
from collabtop.cli.ask_command import print_state
from collabtop.cli.output import examples
from collabtop.errors import FileError

tell_examples = examples("collabtop tell run.ctlog done.csv")

_NEEDED = ("agent", "pull", "candidate", "reward")


def tell(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The file that keeps the session.")],
    done: Annotated[
        Path,
        typer.Argument(
            metavar="CSV", help="The file that `ask --csv` wrote, with rewards; rows without one are left for later."
        ),
    ],
) -> None:
    """Report the rewards of pulls: all rows of the file are taken, or none.

    Where times is above 1, a reward is a list such as "1 0 0 1", or for rewards of 0 and 1 a count such as "2/4".
    """
    session = ct.Session(log)
    rows = read_done(done)
    session.tell([row.pull for row in rows], [row.reward for row in rows], names=[row.name for row in rows])
    typer.echo(f"{done}: {sum(row.pull.times for row in rows):,} rewards taken")
    print_state(log, session, session.ask())


class Row(NamedTuple):
    """A row of a file of pulls that has a reward."""

    name: str
    """The line, for errors."""
    pull: "ct.AskedPull"
    reward: Any


def read_done(path: Path) -> list[Row]:
    """The rows of a file that have a reward."""
    from collabtop.text_files import read_text

    reader = csv.reader(io.StringIO(read_text(path), newline=""), skipinitialspace=True)
    try:
        lines = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise FileError(f"{path}, line {reader.line_num}: {error}") from None
    header = [cell.strip().lower() for cell in lines[0][1]] if lines else []
    for column in _NEEDED:
        if column not in header:
            raise FileError(f"{path}, line 1: no column {column!r}; `collabtop ask --csv` writes a file with all")
    rows = []
    for line, cells in lines[1:]:
        name = f"{path}, line {line}"
        if len(cells) != len(header):
            raise FileError(f"{name}: {len(cells)} columns, but line 1 has {len(header)}")
        values = dict(zip(header, cells, strict=True))
        if values["reward"].strip():
            rows.append(_row(name, values))
    return rows


def _row(name: str, values: dict[str, str]) -> Row:
    agent, number = (_count(name, column, values[column]) for column in ("agent", "pull"))
    times = _count(name, "times", values.get("times") or "1", least=1)
    label = values["candidate"]
    pull = ct.AskedPull(agent, number, label, label, 0, None, times)
    rewards = _rewards(name, values["reward"], times)
    return Row(name, pull, rewards[0] if times == 1 and len(rewards) == 1 else rewards)


def _count(name: str, column: str, text: str, least: int = 0) -> int:
    if not text.strip().isdecimal() or int(text) < least:
        raise FileError(f"{name}: {column} is {text!r:.80}, but a whole number of at least {least} is needed")
    return int(text)


def _rewards(name: str, text: str, times: int) -> list[float]:
    """The rewards in a cell: numbers, or how many of them are 1, such as "2/4".

    >>> _rewards("done.csv, line 2", "2/4", 4), _rewards("done.csv, line 3", "0.5 1", 2)
    ([1.0, 1.0, 0.0, 0.0], [0.5, 1.0])
    """
    ones, slash, total = text.partition("/")
    if slash:
        successes, count = _count(name, "reward", ones), _count(name, "reward", total)
        if count != times or successes > count:
            raise FileError(f"{name}: the reward is {text!r:.80}, but a count of {times} is needed, such as 0/{times}")
        return [1.0] * successes + [0.0] * (count - successes)
    try:
        return [float(number) for number in text.split()]
    except ValueError:
        raise FileError(f"{name}: the reward is {text!r:.80}, but numbers are needed") from None
