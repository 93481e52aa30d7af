"""The Python reference documents every public name."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType

import collabtop as ct
from collabtop import datasets, events, testing

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
DIRECTIVES = re.findall(r"^::: ([\w.]+)\n((?:    .*\n)*)", PAGE, re.MULTILINE)


def load(path):
    """The object at a dotted path: a module, or an attribute of one."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return getattr(importlib.import_module(module), name)


def shown():
    """Every object that mkdocstrings renders on the page; of a module, what it defines or lists as members."""
    objects = []
    for path, options in DIRECTIVES:
        target = load(path)
        objects.append(target)
        if isinstance(target, ModuleType):
            members = re.search(r"members: \[([^\]]*)\]", options)
            defined = [name for name, value in vars(target).items() if getattr(value, "__module__", None) == path]
            objects += [getattr(target, name) for name in (members[1].split(", ") if members else defined)]
    return objects


def missing(names):
    """The names, with their objects, that the page does not show."""
    objects = {id(value) for value in shown()}
    return sorted(name for name, value in names.items() if id(value) not in objects)


def test_every_public_name_is_on_the_page():
    assert missing({name: getattr(ct, name) for name in ct.__all__ if name != "__version__"}) == []


def test_every_event_is_on_the_page():
    assert (
        missing({kind.__name__: kind for kind in events.Event.__subclasses__() if kind.__module__ == events.__name__})
        == []
    )


def test_every_check_and_every_dataset_is_on_the_page():
    assert missing({name: value for name, value in vars(testing).items() if name.startswith("check_")}) == []
    assert missing(dict(inspect.getmembers(datasets, inspect.isfunction))) == []


def test_nothing_is_on_the_page_twice():
    paths = [path for path, _ in DIRECTIVES]
    assert len(paths) == len(set(paths))
