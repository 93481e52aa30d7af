"""`collabtop.__all__` is the public interface: complete, documented, and not shadowed by a module."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import collabtop as ct

MODULES = {"datasets", "events"}
"""The public names that are modules."""
NAMES = sorted(set(ct.__all__) - {"__version__"})


def test_the_names_for_type_checkers_are_the_public_ones_from_the_same_modules():
    tree = ast.parse(Path(ct.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.name: getattr(importlib.import_module(node.module), alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == {name: getattr(ct, name) for name in NAMES}


def test_a_star_import_and_completion_offer_every_public_name():
    assert set(NAMES) <= set(dir(ct))
    names = {}
    exec("from collabtop import *", names)
    assert set(ct.__all__) <= set(names)


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="'collabtop' has no attribute 'identity'"):
        ct.__getattr__("identity")


@pytest.mark.parametrize("module", ["collabtop", "collabtop.errors"])
def test_nothing_heavy_is_imported_before_it_is_used(module):
    heavy = "{'numpy', 'asyncio', 'rich', 'matplotlib', 'ray', 'grpc', 'pandas', 'polars'}"
    script = f"import sys, {module}; print(*{heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"\n"


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
