"""Data frames, dictionaries and generators of the user's, as lists of candidates, examples or logged rows.

Neither pandas nor polars is imported here: only a program that has imported them can pass one of their frames.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, Literal

import msgspec

from collabtop.errors import InputError
from collabtop.validation import wrong_value

Library = Literal["pandas", "polars"]
"""A library of data frames."""

_LIBRARIES: tuple[Library, ...] = ("pandas", "polars")


class LabelledList(list[Any]):
    """Candidates, or examples, with what is known about them besides."""

    def __init__(
        self, entries: Iterable[Any], labels: Sequence[str] | None = None, library: Library | None = None
    ) -> None:
        super().__init__(entries)
        self.labels = labels
        """Their names, if they have any."""
        self.library = library
        """The library of the data frame that they are from."""


def rows(frame: Any, *, label: str | None = None) -> list[dict[str, Any]]:
    """The rows of a pandas or polars data frame, each as a dictionary, to be used as candidates.

    Passing the frame itself would leave open whether its rows or its columns are the candidates, so that is an error.
    In results, rows are named by the index of a pandas frame, and by their number in a polars frame.

    Args:
        frame: the data frame.
        label: the column with the names of the rows, if it is not the index.

    >>> import collabtop as ct, pandas
    >>> frame = pandas.DataFrame({"model": ["small", "large"], "temperature": [0.2, 0.7]})
    >>> ct.rows(frame)
    [{'model': 'small', 'temperature': 0.2}, {'model': 'large', 'temperature': 0.7}]
    >>> def score(row, rng):
    ...     return rng.random() < row["temperature"]
    >>> result = ct.identify(ct.rows(frame, label="model"), 1, pull=score, horizon=40, seed=1)
    >>> result.top, result.best
    (['large'], {'model': 'large', 'temperature': 0.7})
    """
    library = library_of(frame)
    if library is None:
        raise wrong_value("frame", frame, "a data frame of pandas or polars is needed")
    names = list(frame.columns)
    if len(set(names)) < len(names):
        raise InputError(f"frame has several columns of the same name: {names!r:.200}", argument="frame")
    entries = frame.to_dict("records") if library == "pandas" else frame.to_dicts()
    if label is not None and label not in names:
        raise InputError(
            f"label is {label!r}, but the columns are {', '.join(map(str, names))!r:.200}", argument="label"
        )
    index = frame.index if library == "pandas" else range(len(entries))
    labels = index if label is None else [entry[label] for entry in entries]
    return LabelledList(entries, [str(name) for name in labels], library)


def library_of(value: Any) -> Library | None:
    """The library of a data frame; None if the value is not one."""
    for library in _LIBRARIES:
        module = sys.modules.get(library)
        if module is not None and isinstance(value, module.DataFrame):
            return library
    return None


def as_candidates(candidates: Any) -> list[Any]:
    """Candidates as a list, from anything that has an order; the keys of a dictionary are the labels."""
    if isinstance(candidates, str | bytes):
        raise InputError(
            f"candidates is one string, {candidates!r:.80}, but a list of candidates is needed", argument="candidates"
        )
    if library_of(candidates) is not None:
        count, width = candidates.shape
        raise InputError(
            f"candidates is a data frame of {count:,} rows and {width:,} columns, which can both be candidates: pass "
            "ct.rows(frame), or list(frame.columns)",
            argument="candidates",
        )
    if isinstance(candidates, LabelledList):
        return candidates
    if isinstance(candidates, Mapping):
        return LabelledList(candidates.values(), [str(key) for key in candidates])
    return _listed(candidates, "candidates")


def as_examples(examples: Any, name: str = "examples") -> Sequence[Any]:
    """Examples as something with a length and an index; those of a data frame are its rows, as dictionaries."""
    if library_of(examples) is not None:
        return rows(examples)
    if isinstance(examples, str | bytes | Mapping):
        raise InputError(
            f"{name} is a {type(examples).__name__}, but a list (or an array) of examples is needed",
            argument="examples",
        )
    indexed = hasattr(examples, "__len__") and hasattr(examples, "__getitem__")
    if not indexed or _is_pandas_series(examples):  # which is indexed by label
        examples = _listed(examples, name)
    if len(examples) == 0:
        raise InputError(f"{name} is empty, but at least 1 example is needed", argument="examples")
    return examples  # type: ignore[no-any-return]


def _is_pandas_series(value: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(value, pandas.Series)


def _listed(values: Any, name: str) -> list[Any]:
    argument = name.partition("[")[0]
    if isinstance(values, set | frozenset):
        raise InputError(
            f"{name} is a {type(values).__name__}, which has no order, so that a seed would not repeat a run: pass a "
            "list, such as sorted(...)",
            argument=argument,
        )
    try:
        return list(values)
    except TypeError:
        raise wrong_value(name, values, f"a list of {argument} is needed", argument) from None


def candidate_labels(candidates: Sequence[Any]) -> Sequence[str]:
    """The labels that come with the candidates, or one made of each."""
    if isinstance(candidates, LabelledList) and candidates.labels is not None:
        return candidates.labels
    return [candidate_label(candidate, number) for number, candidate in enumerate(candidates)]


def candidate_label(candidate: Any, number: int) -> str:
    """The label of a candidate: its text or, if that is only a memory address, its type and number.

    >>> candidate_label("short", 0), candidate_label(len, 1), candidate_label(object(), 2)
    ('short', 'len', 'object 2')
    """
    if isinstance(candidate, FunctionType | type | type(len)):
        return str(candidate.__name__)
    kind = type(candidate)
    has_text = any(name in vars(base) for base in kind.__mro__[:-1] for name in ("__str__", "__repr__"))
    if not has_text:
        return f"{kind.__name__} {number}"
    return str(candidate)


def plain_data(candidates: Sequence[Any]) -> bytes | None:
    """Candidates as bytes, if they are strings, numbers, or lists and dictionaries of these; otherwise None.

    >>> plain_data(["a", 1, {"lr": 0.1}]) is None, plain_data([object()]) is None
    (False, True)
    """
    try:
        return msgspec.msgpack.encode(list(candidates)) if all(map(_is_plain, candidates)) else None
    except (OverflowError, RecursionError):
        return None


def _is_plain(value: Any) -> bool:
    if type(value) is list:
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(type(key) is str and _is_plain(entry) for key, entry in value.items())
    return value is None or type(value) in (str, int, float, bool, bytes)
