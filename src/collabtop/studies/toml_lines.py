"""On which line of a TOML file a key stands. The parser of the standard library reads TOML, but forgets where."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

Key = tuple[str | int, ...]
"""The way to a value: names of tables and keys, and places in lists."""

_CLOSERS = ("", "\n]", "\n]]", "\n]}", "\n]]}", '"""', "'''")  # what may be open at the end of a line


def line_of(text: str, key: Key) -> int | None:
    """The line on which a key of well-formed TOML, or a value of its list, stands; if it is not there, its table's.

    The file is read up to some line, and closed there if a list is open: the first line with which the key is there
    is its own.

    >>> text = '''
    ... horizon = [
    ...     400,
    ...     1.5,
    ... ]
    ... [arms.a]
    ... means = [0.5, 1.5]
    ... '''
    >>> line_of(text, ("horizon", 1)), line_of(text, ("arms", "a", "means", 1)), line_of(text, ("arms", "a", "gap"))
    (4, 7, 6)
    """
    lines = text.replace("\r\n", "\n").split("\n")
    while key and not _has(tomllib.loads(text), key):
        key = key[:-1]
    if not key:
        return None
    low, high = 0, len(lines)  # not there with the first `low` lines, there with the first `high`
    while high - low > 1:
        middle = probe = (low + high) // 2
        while probe < high and (there := _there(lines[:probe], key)) is None:
            probe += 1
        # Lines that cannot be read without the ones after them belong to what these say.
        low, high = (low, middle) if probe == high or there else (probe, high)
    return high


def _there(lines: Sequence[str], key: Key) -> bool | None:
    """Whether the key is in the file that ends here; None if it cannot end here."""
    text = "\n".join(lines)
    for closer in _CLOSERS:
        try:
            return _has(tomllib.loads(text + closer), key)
        except tomllib.TOMLDecodeError:
            continue
    return None


def _has(value: Any, key: Key) -> bool:
    for step in key:
        known = value.keys() if isinstance(value, Mapping) else range(len(value)) if isinstance(value, list) else ()
        if step not in known:
            return False
        value = value[step]
    return True
