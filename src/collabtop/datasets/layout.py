"""The file layouts of the official MovieLens releases, and opening a release from a zip file or a folder."""

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
from collabtop.runlog.regular import regular_only

_DOWNLOAD_HINT = (
    "download one from https://grouplens.org/datasets/movielens "
    "(licence: free for research, no redistribution, no commercial use without permission)"
)
LONGEST_LINE = 1 << 16
"""The most bytes of a line."""
LARGEST_RATINGS, LARGEST_TITLES = 1 << 34, 1 << 24
"""The most bytes of the file of ratings, which is read in blocks, and of the file of titles, both unpacked."""
# Python unpacks other methods without a limit on the memory.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What the standard library raises for a damaged zip file; it depends on where the damage is.
_DAMAGE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    UnicodeDecodeError,
    NotImplementedError,
)


@dataclass(frozen=True)
class Layout:
    """One of the formats in which MovieLens has been published."""

    ratings: str
    """Name of the ratings file."""
    movies: str
    """Name of the titles file."""
    separator: bytes
    """Separates the fields of a rating."""
    movie_separator: str
    """Separates the fields of a movie."""
    header: bytes = b""
    """First line of the ratings file. Not empty means CSV, in which titles may be quoted."""


_LAYOUTS = (
    Layout("ratings.csv", "movies.csv", b",", ",", b"userId,movieId,rating,timestamp"),  # latest, 20m, 25m, 32m
    Layout("ratings.dat", "movies.dat", b"::", "::"),  # 1m, 10m
    Layout("u.data", "u.item", b"\t", "|"),  # 100k
)


@dataclass(frozen=True)
class Release:
    """An official release that can be read: a folder or an open zip file."""

    path: Path
    """The path given by the user."""
    layout: Layout
    folder: PurePosixPath
    """The folder that holds the files, below `path` or inside the zip file."""
    archive: zipfile.ZipFile | None = None

    @property
    def name(self) -> str:
        """The ratings file, as shown in error messages."""
        return self._name_of(self.layout.ratings)

    def ratings(self) -> IO[bytes]:
        """Open the ratings file."""
        return self._open(self.layout.ratings, LARGEST_RATINGS)

    def titles(self) -> dict[int, str]:
        """Read the titles by movie number; empty if the titles file is missing."""
        if not self._has(self.layout.movies):
            return {}
        with self._open(self.layout.movies, LARGEST_TITLES) as file:
            lines = _decode(file.read()).replace("\r\n", "\n").split("\n")
        return _parse_titles(lines, self.layout, self._name_of(self.layout.movies))

    def _has(self, file: str) -> bool:
        if self.archive is None:
            return (self.path / self.folder / file).is_file()
        return str(self.folder / file) in self.archive.namelist()

    def _open(self, file: str, largest: int) -> IO[bytes]:
        if self.archive is None:
            path = self.path / self.folder / file
            self._check_size(file, path.stat().st_size, largest)
            return open(path, "rb", opener=regular_only)
        entry = self.archive.getinfo(str(self.folder / file))
        self._check_size(file, entry.file_size, largest)  # no more than that is ever unpacked
        if entry.compress_type not in _METHODS:
            raise FileError(f"{self._name_of(file)} cannot be unpacked: it is compressed, but not with deflate")
        try:
            return self.archive.open(entry)
        except RuntimeError as error:  # encrypted
            raise FileError(f"{self._name_of(file)} cannot be unpacked: {error}") from error

    def _check_size(self, file: str, size: int, largest: int) -> None:
        if size > largest:
            raise FileError(f"{self._name_of(file)} has {size:,} bytes, but a release has at most {largest:,}")

    def _name_of(self, file: str) -> str:
        inside = self.folder / file
        return str(self.path / inside) if self.archive is None else f"{self.path}: {inside}"


@contextmanager
def open_release(path: str | os.PathLike[str]) -> Iterator[Release]:
    """Open a release: a zip file, a folder that contains it, or its ratings file; raise FileError if that fails."""
    path = Path(path)
    if not path.exists():
        raise FileError(f"there is no MovieLens release at {path}: {_DOWNLOAD_HINT}")
    try:
        if path.is_dir():
            files = [PurePosixPath(file.relative_to(path).as_posix()) for file in _files_near(path)]
            yield _release(path, files, None)
        elif path.name in {layout.ratings for layout in _LAYOUTS}:
            yield _release(path.parent, [PurePosixPath(path.name)], None)
        else:
            with open(path, "rb", opener=regular_only) as file, zipfile.ZipFile(file) as archive:
                yield _release(path, [PurePosixPath(name) for name in archive.namelist()], archive)
    except _DAMAGE_ERRORS as error:
        raise FileError(f"{path}: the zip file is truncated or damaged ({error}); {_DOWNLOAD_HINT}") from error
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error}") from error


def _files_near(folder: Path) -> Iterator[Path]:
    """The entries of the folder and of its subfolders: unpacking a zip file often adds one level."""
    yield from folder.glob("*")
    yield from folder.glob("*/*")


def _release(path: Path, files: list[PurePosixPath], archive: zipfile.ZipFile | None) -> Release:
    candidates = [(file, layout) for layout in _LAYOUTS for file in files if file.name == layout.ratings]
    if not candidates:
        names = ", ".join(layout.ratings for layout in _LAYOUTS)
        raise FileError(f"{path} is not a MovieLens release: it contains none of {names}; {_DOWNLOAD_HINT}")
    if len(candidates) > 1:
        names = ", ".join(str(file) for file, _ in candidates)
        raise FileError(f"{path} contains more than one MovieLens release ({names}): give the path of one of them")
    file, layout = candidates[0]
    return Release(path, layout, file.parent, archive)


def _decode(text: bytes) -> str:
    """Decode a titles file: newer releases are UTF-8, older ones Latin-1, and 10m is UTF-8 in the older layout."""
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError:
        return text.decode("latin-1")


def _parse_titles(lines: list[str], layout: Layout, name: str) -> dict[int, str]:
    titles: dict[int, str] = {}
    for number, fields in _title_fields(lines, layout, name):
        if len(fields) < 2 or not (fields[0].isascii() and fields[0].isdigit()):
            raise FileError(f"{name}, line {number}: found {lines[number - 1][:80]!r}, expected a number and a title")
        titles[int(fields[0])] = fields[1].strip()
    return titles


def _title_fields(lines: list[str], layout: Layout, name: str) -> Iterator[tuple[int, list[str]]]:
    """The line number and the fields of each movie."""
    if layout.header:
        reader = csv.reader(lines[1:], strict=True)
        try:
            yield from ((reader.line_num + 1, fields) for fields in reader if fields)
        except csv.Error as error:
            raise FileError(f"{name}, line {reader.line_num + 1}: {error}") from None
    else:
        fields_of = ((number, line.split(layout.movie_separator, 2)) for number, line in enumerate(lines, 1))
        yield from ((number, fields) for number, fields in fields_of if fields != [""])
