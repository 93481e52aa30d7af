"""What users import is what they are told, and nothing hides it."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

import collabtop as ct

PROMISED = [
    "identify",
    "Result",
    "Problem",
    "gaps",
    "complexity",
    "speedup",
    "error_bound",
    "datasets",
    "Arms",
    "BernoulliArms",
    "HeterogeneousArms",
    "BetaArms",
    "FunctionArms",
    "Algorithm",
    "CollabTopIID",
    "CollabTopNonIID",
    "KZZ",
    "Uniform",
    "SAR",
    "SequentialHalving",
    "FrugalTop",
    "FrugalTopNonIID",
    "ConfidentTop",
    "ConfidentTopNonIID",
    "KLLUCB",
    "frugal_error_bound",
    "frugal_noniid_error_bound",
    "plan",
    "Plan",
    "available_algorithms",
    "make_algorithm",
    "register_algorithm",
    "Team",
    "LocalTeam",
    "Scoreboard",
    "CollabtopError",
    "InputError",
    "HorizonError",
    "SettingError",
    "UnknownAlgorithmError",
    "FileError",
    "PullError",
    "ProtocolError",
]

PUBLIC = {
    name: value
    for name, value in vars(ct).items()
    if not name.startswith("_") and not (isinstance(value, ModuleType) and name not in ("datasets", "events"))
}


@pytest.mark.parametrize("name", PROMISED)
def test_what_was_promised_is_there(name):
    assert name in PUBLIC


def test_what_is_there_is_meant_to_be():
    # Written in `__init__` as `from ... import name as name`: nothing comes in by the way.
    tree = ast.parse(Path(ct.__file__).read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    meant = {alias.asname for node in imports for alias in node.names} - {"__version__"}
    assert set(PUBLIC) == meant
    assert set(PROMISED) <= meant


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_is_ours_and_explains_itself(name):
    value = PUBLIC[name]
    assert getattr(value, "__module__", "collabtop").split(".")[0] == "collabtop"
    assert value.__doc__.strip().splitlines()[0].endswith((".", ":"))


def modules_of(package):
    """All modules of the library."""
    return [one.name for one in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]


def test_no_module_has_the_name_of_a_public_function_or_object():
    # A module imported late would be set on its package and hide what was there under that name.
    for name in modules_of(ct):
        parent, _, last = name.rpartition(".")
        module = importlib.import_module(name)
        if last not in ("datasets", "events"):  # the two that are meant to be imported as modules
            assert last not in PUBLIC, f"{name} hides collabtop.{last}"
        assert getattr(importlib.import_module(parent), last) is module, f"{name} is hidden by another object"


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert ct.__version__ == version("collabtop")
