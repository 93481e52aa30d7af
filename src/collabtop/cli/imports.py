"""Objects of the user's own, given on the command line as MODULE:NAME."""

import difflib
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from collabtop.errors import InputError


def load(option: str, text: str) -> Any:
    """The object that MODULE:NAME names; modules in the current folder are found.

    >>> load("--pull", "math:sqrt")(4)
    2.0
    """
    module_name, colon, name = text.partition(":")
    if not (module_name and colon and name):
        raise InputError(f"{option} is {text!r}, but MODULE:NAME is needed, such as mymodule:score")
    here = str(Path.cwd())  # the absolute path, so that child processes find it too
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        value: Any = import_module(module_name)
    except Exception as error:
        raise InputError(f"{option}: {module_name!r} cannot be imported ({type(error).__name__}: {error})") from None
    for part in name.split("."):
        if not hasattr(value, part):
            close = difflib.get_close_matches(part, dir(value), n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise InputError(f"{option}: {module_name!r} has no {part!r}{hint}")
        value = getattr(value, part)
    return value
