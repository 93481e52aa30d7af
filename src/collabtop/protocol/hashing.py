"""The hash function that deals arms to agents: a random polynomial over the field of 2^31 - 1 elements."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from collabtop.protocol.messages import Ints

PRIME = 2**31 - 1
_CHUNK = 1 << 15
_FEW_POINTS, _DIGIT = 1024, 11


def draw_coefficients(n: int, rng: np.random.Generator) -> Ints:
    """Draw 10 ln n random coefficients (rounded up), which make the hash (10 ln n)-wise independent.

    >>> len(draw_coefficients(588, np.random.default_rng(0)))
    64
    """
    return rng.integers(PRIME, size=_usual_count(n))


def _usual_count(n: int) -> int:
    return max(1, math.ceil(10 * math.log(n)))


def hand(coefficients: Ints, n: int, agents: int, agent: int) -> Ints:
    """The arms that the hash deals to one agent (the paper's I_0^k), in ascending order.

    >>> [hand(np.array([1, 0]), n=5, agents=2, agent=k).tolist() for k in (0, 1)]
    [[1, 3], [0, 2, 4]]
    """
    return _hands(coefficients.tobytes(), n, agents)[agent]


# All agents of a process use the same polynomial, so it is evaluated once for all of them.
@lru_cache(maxsize=1)
def _hands(coefficients: bytes, n: int, agents: int) -> list[Ints]:
    owners = (evaluate(np.frombuffer(coefficients, np.int64), n) % agents).astype(np.min_scalar_type(agents))
    return np.split(np.argsort(owners, kind="stable"), np.cumsum(np.bincount(owners, minlength=agents))[:-1])


def evaluate(coefficients: Ints, n: int) -> NDArray[np.uint64]:
    """Evaluate the polynomial at 1, ..., n: at few points from their powers, otherwise by Horner's rule.

    Powers are kept for later runs, so only for the usual number of coefficients: a peer may send any number of them.

    >>> evaluate(np.array([2, 0, 5]), 3)      # 2 x^2 + 5
    array([ 7, 13, 23], dtype=uint64)
    """
    if n <= _FEW_POINTS and len(coefficients) == _usual_count(n):
        return _from_powers(coefficients, _powers(n, len(coefficients)))
    return _in_blocks(coefficients, n)


def _from_powers(coefficients: Ints, powers: NDArray[np.float64]) -> NDArray[np.uint64]:
    # Products of 31-bit numbers do not fit into a float. Those with the three digits of a coefficient (to the base
    # 2^11) do, and so do the sums of up to 2^11 of them.
    shifts = np.array([[2 * _DIGIT], [_DIGIT], [0]])
    digits = coefficients >> shifts & (1 << _DIGIT) - 1
    prime, base = np.uint64(PRIME), np.uint64(1 << _DIGIT)
    high, middle, low = (digits.astype(np.float64) @ powers).astype(np.uint64)
    values: NDArray[np.uint64] = ((high % prime * base + middle) % prime * base + low) % prime
    return values


# The runs of a study have the same arms. For few of them, calls of NumPy take longer than what they compute.
@lru_cache(maxsize=4)
def _powers(n: int, count: int) -> NDArray[np.float64]:
    """The powers count - 1, ..., 1, 0 of 1, ..., n in the field, one row each."""
    points, prime = np.arange(1, n + 1, dtype=np.uint64), np.uint64(PRIME)
    rows = [np.ones_like(points)]
    while len(rows) < count:
        rows.append(rows[-1] * points % prime)
    powers = np.array(rows[::-1], np.float64)
    powers.setflags(write=False)
    return powers


def _in_blocks(coefficients: Ints, n: int) -> NDArray[np.uint64]:
    """Horner's rule, in blocks of points that fit into the CPU cache."""
    values = np.empty(n, np.uint64)
    for start in range(0, n, _CHUNK):
        stop = min(start + _CHUNK, n)
        points = np.arange(start + 1, stop + 1, dtype=np.uint64)
        values[start:stop] = _horner(coefficients.astype(np.uint64), points)
    return values


def _horner(coefficients: NDArray[np.uint64], points: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mask, shift = np.uint64(PRIME), np.uint64(31)
    value = np.full(len(points), coefficients[0])
    high = np.empty_like(value)
    # A reduced value has at most 33 bits, and each step adds those of a point, so several steps may fit into 64 bits.
    steps_that_fit = max(1, 31 // int(points[-1]).bit_length())
    for step, coefficient in enumerate(coefficients[1:], 1):
        value *= points
        value += coefficient
        if step % steps_that_fit == 0:
            # 2^31 = 1 in this field, so the bits above the 31st are added to those below.
            np.right_shift(value, shift, out=high)
            value &= mask
            value += high
    return value % mask
