"""The unit of rewards: their direction and bounds, and the conversion to the values that agents work with."""

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeVar, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from collabtop.validation import real_number, wrong_value

Direction = Literal["maximize", "minimize"]
Bounds = tuple[float, float] | None
_DIRECTIONS = get_args(Direction)
_FROM_0_TO_1 = 0.0, 1.0
_PAIRS = tuple, list, np.ndarray, Sequence  # the usual types first: those of `collections.abc` take longer to check

LARGEST_REWARD = 1e100
"""The largest absolute value of a reward: sums and squares of rewards stay far below the largest float."""

_Values = TypeVar("_Values", float, NDArray[np.float64])


class Unit(msgspec.Struct, frozen=True):
    """Whether large or small rewards are better, and between which bounds they lie.

    Agents, messages, algorithms and logs have *internal values*, of which larger is better. With bounds they lie in
    [0, 1]; without, they are the user's rewards, negated if these are minimized.

    >>> latency = Unit("minimize", (0, 500))
    >>> latency.internal(125.0), latency.shown(0.75), latency.shown_interval(0.5, 0.75)
    (0.75, 125.0, (125.0, 250.0))
    """

    direction: Direction = "maximize"
    bounds: Bounds = _FROM_0_TO_1

    def __post_init__(self) -> None:
        if self.direction not in _DIRECTIONS:
            raise wrong_value("direction", self.direction, "'maximize' or 'minimize' is needed")
        if self.bounds is not None:
            msgspec.structs.force_setattr(self, "bounds", _checked_bounds(self.bounds))

    @property
    def bounded(self) -> bool:
        """Whether rewards have bounds, so that internal values lie in [0, 1]."""
        return self.bounds is not None

    @property
    def is_default(self) -> bool:
        """Whether rewards lie in [0, 1] and larger ones are better, so that internal values are the rewards."""
        return self.direction == "maximize" and self.bounds == _FROM_0_TO_1

    def internal(self, rewards: _Values) -> _Values:
        """Rewards, or means of them, as internal values."""
        if self.is_default:
            return rewards
        if self.bounds is None:
            return -rewards if self.direction == "minimize" else rewards
        low, high = self.bounds
        return (high - rewards if self.direction == "minimize" else rewards - low) / (high - low)

    def shown(self, values: _Values) -> _Values:
        """Internal values in the user's unit."""
        if self.is_default:
            return values
        if self.bounds is None:
            return -values if self.direction == "minimize" else values
        low, high = self.bounds
        width = high - low
        return high - width * values if self.direction == "minimize" else low + width * values

    def shown_interval(self, low: float, high: float) -> tuple[float, float]:
        """An interval of internal values in the user's unit, the smaller end first."""
        ends = self.shown(low), self.shown(high)
        return ends if ends[0] <= ends[1] else (ends[1], ends[0])

    def shown_difference(self, difference: _Values) -> _Values:
        """A difference or standard error of internal values in the user's unit: positive if the first is better."""
        return difference if self.bounds is None else difference * (self.bounds[1] - self.bounds[0])

    def internal_difference(self, difference: _Values) -> _Values:
        """A difference or standard deviation in the user's unit as one of internal values.

        >>> Unit("minimize", (0, 500)).internal_difference(125.0)
        0.25
        """
        return difference if self.bounds is None else difference / (self.bounds[1] - self.bounds[0])

    def text(self, reward: float) -> str:
        """A reward or a mean of rewards in the user's unit as text: to a ten-thousandth of the range, or six digits.

        >>> Unit().text(0.5), Unit("minimize", (0, 500)).text(125), Unit(bounds=None).text(0.000123456789)
        ('0.5000', '125.00', '0.000123457')
        """
        return f"{reward:.6g}" if self.decimals is None else f"{reward:.{self.decimals}f}"

    @property
    def decimals(self) -> int | None:
        """Digits after the point of a reward as text; None: six significant digits."""
        if self.bounds is None:
            return None
        exponent = math.floor(math.log10(self.bounds[1] - self.bounds[0]))
        return max(0, 4 - exponent) if -6 <= exponent <= 12 else None

    def fault(self, reward: Any) -> str:
        """Why a number is not a reward in this unit, and what to pass instead; "" if it is one."""
        if self.bounds is None:
            valid = -LARGEST_REWARD <= reward <= LARGEST_REWARD  # False for NaN
            return "" if valid else f"{reward!s:.80}, but a reward is a finite number of at most {LARGEST_REWARD:g}"
        low, high = self.bounds
        if low <= reward <= high:
            return ""
        fault = f"{reward!s:.80}, but a reward lies in [{low:g}, {high:g}]"
        if reward != reward:  # NaN, which no bounds allow
            return fault
        hint = "; and direction='minimize' if small rewards are better" if self.direction == "maximize" else ""
        return f"{fault}: pass bounds=(low, high), or bounds=None if rewards have none{hint}"

    def checked(self, reward: float) -> float | None:
        """A number as an internal value; None if it is not a reward in this unit, and `fault` says why."""
        if self.bounds is _FROM_0_TO_1 and self.direction == "maximize":  # the usual case, and the fastest
            return float(reward) if 0.0 <= reward <= 1.0 else None
        return None if self.fault(reward) else self.internal(float(reward))

    def first_fault(self, rewards: NDArray[Any]) -> tuple[int, str] | None:
        """The index of the first number in an array that is not a reward in this unit, and why; None if all are."""
        low, high = self.bounds or (-LARGEST_REWARD, LARGEST_REWARD)
        bad = ~((rewards >= low) & (rewards <= high))
        if not bad.any():
            return None
        index = int(bad.argmax())
        return index, self.fault(rewards[index])

    def __str__(self) -> str:
        if self.bounds is None:
            return f"{self.direction}, no bounds"
        return f"{self.direction}, bounds {self.bounds[0]:g} to {self.bounds[1]:g}"


def _checked_bounds(bounds: Any) -> tuple[float, float]:
    if isinstance(bounds, str | bytes) or not isinstance(bounds, _PAIRS) or len(bounds) != 2:
        raise wrong_value("bounds", bounds, "two numbers (low, high) are needed, or None if rewards have no bounds")
    low, high = (real_number("bounds", end) for end in bounds)
    if not max(abs(low), abs(high)) <= LARGEST_REWARD:
        raise wrong_value("bounds", bounds, "two finite numbers are needed, or None if rewards have no bounds")
    if not low < high:
        raise wrong_value("bounds", bounds, "the first has to be below the second: bounds=(low, high)")
    return _FROM_0_TO_1 if (low, high) == _FROM_0_TO_1 else (low, high)


DEFAULT_UNIT = Unit()
"""Rewards in [0, 1], of which larger ones are better."""
