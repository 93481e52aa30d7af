"""Values on the command line: NAME=VALUE options of an algorithm, and Python objects as MODULE:NAME."""

import difflib
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from collabtop.errors import InputError

if TYPE_CHECKING:
    from collabtop.privacy import Privacy, PrivacyUnit

_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def read_options(algorithm: str, typed: Sequence[str]) -> dict[str, Any]:
    """Read NAME=VALUE pairs; each value gets the type of the option's default.

    A whole number is read as one if the default is None.

    >>> read_options("kzz", ["balanced=true"]), read_options("frugal-top", ["round_trips=3"])
    ({'balanced': True}, {'round_trips': 3})
    """
    from collabtop.algorithms.registry import algorithm_options, available_algorithms

    # An unknown algorithm or option is left to `identify`, whose error lists the known ones.
    defaults = algorithm_options(algorithm) if algorithm in available_algorithms() else {}
    options: dict[str, Any] = {}
    for pair in typed:
        name, equals, text = pair.partition("=")
        if not (name and equals):
            raise InputError(f"--option is {pair!r}, but NAME=VALUE is needed, such as schedule=full")
        if name in options:
            raise InputError(f"--option {name} is given twice")
        options[name] = _value(name, text, defaults.get(name, ""))
    return options


def _value(name: str, text: str, default: Any) -> Any:
    if isinstance(default, bool):
        return _flag(name, text)
    if default is None:
        return int(text) if text.isdecimal() else text  # the algorithm's own error names the option
    if not isinstance(default, int | float):
        return text
    try:
        return type(default)(text)
    except ValueError:
        needed = "a whole number" if isinstance(default, int) else "a number"
        raise InputError(f"--option {name} is {text!r}, but {needed} is needed") from None


def _flag(name: str, text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise InputError(f"--option {name} is {text!r}, but true or false is needed")
    return _FLAGS[text.lower()]


def read_bounds(text: str) -> tuple[float, float] | None:
    """Read the bounds of rewards: LOW,HIGH or none.

    >>> read_bounds("0,500"), read_bounds("none")
    ((0.0, 500.0), None)
    """
    if text.lower() == "none":
        return None
    try:
        low, high = (float(number) for number in text.split(","))
    except ValueError:
        raise InputError(f"--bounds is {text!r}, but LOW,HIGH or none is needed, such as 0,500") from None
    return low, high


def read_privacy(text: str | None) -> "Privacy | None":
    """Read a differential privacy: EPS,DELTA,UNIT.

    >>> read_privacy("1,1e-6,reward")
    Privacy(epsilon=1.0, delta=1e-06, unit='reward')
    """
    if text is None:
        return None
    from collabtop.privacy import Privacy  # it needs NumPy, for which --help does not wait

    try:
        epsilon, delta, unit = (part.strip() for part in text.split(","))
        numbers = float(epsilon), float(delta)
    except ValueError:
        needed = "EPS,DELTA,UNIT is needed, such as 1,1e-6,reward"
        raise InputError(f"--privacy is {text!r:.80}, but {needed}") from None
    try:
        return Privacy(epsilon=numbers[0], delta=numbers[1], unit=cast("PrivacyUnit", unit))
    except InputError as error:
        raise InputError(f"--privacy is {text!r:.80}: {error}") from None


def read_weights(text: str | None) -> list[float] | None:
    """Read how much each agent counts: W1,W2,...

    >>> read_weights("1,1,4"), read_weights(None)
    ([1.0, 1.0, 4.0], None)
    """
    if text is None:
        return None
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        needed = "one number per agent is needed, separated by commas, such as 1,1,4"
        raise InputError(f"--weights is {text!r:.80}, but {needed}") from None


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
