"""Checks of what a caller gives: the error names the argument, its value and what would work."""

import math
import operator
import sys
from importlib.util import find_spec
from numbers import Real
from typing import Any

from collabtop.errors import InputError


def counted(count: int, noun: str) -> str:
    """A number of things, in words.

    >>> counted(1, "agent"), counted(1_000, "agent")
    ('1 agent', '1,000 agents')
    """
    return f"{count:,} {noun}" + "s" * (count != 1)


def whole_number(name: str, value: Any, least: int, most: int | None = None, *, argument: str | None = None) -> int:
    """A whole number from `least` to `most`, Python's or NumPy's.

    `argument` is the name of the argument that holds it, if that is not `name`.

    >>> whole_number("agents", 10, least=1)
    10
    >>> whole_number("agents", 2.5, least=1)
    Traceback (most recent call last):
    collabtop.errors.InputError: agents is 2.5, but a whole number of at least 1 is needed
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or _is_flag(value) or number < least:
        raise wrong_value(name, value, f"a whole number of at least {least} is needed", argument)
    if most is not None and number > most:
        raise wrong_value(name, value, f"a whole number of at most {most} is needed", argument)
    return number


def real_number(name: str, value: Any, *, argument: str | None = None) -> float:
    """A number: not a bool, text or NaN.

    >>> real_number("gap", "wide")
    Traceback (most recent call last):
    collabtop.errors.InputError: gap is 'wide', but a number is needed
    """
    number = _as_float(name, value, argument)
    if math.isnan(number):
        raise wrong_value(name, value, "a number is needed", argument)
    return number


def positive_number(name: str, value: Any, of: str = "", *, argument: str | None = None) -> float:
    """A finite number above 0.

    >>> positive_number("wait", 0, of="seconds")
    Traceback (most recent call last):
    collabtop.errors.InputError: wait is 0, but a positive number of seconds is needed
    """
    number = _as_float(name, value, argument)
    if not 0 < number < math.inf:
        raise wrong_value(name, value, f"a positive number{f' of {of}' if of else ''} is needed", argument)
    return number


def require(extra: str, *modules: str, what: str) -> None:
    """Check that the modules of an optional dependency are installed, without importing them.

    `extra` is the name in `collabtop[extra]`, `what` is what needs it.

    >>> require("sites", "grpc", "no_such_module", what="a run over sites")
    Traceback (most recent call last):
    collabtop.errors.InputError: a run over sites needs no_such_module, which is not installed:
    pip install 'collabtop[sites]'
    """
    for module in modules:
        if sys.modules.get(module) is None and find_spec(module) is None:
            raise InputError(f"{what} needs {module}, which is not installed: pip install 'collabtop[{extra}]'")


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool) or _is_numpy(value, "bool_")


def _is_numpy(value: Any, kind: str) -> bool:
    """Whether a value is of a type of NumPy, which is not imported for that: without it there are no such values."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, getattr(numpy, kind))


def _as_float(name: str, value: Any, argument: str | None) -> float:
    """A number as a float, anything else as NaN."""
    if type(value) is float:  # the usual case, and the fastest
        return value
    if _is_flag(value) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        raise wrong_value(name, value, "a number of less than 300 digits is needed", argument) from None


def wrong_value(name: str, value: Any, needed: str, argument: str | None = None) -> InputError:
    """The error for an argument with a wrong value.

    >>> raise wrong_value("risk", 2, "a probability between 0 and 1 is needed")
    Traceback (most recent call last):
    collabtop.errors.InputError: risk is 2, but a probability between 0 and 1 is needed
    """
    try:
        shown = f"{value.item() if _is_numpy(value, 'generic') else value!r:.80}"
    except ValueError:  # Python does not print whole numbers of more than 4,300 digits
        shown = "a number of thousands of digits"
    return InputError(f"{name} is {shown}, but {needed}", argument=argument or name)
