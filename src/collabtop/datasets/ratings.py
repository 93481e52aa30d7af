"""Sums of millions of ratings by movie and group of users; the only module that needs polars.

The file is read in blocks of whole lines, so memory use does not depend on its size. Polars parses a whole block at
once. If that fails, the block is read again line by line to locate the error.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from collabtop.datasets.layout import LONGEST_LINE, Layout, Release
from collabtop.errors import FileError

MAX_MOVIES = 1_000_000
"""The most movies of a release: some numbers are kept for each."""
_BLOCK = 1 << 25
_COLUMNS = {"user": pl.UInt32, "movie": pl.UInt32, "rating": pl.Float64, "time": pl.Int64}
_DIGITS = {"user": 9, "movie": 9, "time": 18}  # numbers with so many digits fit the types above
_LEAST, _MOST = 0.5, 5.0
_KEY = ["movie", "group"]


@dataclass(frozen=True)
class Totals:
    """The sums and counts of all ratings of a release."""

    movies: NDArray[np.int64]
    """Movie numbers in ascending order, one per row of the tables below."""
    sums: NDArray[np.float64]
    """Sum of the stars given, movies x groups."""
    counts: NDArray[np.int64]
    """Number of ratings, movies x groups."""


def add_up(release: Release, groups: int) -> Totals:
    """Sum the ratings of a release by movie and group of users (user x is in group x mod `groups`)."""
    parts: pl.DataFrame | None = None
    line = 1
    with release.ratings() as file:
        if release.layout.header:
            _check_header(file.readline(LONGEST_LINE), release)
            line += 1
        for block in _blocks(file, release):
            new = _by_movie_and_group(_read_block(block, release, line), groups)
            parts = new if parts is None else _merge(pl.concat([parts, new]))
            if parts["movie"].n_unique() > MAX_MOVIES:
                raise FileError(f"{release.name} has more than {MAX_MOVIES:,} movies")
            line += block.count(b"\n")
    if parts is None:
        raise FileError(f"{release.name} contains no ratings")
    return _as_tables(parts, groups)


def _blocks(file: IO[bytes], release: Release) -> Iterator[bytes]:
    """Split the file into blocks of whole lines, without empty lines at the end of the file."""
    rest = b""
    while chunk := file.read(_BLOCK):
        data = rest + chunk
        # The last non-empty line is left for the next block, because the file may end after it.
        end = data.rstrip(b"\r\n").rfind(b"\n") + 1
        if end:
            yield data[:end]
        rest = data[end:]
        if len(rest) > LONGEST_LINE:
            raise FileError(
                f"{release.name}: a line, with the empty lines after it, has more than {LONGEST_LINE:,} bytes"
            )
    if rest := rest.rstrip(b"\r\n"):
        yield rest


def _read_block(block: bytes, release: Release, first_line: int) -> pl.DataFrame:
    separator, body = release.layout.separator, block
    if len(separator) > 1:  # polars supports only single-byte separators
        separator, body = b"\t", block.replace(separator, b"\t")
    try:
        table = pl.read_csv(body, has_header=False, separator=separator.decode(), schema=_COLUMNS, quote_char=None)
    except pl.exceptions.PolarsError as error:
        raise _first_error(block, release, first_line, str(error).partition("\n")[0]) from None
    if any(table.null_count().row(0)) or not table["rating"].is_between(_LEAST, _MOST).all():
        raise _first_error(block, release, first_line, "a field is missing or out of range")
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


def _merge(parts: pl.DataFrame) -> pl.DataFrame:
    return parts.group_by(_KEY).agg(pl.col("sum").sum(), pl.col("count").sum())


def _as_tables(parts: pl.DataFrame, groups: int) -> Totals:
    movies, rows = np.unique(parts["movie"].to_numpy(), return_inverse=True)
    columns = parts["group"].to_numpy()
    sums = np.zeros((len(movies), groups))
    counts = np.zeros((len(movies), groups), dtype=np.int64)
    sums[rows, columns] = parts["sum"].to_numpy()
    counts[rows, columns] = parts["count"].to_numpy()
    return Totals(movies.astype(np.int64), sums, counts)


def _check_header(line: bytes, release: Release) -> None:
    expected = release.layout.header
    if line.removeprefix(b"\xef\xbb\xbf").strip() != expected:
        raise FileError(f"{release.name}, line 1: found {_quoted(line)}, expected {_quoted(expected)}")


def _first_error(block: bytes, release: Release, first_line: int, default: str) -> FileError:
    """The error for the first invalid line of the block, or with the default text if no line is invalid by itself."""
    for number, line in enumerate(block.removesuffix(b"\n").split(b"\n"), first_line):
        problem = _problem(line.rstrip(b"\r"), release.layout)
        if problem:
            return FileError(f"{release.name}, line {number}: {problem}")
    return FileError(f"{release.name}, line {first_line} or later: {default}")


def _problem(line: bytes, layout: Layout) -> str | None:
    fields = line.split(layout.separator)
    if len(fields) != len(_COLUMNS):
        return f"found {_quoted(line)}, expected a user, a movie, a rating and a time"
    for name, field in zip(_COLUMNS, fields, strict=True):
        if name != "rating" and not (field.isdigit() and len(field) <= _DIGITS[name]):
            return f"{name} is {_quoted(field)}, but a whole number is needed"
    try:
        rating = float(fields[2])
    except ValueError:
        rating = float("nan")
    if not _LEAST <= rating <= _MOST:
        return f"rating is {_quoted(fields[2])}, but a number from {_LEAST} to {_MOST:g} is needed"
    return None


def _quoted(text: bytes) -> str:
    return repr(text.strip()[:80].decode("utf-8", "replace"))
