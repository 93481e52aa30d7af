"""How the official MovieLens releases are laid out, and opening one, zip or folder."""

from __future__ import annotations

import csv
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from collabtop.errors import FileError

_WHERE = (
    "download one from https://grouplens.org/datasets/movielens "
    "(licence: free for research, not to be passed on, no commercial use without permission)"
)
# What a damaged zip makes the standard library raise, by where the damage is.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    UnicodeDecodeError,
    NotImplementedError,
)


@dataclass(frozen=True)
class Layout:
    """One of the formats that MovieLens has been published in."""

    ratings: str
    """Name of the file of ratings."""
    movies: str
    """Name of the file of titles."""
    separator: bytes
    """What stands between the fields of a rating."""
    movie_separator: str
    """What stands between the fields of a movie."""
    header: bytes = b""
    """The first line of the ratings, where there is one: a CSV file, with titles in quotes."""


_LAYOUTS = (
    Layout("ratings.csv", "movies.csv", b",", ",", b"userId,movieId,rating,timestamp"),  # latest, 20m, 25m, 32m
    Layout("ratings.dat", "movies.dat", b"::", "::"),  # 1m, 10m
    Layout("u.data", "u.item", b"\t", "|"),  # 100k
)


@dataclass(frozen=True)
class Release:
    """An official release at hand: a folder, or an open zip."""

    path: Path
    """What the user named."""
    layout: Layout
    folder: PurePosixPath
    """Where in it the files are."""
    archive: zipfile.ZipFile | None = None

    @property
    def name(self) -> str:
        """The file of ratings, as errors call it."""
        return self._called(self.layout.ratings)

    def ratings(self) -> IO[bytes]:
        """Open the file of ratings."""
        return self._open(self.layout.ratings)

    def titles(self) -> dict[int, str]:
        """Read the movies' titles by number; none if the release was unpacked without them."""
        if not self._has(self.layout.movies):
            return {}
        with self._open(self.layout.movies) as file:
            lines = _decoded(file.read()).replace("\r\n", "\n").split("\n")
        return _parse_titles(lines, self.layout, self._called(self.layout.movies))

    def _has(self, file: str) -> bool:
        if self.archive is None:
            return (self.path / self.folder / file).is_file()
        return str(self.folder / file) in self.archive.namelist()

    def _open(self, file: str) -> IO[bytes]:
        if self.archive is None:
            return (self.path / self.folder / file).open("rb")
        try:
            return self.archive.open(str(self.folder / file))
        except RuntimeError as error:  # encrypted, or compressed in a way that Python does not know
            raise FileError(f"{self._called(file)} cannot be unpacked: {error}") from error

    def _called(self, file: str) -> str:
        inside = self.folder / file
        return str(self.path / inside) if self.archive is None else f"{self.path}: {inside}"


@contextmanager
def open_release(path: str | os.PathLike[str]) -> Iterator[Release]:
    """Find the ratings in a downloaded zip or folder, and say clearly why if they cannot be read."""
    place = Path(path)
    if not place.exists():
        raise FileError(f"there is no MovieLens release at {place}: {_WHERE}")
    try:
        if place.is_dir():
            files = [PurePosixPath(file.relative_to(place).as_posix()) for file in _near(place)]
            yield _release(place, files, None)
        elif place.name in {layout.ratings for layout in _LAYOUTS}:
            yield _release(place.parent, [PurePosixPath(place.name)], None)
        else:
            with zipfile.ZipFile(place) as archive:
                yield _release(place, [PurePosixPath(name) for name in archive.namelist()], archive)
    except _DAMAGE as error:
        raise FileError(f"{place}: the zip is truncated or damaged ({error}); {_WHERE}") from error
    except OSError as error:
        raise FileError(f"{place} cannot be read: {error}") from error


def _near(folder: Path) -> Iterator[Path]:
    """Files of the folder and of its folders: unpacking a zip often makes one more level."""
    yield from folder.glob("*")
    yield from folder.glob("*/*")


def _release(path: Path, files: list[PurePosixPath], archive: zipfile.ZipFile | None) -> Release:
    found = [(file, layout) for layout in _LAYOUTS for file in files if file.name == layout.ratings]
    if not found:
        names = ", ".join(layout.ratings for layout in _LAYOUTS)
        raise FileError(f"{path} holds none of {names}: no MovieLens release; {_WHERE}")
    if len(found) > 1:
        names = ", ".join(str(file) for file, _ in found)
        raise FileError(f"{path} holds more than one MovieLens release ({names}): name one of them")
    file, layout = found[0]
    return Release(path, layout, file.parent, archive)


def _decoded(text: bytes) -> str:
    """Newer releases are UTF-8, older ones Latin-1; the 10m of the middle is UTF-8 in the older form."""
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError:
        return text.decode("latin-1")


def _parse_titles(lines: list[str], layout: Layout, name: str) -> dict[int, str]:
    titles: dict[int, str] = {}
    for number, fields in _title_fields(lines, layout, name):
        if len(fields) < 2 or not (fields[0].isascii() and fields[0].isdigit()):
            found = lines[number - 1][:80]
            raise FileError(f"{name}, line {number}: found {found!r}, expected a number and a title")
        titles[int(fields[0])] = fields[1].strip()
    return titles


def _title_fields(lines: list[str], layout: Layout, name: str) -> Iterator[tuple[int, list[str]]]:
    """The fields of each movie with the number of its line."""
    if layout.header:
        reader = csv.reader(lines[1:], strict=True)
        try:
            yield from ((reader.line_num + 1, fields) for fields in reader if fields)
        except csv.Error as error:
            raise FileError(f"{name}, line {reader.line_num + 1}: {error}") from None
    else:
        fields_of = ((number, line.split(layout.movie_separator, 2)) for number, line in enumerate(lines, 1))
        yield from ((number, fields) for number, fields in fields_of if fields != [""])
