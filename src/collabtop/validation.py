"""Numbers that a caller gives, checked in one way: the error names the argument and what would work."""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import Any

import numpy as np

from collabtop.errors import InputError


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number of at least `least`, and at most `most` where there is a limit, whether Python's or NumPy's.

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
    if number is None or isinstance(value, bool | np.bool_) or number < least:
        raise InputError(f"{name} is {_shown(value)}, but a whole number of at least {least} is needed")
    if most is not None and number > most:
        raise InputError(f"{name} is {_shown(value)}, but a whole number of at most {most} is needed")
    return number


def real_number(name: str, value: Any) -> float:
    """A number, and not True, text or NaN.

    >>> real_number("gap", "wide")
    Traceback (most recent call last):
    collabtop.errors.InputError: gap is 'wide', but a number is needed
    """
    number = _as_float(name, value)
    if math.isnan(number):
        raise InputError(f"{name} is {_shown(value)}, but a number is needed")
    return number


def positive_number(name: str, value: Any, of: str = "") -> float:
    """A number above 0 that is not infinite.

    >>> positive_number("wait", 0, of="seconds")
    Traceback (most recent call last):
    collabtop.errors.InputError: wait is 0, but a positive number of seconds is needed
    """
    number = _as_float(name, value)
    if not 0 < number < math.inf:
        raise InputError(f"{name} is {_shown(value)}, but a positive number{f' of {of}' if of else ''} is needed")
    return number


def _as_float(name: str, value: Any) -> float:
    """A number as a float, and what is none as NaN."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{name} is {_shown(value)}, but a number of less than 300 digits is needed") from None


def _shown(value: Any) -> str:
    try:
        return f"{value!r:.80}"
    except ValueError:  # Python writes out no whole number of more than 4,300 digits
        return "a number of thousands of digits"
