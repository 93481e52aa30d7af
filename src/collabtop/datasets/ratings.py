"""Adding up millions of ratings by movie and group of users; the one module that needs polars.

The file is read in blocks of whole lines, from a zip as from a folder, so memory does not grow with it.
Polars reads a block at once and stops at anything odd; only then is the block read again, line by line, to
tell where.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from collabtop.datasets.layout import Layout, Release
from collabtop.errors import FileError

_BLOCK = 1 << 25
_COLUMNS = {"user": pl.UInt32, "movie": pl.UInt32, "rating": pl.Float64, "time": pl.Int64}
_DIGITS = {"user": 9, "movie": 9, "time": 18}  # what surely fits the types above
_LEAST, _MOST = 0.5, 5.0
_KEY = ["movie", "group"]


@dataclass(frozen=True)
class Totals:
    """All ratings of a release, added up."""

    movies: NDArray[np.int64]
    """The movies' numbers, ascending: a row of the tables below each."""
    sums: NDArray[np.float64]
    """Stars given, movies x groups."""
    counts: NDArray[np.int64]
    """Ratings given, movies x groups."""


def add_up(release: Release, groups: int) -> Totals:
    """Add up a release's ratings by movie and by group of users (user x is in group x mod `groups`)."""
    parts: pl.DataFrame | None = None
    line = 1
    with release.ratings() as file:
        if release.layout.header:
            _check_header(file.readline(), release)
            line += 1
        for block in _blocks(file):
            new = _by_movie_and_group(_read_block(block, release, line), groups)
            parts = new if parts is None else _merged(pl.concat([parts, new]))
            line += block.count(b"\n")
    if parts is None:
        raise FileError(f"{release.name} holds no ratings")
    return _as_tables(parts, groups)


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Cut the file into blocks of whole lines; empty lines at its very end are no ratings and no harm."""
    rest = b""
    while chunk := file.read(_BLOCK):
        data = rest + chunk
        # The last line that is not empty always waits for the next block: the file may end after it.
        end = data.rstrip(b"\r\n").rfind(b"\n") + 1
        if end:
            yield data[:end]
        rest = data[end:]
    if rest := rest.rstrip(b"\r\n"):
        yield rest


def _read_block(block: bytes, release: Release, first_line: int) -> pl.DataFrame:
    separator, body = release.layout.separator, block
    if len(separator) > 1:  # polars splits at single bytes only
        separator, body = b"\t", block.replace(separator, b"\t")
    try:
        table = pl.read_csv(body, has_header=False, separator=separator.decode(), schema=_COLUMNS, quote_char=None)
    except pl.exceptions.PolarsError as error:
        raise _blame(block, release, first_line, str(error).partition("\n")[0]) from None
    if any(table.null_count().row(0)) or not table["rating"].is_between(_LEAST, _MOST).all():
        raise _blame(block, release, first_line, "a field is missing or out of range")
    return table


def _by_movie_and_group(table: pl.DataFrame, groups: int) -> pl.DataFrame:
    group = (pl.col("user") % groups).alias("group")
    return (
        table.lazy()
        .select("movie", group, "rating")
        .group_by(_KEY)
        .agg(pl.col("rating").sum().alias("sum"), pl.len().cast(pl.Int64).alias("count"))
        .collect()
    )


def _merged(parts: pl.DataFrame) -> pl.DataFrame:
    return parts.group_by(_KEY).agg(pl.col("sum").sum(), pl.col("count").sum())


def _as_tables(parts: pl.DataFrame, groups: int) -> Totals:
    movies, rows = np.unique(parts["movie"].to_numpy(), return_inverse=True)
    columns = parts["group"].to_numpy()
    sums = np.zeros((len(movies), groups))
    counts = np.zeros((len(movies), groups), dtype=np.int64)
    sums[rows, columns] = parts["sum"].to_numpy()
    counts[rows, columns] = parts["count"].to_numpy()
    return Totals(movies.astype(np.int64), sums, counts)


def _check_header(found: bytes, release: Release) -> None:
    wanted = release.layout.header
    if found.removeprefix(b"\xef\xbb\xbf").strip() != wanted:
        raise FileError(f"{release.name}, line 1: found {_shown(found)}, expected {_shown(wanted)}")


def _blame(block: bytes, release: Release, first_line: int, otherwise: str) -> FileError:
    """The error for the first line of the block that is no rating."""
    for number, line in enumerate(block.removesuffix(b"\n").split(b"\n"), first_line):
        complaint = _complaint(line.rstrip(b"\r"), release.layout)
        if complaint:
            return FileError(f"{release.name}, line {number}: {complaint}")
    return FileError(f"{release.name}, line {first_line} or after: {otherwise}")


def _complaint(line: bytes, layout: Layout) -> str | None:
    fields = line.split(layout.separator)
    if len(fields) != len(_COLUMNS):
        return f"found {_shown(line)}, expected a user, a movie, a rating and a time"
    for name, field in zip(_COLUMNS, fields, strict=True):
        if name != "rating" and not (field.isdigit() and len(field) <= _DIGITS[name]):
            return f"{name} is {_shown(field)}, but a whole number is needed"
    try:
        rating = float(fields[2])
    except ValueError:
        rating = float("nan")
    if not _LEAST <= rating <= _MOST:
        return f"rating is {_shown(fields[2])}, but a number from {_LEAST} to {_MOST:g} is needed"
    return None


def _shown(text: bytes) -> str:
    cut = text.strip()[:80].decode("utf-8", "replace")
    return repr(cut)
