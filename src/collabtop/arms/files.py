"""Reads arms from a file of means."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import NamedTuple

from collabtop.arms.simulated import BernoulliArms, HeterogeneousArms
from collabtop.errors import FileError
from collabtop.problem import as_weights
from collabtop.text_files import read_text

_LABEL_NAMES = ("label", "name", "title", "arm")
# A header cell begins with a letter. A cell that also has a point and a digit (O.5) is a mistyped number.
_HEADER_CELL = re.compile(r"[^\W\d](?!.*\.\d)")


class _Row(NamedTuple):
    line: int
    cells: list[str]


def read_arms(
    path: str | PathLike[str], *, weights: Sequence[float] | None = None
) -> BernoulliArms | HeterogeneousArms:
    r"""Read a file of means: one mean per line or, for non-IID arms, one line per arm and one column per agent.

    Columns are separated by commas, tabs or spaces. Blank lines and lines that begin with # are ignored.
    A first row of names is a header. A column named label, name, title or arm, or one whose values are
    not numbers, holds the labels. `weights` has one number per column of means: how much that agent counts.

    Raises:
        FileError: the file is missing, unreadable or malformed; the message names the line and the value.

    >>> import collabtop as ct
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "means.csv")
    ...     _ = path.write_text("title,mean\nHeat,0.85\nGigli,0.25\n")
    ...     arms = ct.read_arms(path)
    >>> arms.labels, arms.means.tolist()
    (('Heat', 'Gigli'), [0.85, 0.25])
    """
    rows = list(_rows(read_text(path), path))
    if not rows:
        raise FileError(f"{path}: the file has no means")
    header, body = _split_header(rows, path)
    if not body:
        raise FileError(f"{path}: no means below the header")
    _check_columns(rows, path)
    label_column = _label_column(header, body)
    ignored = _label_columns(header, label_column)
    mean_columns = [column for column in range(len(body[0].cells)) if column not in ignored]
    if not mean_columns:
        raise FileError(f"{path}, line {body[0].line}: labels, but no column of means")
    table = [[_mean(row, column, header, path) for column in mean_columns] for row in body]
    labels = None if label_column is None else [row.cells[label_column] for row in body]
    if len(mean_columns) == 1:
        as_weights(weights, None)  # refuses weights
        return BernoulliArms([row[0] for row in table], labels=labels)
    return HeterogeneousArms(table, labels=labels, weights=weights)


def _rows(text: str, path: str | PathLike[str]) -> Iterator[_Row]:
    separator: str | None = None
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if separator is None:
            separator = "," if "," in line else "\t" if "\t" in line else " "
        yield _Row(number, _cells(line, separator, f"{path}, line {number}"))


def _cells(line: str, separator: str, where: str) -> list[str]:
    if separator == " ":
        return line.split("#")[0].split()  # there are only numbers, so # starts a comment
    try:
        (cells,) = csv.reader([line], delimiter=separator, skipinitialspace=True, strict=True)
    except csv.Error as error:
        raise FileError(f"{where}: {line!r:.80} cannot be split into columns ({error})") from None
    return [cell.strip() for cell in cells]


def _split_header(rows: list[_Row], path: str | PathLike[str]) -> tuple[list[str] | None, list[_Row]]:
    line, first = rows[0]
    names = [cell for cell in first if _number(cell) is None]
    if not names or not all(_HEADER_CELL.match(name) for name in names):
        return None, rows
    # "Heat, 0.85" is an arm, not a header, and must not be dropped.
    means = [cell for cell in first if _is_mean(_number(cell))]
    if means and not any(name.lower() in _LABEL_NAMES for name in names):
        raise FileError(
            f"{path}, line {line}: {names[0]!r} beside {means[0]} may be a header or an arm; "
            "begin the file with a header such as label,mean"
        )
    return first, rows[1:]


def _check_columns(rows: list[_Row], path: str | PathLike[str]) -> None:
    first = rows[0]
    for row in rows:
        if len(row.cells) != len(first.cells):
            raise FileError(
                f"{path}, line {row.line}: {_columns(len(row.cells))}, but line {first.line} has {len(first.cells)}"
            )


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def _label_column(header: list[str] | None, body: list[_Row]) -> int | None:
    if header is None:
        return None
    names = [name.lower() for name in header]
    for name in _LABEL_NAMES:
        if name in names:
            return names.index(name)
    for column in range(len(header)):
        # Most values, not all: there are films called 300 and 1984, and there are mistyped means.
        if sum(_number(row.cells[column]) is None for row in body) > len(body) / 2:
            return column
    return None


def _label_columns(header: list[str] | None, label_column: int | None) -> set[int]:
    """The label column, and all others with the name of one: for example an arm's number beside its title."""
    if label_column is None:
        return set()
    return {label_column, *(column for column, name in enumerate(header or []) if name.lower() in _LABEL_NAMES)}


def _mean(row: _Row, column: int, header: list[str] | None, path: str | PathLike[str]) -> float:
    cell = row.cells[column]
    number = _number(cell)
    if number is not None and _is_mean(number):
        return number
    where = f"{path}, line {row.line}"
    if len(row.cells) > 1:
        where += f", column {column + 1}" + (f" ({header[column]})" if header else "")
    needed = "a number is needed" if number is None else "a mean lies in [0, 1]"
    raise FileError(f"{where}: found {cell!r:.80}, but {needed}")


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)  # Python reads 0_5 as 5
    except ValueError:
        return None


def _is_mean(number: float | None) -> bool:
    return number is not None and 0 <= number <= 1
