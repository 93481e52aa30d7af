"""Studies from TOML files: every key known and checked before the first run."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from collabtop import datasets
from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.registry import make_algorithm
from collabtop.arms import BernoulliArms, HeterogeneousArms, SimulatedArms, read_arms
from collabtop.errors import FileError, InputError, reason
from collabtop.problem import as_means
from collabtop.studies.grid import Study
from collabtop.studies.toml_lines import Key, line_of
from collabtop.validation import real_number

_KEYS = ("arms", "algorithms", "m", "agents", "horizon", "runs", "seed")
_NEEDED = ("arms", "algorithms", "horizon")

_Maker = Callable[..., SimulatedArms]
_DATASETS: dict[str, _Maker] = {
    "movielens_like": datasets.movielens_like,
    "movielens_like_groups": datasets.movielens_like_groups,
    "movielens": datasets.movielens,
    "movielens_groups": datasets.movielens_groups,
}
_INSTANCES: dict[str, _Maker] = {
    "equal_gaps": datasets.equal_gaps,
    "one_good_arm": datasets.one_good_arm,
    "arithmetic": datasets.arithmetic,
    "geometric": datasets.geometric,
    "uniform_means": datasets.uniform_means,
    "set_disjointness": datasets.set_disjointness,
}


def read_study(path: str | PathLike[str]) -> Study:
    """Read a study from a TOML file.

    Top level: `algorithms` (names, or tables with a name and options), `horizon`, `m`, `agents` (a number or a
    list each), `runs`, `seed`. Below `[arms.NAME]` one of `means` (a file beside this one, or the means
    themselves), `dataset` or `instance` (the name of a function in `collabtop.datasets`, with its arguments).

    Raises:
        FileError: the file is missing or malformed; the message names file, line and key, and what is wrong.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> text = '''
    ... algorithms = ["kzz", {name = "collab-top-iid", schedule = "full"}]
    ... agents = 4
    ... horizon = [200, 400]
    ... runs = 10
    ... [arms.hard]
    ... instance = "equal_gaps"
    ... n = 16
    ... m = 1
    ... gap = 0.5
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text(text)
    ...     study = read_study(path)
    >>> [(point.algorithm.name, point.horizon) for point in study.points]
    [('kzz', 200), ('kzz', 400), ('collab-top-iid', 200), ('collab-top-iid', 400)]
    """
    path = Path(path)
    text = _text(path)
    table = _toml(path, text)
    try:
        return _study(table, path.parent)
    except _WrongKeyError as error:
        line = line_of(text, error.key)
        raise FileError(f"{path}{f', line {line}' if line else ''}: {error}") from None


class _WrongKeyError(InputError):
    """Something is wrong with the value of a key."""

    def __init__(self, message: str, key: Key) -> None:
        super().__init__(message)
        self.key = key


# Errors begin with the argument that they are about, after the point of a grid where it comes to light.
_NAMED = re.compile(r"(?:option )?'?(\w+)'?(?:\[([\d, ]+)\])? (?:is|has|must)\b")
_IN_GRID = re.compile(r"(?:^|: )(horizon|m|agents|runs) is (\w+)")


def _blamed(error: Exception, table: Mapping[str, Any], at: Key) -> Key:
    """The key below `at` that the error names, or else `at`."""
    if isinstance(error, FileError):
        return (*at, "means" if "means" in table else "path")
    found = _NAMED.match(str(error))
    if found is None or found[1] not in table:
        return at
    return (*at, found[1], *(int(place) for place in re.findall(r"\d+", found[2] or "")))


def _blamed_in_grid(error: InputError, table: Mapping[str, Any]) -> Key:
    found = _IN_GRID.search(str(error))
    if found is None:
        return ("algorithms",)  # one of them does not fit the others' setting
    values = table.get(found[1])
    shown = [str(value) for value in values] if isinstance(values, list) else []
    return (found[1], shown.index(found[2])) if found[2] in shown else (found[1],)


def _study(table: dict[str, Any], folder: Path) -> Study:
    _check_keys(table, _KEYS)
    for key in _NEEDED:
        if key not in table:
            raise _WrongKeyError(f"{key} is missing", ())
    given: dict[str, Any] = {key: _whole_numbers(key, table[key]) for key in ("m", "agents", "horizon") & table.keys()}
    given |= {key: _whole_number(key, table[key], (key,)) for key in ("runs", "seed") & table.keys()}
    arms, algorithms = _arms(table["arms"], folder), _algorithms(table["algorithms"])
    try:
        return Study(arms=arms, algorithms=algorithms, **given)
    except InputError as error:
        raise _WrongKeyError(str(error), _blamed_in_grid(error, table)) from None


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise FileError(f"{path}: {reason(error)}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise FileError(f"{path}, line {line}: byte {error.object[error.start]:#04x} is not UTF-8 text") from None


def _toml(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, place = str(error), ""
        found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", message, re.DOTALL)
        if found:
            message, place = found[1], f", line {found[2]}" if found[2] else ", at its end"
        raise FileError(f"{path}{place}: not TOML: {message}") from None


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], at: Key = ()) -> None:
    for key in table:
        if key not in known:
            name = ".".join(map(str, (*at, key)))
            may = f"{', '.join(known) or 'none'} may be given"
            raise _WrongKeyError(f"key {name!r} is not known here: {may}", (*at, key))


def _whole_numbers(key: str, value: Any) -> list[int]:
    if not isinstance(value, list):
        return [_whole_number(key, value, (key,))]
    if not value:
        raise _WrongKeyError(f"{key} is empty: a grid needs at least one value of it", (key,))
    return [_whole_number(key, one, (key, place)) for place, one in enumerate(value)]


def _whole_number(name: str, value: Any, key: Key) -> int:
    if type(value) is not int or value < 0:
        raise _WrongKeyError(f"{name} is {value!r:.80}, but a whole number is needed", key)
    return value


def _algorithms(value: Any) -> list[Algorithm]:
    listed = value if isinstance(value, list) else [value]
    if not listed:
        raise _WrongKeyError("algorithms is empty: a grid needs at least one value of it", ("algorithms",))
    return [_algorithm(one, ("algorithms", place)) for place, one in enumerate(listed)]


def _algorithm(value: Any, key: tuple[str, int]) -> Algorithm:
    shown = f"{key[0]}[{key[1]}]"
    options = {"name": value} if isinstance(value, str) else value
    if not isinstance(options, dict) or not isinstance(options.get("name"), str):
        needed = 'but a name is needed, or {name = "...", ...} with options'
        raise _WrongKeyError(f"{shown} is {value!r:.80}, {needed}", key)
    options = dict(options)
    try:
        return make_algorithm(options.pop("name"), **options)
    except (InputError, TypeError) as error:  # one that was registered may check its options in its own way
        raise _WrongKeyError(f"{shown}: {error}", _blamed(error, options, key)) from None


def _arms(value: Any, folder: Path) -> dict[str, SimulatedArms]:
    if not isinstance(value, dict):
        raise _WrongKeyError(f"arms is {value!r:.80}, but tables are needed, one a name: [arms.NAME]", ("arms",))
    if not value:
        raise _WrongKeyError("arms is empty: a study needs at least one set of arms", ("arms",))
    made: dict[str, SimulatedArms] = {}
    for name, table in value.items():
        key = ("arms", name)
        if not isinstance(table, dict):
            needed = "but a table with means, dataset or instance is needed"
            raise _WrongKeyError(f"arms.{name} is {table!r:.80}, {needed}", key)
        try:
            made[name] = _one_set(table, folder, key)
        except _WrongKeyError as error:
            raise _WrongKeyError(f"arms.{name}: {error}", error.key) from None
        except InputError as error:
            raise _WrongKeyError(f"arms.{name}: {error}", _blamed(error, table, key)) from None
    return made


def _one_set(table: dict[str, Any], folder: Path, key: Key) -> SimulatedArms:
    kinds = [kind for kind in ("means", "dataset", "instance") if kind in table]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none"
        raise InputError(f"exactly one of means, dataset and instance is needed, found {found}")
    if kinds == ["means"]:
        _check_keys(table, ("means",), key)
        return _from_means(table["means"], folder)
    makers = _DATASETS if kinds == ["dataset"] else _INSTANCES
    return _from_function(table, kinds[0], makers, folder, key)


def _from_means(means: Any, folder: Path) -> SimulatedArms:
    if isinstance(means, str):
        arms = read_arms(folder / means)
        assert isinstance(arms, SimulatedArms)  # a file of means makes nothing else
        return arms
    if not isinstance(means, list) or not means:
        raise InputError(f"means is {means!r:.80}, but a file name or a list of means is needed")
    if not isinstance(means[0], list):
        return BernoulliArms(_numbers("means", means))
    for place, row in enumerate(means):
        if not isinstance(row, list) or len(row) != len(means[0]):
            raise InputError(f"means[{place}] is {row!r:.80}, but {len(means[0])} numbers are needed as above")
    table = [_numbers("means", row, place) for place, row in enumerate(means)]
    return HeterogeneousArms(as_means(table))


def _numbers(name: str, values: list[Any], *row: int) -> list[float]:
    return [real_number(f"{name}[{', '.join(map(str, (*row, place)))}]", value) for place, value in enumerate(values)]


def _from_function(
    table: dict[str, Any], kind: str, makers: Mapping[str, _Maker], folder: Path, key: Key
) -> SimulatedArms:
    name = table[kind]
    make = makers.get(name) if isinstance(name, str) else None
    if make is None:
        raise InputError(f"{kind} is {name!r:.80}, but these are known: {', '.join(makers)}")
    parameters = inspect.signature(make).parameters
    _check_keys(table, (kind, *parameters), key)
    arguments = {given: value for given, value in table.items() if given != kind}
    for parameter in parameters.values():
        if parameter.default is parameter.empty and parameter.name not in arguments:
            raise InputError(f"{parameter.name} is missing: {name} needs it")
    if "path" in arguments:
        if not isinstance(arguments["path"], str):
            raise InputError(f"path is {arguments['path']!r:.80}, but the name of a file or folder is needed")
        arguments["path"] = folder / arguments["path"]
    return make(**arguments)
