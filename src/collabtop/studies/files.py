"""Studies from TOML files: every key is checked before the first run."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from collabtop import datasets
from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.registry import make_algorithm
from collabtop.arms import BernoulliArms, HeterogeneousArms, SimulatedArms, read_arms
from collabtop.errors import FileError, InputError, reason
from collabtop.problem import as_means, as_weights
from collabtop.studies.grid import Study
from collabtop.text_files import read_toml
from collabtop.validation import real_number, whole_number, wrong_value

_KEYS = ("arms", "algorithms", "m", "agents", "horizon", "runs", "seed", "engine")
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
    list each), `runs`, `seed`, `engine`. Below `[arms.NAME]` one of `means` (a file beside this one, or the means
    themselves), `dataset` or `instance` (the name of a function in `collabtop.datasets`, with its arguments). Beside
    it, for non-IID arms, `weights`: one number per agent.

    Raises:
        FileError: the file is missing or malformed; the message names the file, the key and what is wrong.

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
    try:
        table = read_toml(path)
    except OSError as error:
        raise FileError(f"{path}: {reason(error)}") from None
    except ValueError as error:
        raise FileError(f"{path}: not TOML: {error}") from None
    try:
        return _study(table, path.parent)
    except _WrongKeyError as error:
        raise FileError(f"{path}: {error}") from None


class _WrongKeyError(InputError):
    """Something is wrong with a key, which the message names."""


@contextmanager
def _blaming(table: Mapping[str, Any], name: str = "") -> Iterator[None]:
    """Name the key of this table that is to blame for an error raised inside, or the table if no key is."""
    try:
        yield
    except InputError as error:
        inner = error.argument if error.argument in table else None
        key = ".".join(part for part in (name, inner) if part)
        raise _WrongKeyError(f"key {key!r}: {error}" if key else str(error)) from None


def _study(table: dict[str, Any], folder: Path) -> Study:
    with _blaming(table):
        _check_keys(table, _KEYS)
        for key in _NEEDED:
            if key not in table:
                raise InputError(f"{key} is missing: a study needs it")
        for key in ("m", "agents", "horizon"):
            for value in _listed(table.get(key, [])):
                whole_number(key, value, least=1)
        whole_number("seed", table.get("seed", 0), least=0)
    numbers = {key: table[key] for key in ("m", "agents", "horizon", "runs", "seed", "engine") if key in table}
    arms, algorithms = _arms(table["arms"], folder), _algorithms(table["algorithms"])
    with _blaming(table):
        return Study(arms=arms, algorithms=algorithms, **numbers)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _check_keys(table: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    for key in table:
        if key not in allowed:
            raise InputError(f"{key} is not a key here: the keys are {', '.join(allowed)}", argument=key)


def _algorithms(value: Any) -> list[Algorithm]:
    if not isinstance(value, list):
        return [_algorithm(value, "algorithms")]
    return [_algorithm(entry, f"algorithms[{index}]") for index, entry in enumerate(value)]


def _algorithm(value: Any, key: str) -> Algorithm:
    options = {"name": value} if isinstance(value, str) else value
    with _blaming(options if isinstance(options, dict) else {}, key):
        if not isinstance(options, dict) or not isinstance(options.get("name"), str):
            raise InputError(f'{value!r:.80} is no algorithm: give a name, or {{name = "...", ...}} with options')
        try:
            return make_algorithm(
                options["name"], **{option: options[option] for option in options if option != "name"}
            )
        except TypeError as error:  # a registered algorithm may check its options in its own way
            raise InputError(str(error)) from None


def _arms(value: Any, folder: Path) -> dict[str, SimulatedArms]:
    with _blaming({"arms": value}):
        if not isinstance(value, dict):
            needed = "but tables are needed, one per name: [arms.NAME]"
            raise InputError(f"arms is {value!r:.80}, {needed}", argument="arms")
    arms: dict[str, SimulatedArms] = {}
    for name, table in value.items():
        with _blaming(table if isinstance(table, dict) else {}, f"arms.{name}"):
            if not isinstance(table, dict):
                raise InputError(f"{table!r:.80} is no set of arms: a table with means, dataset or instance is needed")
            arms[name] = _arms_of(table, folder)
    return arms


def _arms_of(table: dict[str, Any], folder: Path) -> SimulatedArms:
    sources = [source for source in ("means", "dataset", "instance") if source in table]
    if len(sources) != 1:
        given = f"{' and '.join(sources)} were given" if sources else "none was given"
        raise InputError(f"give exactly one of means, dataset and instance: {given}")
    [source] = sources
    if source == "means":
        _check_keys(table, ("means", "weights"))
        arms = _from_means(table["means"], folder)
    else:
        arms = _from_function(table, source, _DATASETS if source == "dataset" else _INSTANCES, folder)
    return arms if "weights" not in table else _weighted(arms, table["weights"])


def _weighted(arms: SimulatedArms, weights: Any) -> SimulatedArms:
    if not isinstance(weights, list):
        raise wrong_value("weights", weights, "one number per agent is needed")
    values = [real_number(f"weights[{agent}]", weight, argument="weights") for agent, weight in enumerate(weights)]
    as_weights(values, arms.agents)  # refuses them for IID arms
    return HeterogeneousArms(arms.means, labels=arms.labels, weights=values)


def _from_means(means: Any, folder: Path) -> SimulatedArms:
    if isinstance(means, str):
        arms = read_arms(folder / means)
        assert isinstance(arms, SimulatedArms)  # a file of means gives nothing else
        return arms
    if not isinstance(means, list) or not means:
        raise wrong_value("means", means, "a file name or a list of means is needed")
    if not isinstance(means[0], list):
        return BernoulliArms(_numbers(means, "means"))
    for index, row in enumerate(means):
        if not isinstance(row, list) or len(row) != len(means[0]):
            needed = f"{len(means[0])} numbers are needed, as in the first row"
            raise InputError(f"means[{index}] is {row!r:.80}, but {needed}", argument="means")
    table = [_numbers(row, f"means[{index}]") for index, row in enumerate(means)]
    return HeterogeneousArms(as_means(table))


def _numbers(values: list[Any], name: str) -> list[float]:
    return [real_number(f"{name}[{index}]", value, argument="means") for index, value in enumerate(values)]


def _from_function(table: dict[str, Any], source: str, makers: Mapping[str, _Maker], folder: Path) -> SimulatedArms:
    name = table[source]
    make = makers.get(name) if isinstance(name, str) else None
    if make is None:
        raise InputError(f"{source} is {name!r:.80}, but these are known: {', '.join(makers)}", argument=source)
    parameters = inspect.signature(make).parameters
    _check_keys(table, (source, *parameters, "weights"))
    arguments = {key: value for key, value in table.items() if key not in (source, "weights")}
    for parameter in parameters.values():
        if parameter.default is parameter.empty and parameter.name not in arguments:
            raise InputError(f"{parameter.name} is missing: {name} needs it")
    if "path" in arguments:
        path = arguments["path"]
        if not isinstance(path, str):
            raise wrong_value("path", path, "the name of a file or folder is needed")
        arguments["path"] = folder / path
    return make(**arguments)
