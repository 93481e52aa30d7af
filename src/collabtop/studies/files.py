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
from collabtop.algorithms.catalogue import make_algorithm
from collabtop.arms import BernoulliArms, HeterogeneousArms, SimulatedArms, read_arms
from collabtop.errors import FileError, InputError, reason
from collabtop.studies.grid import Study

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
        FileError: the file is missing or malformed; the message names file, line or key, and what is wrong.

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
    table = _toml(path)
    try:
        _check_keys(table, _KEYS)
        for key in _NEEDED:
            if key not in table:
                raise InputError(f"{key} is missing")
        given: dict[str, Any] = {
            key: _whole_numbers(key, table[key]) for key in ("m", "agents", "horizon") & table.keys()
        }
        given |= {key: _whole_number(key, table[key]) for key in ("runs", "seed") & table.keys()}
        return Study(arms=_arms(table["arms"], path.parent), algorithms=_algorithms(table["algorithms"]), **given)
    except FileError as error:  # a file of means has a name and a line of its own
        raise FileError(f"{path}: {error}") from None
    except InputError as error:
        raise FileError(f"{path}: {error}") from None


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise FileError(f"{path}: {reason(error)}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise FileError(f"{path}, line {line}: byte {error.object[error.start]:#04x} is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        message, place = str(error), ""
        found = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", message, re.DOTALL)
        if found:
            message, place = found[1], f", line {found[2]}" if found[2] else ", at its end"
        raise FileError(f"{path}{place}: not TOML: {message}") from None


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], inside: str = "") -> None:
    for key in table:
        if key not in known:
            raise InputError(f"key {inside + key!r} is not known here: {', '.join(known) or 'none'} may be given")


def _whole_numbers(key: str, value: Any) -> list[int]:
    listed = value if isinstance(value, list) else [value]
    if not listed:
        raise InputError(f"{key} is empty: a grid needs at least one value of it")
    return [_whole_number(key, one) for one in listed]


def _whole_number(key: str, value: Any) -> int:
    if type(value) is not int or value < 0:
        raise InputError(f"{key} is {value!r}, but a whole number is needed")
    return value


def _algorithms(value: Any) -> list[Algorithm]:
    listed = value if isinstance(value, list) else [value]
    if not listed:
        raise InputError("algorithms is empty: a grid needs at least one value of it")
    return [_algorithm(f"algorithms[{place}]", one) for place, one in enumerate(listed)]


def _algorithm(key: str, value: Any) -> Algorithm:
    options = {"name": value} if isinstance(value, str) else value
    if not isinstance(options, dict) or not isinstance(options.get("name"), str):
        raise InputError(f'{key} is {value!r:.80}, but a name is needed, or {{name = "...", ...}} with options')
    options = dict(options)
    try:
        return make_algorithm(options.pop("name"), **options)
    except (InputError, TypeError) as error:
        raise InputError(f"{key}: {error}") from None


def _arms(value: Any, folder: Path) -> dict[str, SimulatedArms]:
    if not isinstance(value, dict):
        raise InputError(f"arms is {value!r:.80}, but tables are needed, one a name: [arms.NAME]")
    if not value:
        raise InputError("arms is empty: a study needs at least one set of arms")
    made: dict[str, SimulatedArms] = {}
    for name, table in value.items():
        key = f"arms.{name}"
        if not isinstance(table, dict):
            raise InputError(f"{key} is {table!r:.80}, but a table with means, dataset or instance is needed")
        try:
            made[name] = _one_set(table, folder, f"{key}.")
        except (InputError, TypeError) as error:
            raise InputError(f"{key}: {error}") from None
    return made


def _one_set(table: dict[str, Any], folder: Path, inside: str) -> SimulatedArms:
    kinds = [kind for kind in ("means", "dataset", "instance") if kind in table]
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none"
        raise InputError(f"exactly one of means, dataset and instance is needed, found {found}")
    if kinds == ["means"]:
        _check_keys(table, ("means",), inside)
        return _from_means(table["means"], folder)
    makers = _DATASETS if kinds == ["dataset"] else _INSTANCES
    return _from_function(table, kinds[0], makers, folder, inside)


def _from_means(means: Any, folder: Path) -> SimulatedArms:
    if isinstance(means, str):
        arms = read_arms(folder / means)
        assert isinstance(arms, SimulatedArms)  # a file of means makes nothing else
        return arms
    if not isinstance(means, list) or not means:
        raise InputError(f"means is {means!r:.80}, but a file name or a list of means is needed")
    return HeterogeneousArms(means) if isinstance(means[0], list) else BernoulliArms(means)


def _from_function(
    table: dict[str, Any], kind: str, makers: Mapping[str, _Maker], folder: Path, inside: str
) -> SimulatedArms:
    name = table[kind]
    make = makers.get(name) if isinstance(name, str) else None
    if make is None:
        raise InputError(f"{kind} is {name!r}, but these are known: {', '.join(makers)}")
    parameters = inspect.signature(make).parameters
    _check_keys(table, (kind, *parameters), inside)
    arguments = {key: value for key, value in table.items() if key != kind}
    for parameter in parameters.values():
        if parameter.default is parameter.empty and parameter.name not in arguments:
            raise InputError(f"{parameter.name} is missing: {name} needs it")
    if isinstance(arguments.get("path"), str):
        arguments["path"] = folder / arguments["path"]
    return make(**arguments)
