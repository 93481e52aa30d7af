"""`collabtop.__all__` is the public interface: complete, documented, and not shadowed by a module."""

from __future__ import annotations

import importlib
import pkgutil
from importlib.metadata import version
from types import ModuleType

import pytest

import collabtop as ct

MODULES = {"datasets", "events"}
"""The public names that are modules."""
NAMES = sorted(set(ct.__all__) - {"__version__"})


def is_public(name, value):
    return not name.startswith("_") and (name in MODULES or not isinstance(value, ModuleType))


def test_all_lists_every_public_name_once():
    reachable = {name for name, value in vars(ct).items() if is_public(name, value)}
    assert set(NAMES) == reachable
    assert len(ct.__all__) == len(set(ct.__all__))


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_defined_here_and_documented(name):
    value = getattr(ct, name)
    assert getattr(value, "__module__", "collabtop").split(".")[0] == "collabtop"
    assert value.__doc__.strip().splitlines()[0].endswith((".", ":"))


def test_no_module_is_named_like_a_public_object():
    # Importing such a module would set it on its package and hide the object of the same name.
    for info in pkgutil.walk_packages(ct.__path__, "collabtop."):
        package, _, name = info.name.rpartition(".")
        assert name in MODULES or name not in NAMES, f"{info.name} hides collabtop.{name}"
        module = importlib.import_module(info.name)
        assert getattr(importlib.import_module(package), name) is module, f"{info.name} is hidden by another object"


def test_the_version_is_that_of_the_distribution():
    assert ct.__version__ == version("collabtop")
