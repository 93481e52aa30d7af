"""How ties are broken: means get one random perturbation, and every ranking of a round uses the perturbed means."""

import numpy as np

from collabtop.blocks import in_blocks
from collabtop.protocol.messages import Flags, Ints, Reals

# Far above the rounding errors of means and gaps (2^-52), so that these order nothing, and far below the smallest
# difference that rewards can make: a single success in 2^34 pulls.
AMPLITUDE = 2.0**-36

_FEW = 256

# NumPy selects a single rank and sorts (unless the sort is stable) with AVX-512. On many processors all that follows is
# then slower for a while, which costs more than it saves for fewer values than this.
_MANY = 2**12

_FEW_ABOVE = 4


# Means without bounds have rounding errors in proportion to their size; the scoreboard keeps 44 bits of a sum.
_RELATIVE_AMPLITUDE = 2.0**-40
_SMALLEST_SCALE = 1e-280  # so that means of 0 are perturbed too


def perturbed(means: Reals, rng: np.random.Generator, *, bounded: bool = True) -> Reals:
    """Means in which no two are equal, so that rankings by mean and by gap have no ties.

    A gap of perturbed means is itself perturbed. So both rankings break ties alike and at random. Without this,
    rounding would order equal gaps: 1 - 2/3 is larger than 2/3 - 1/3 in floating point.

    >>> values = perturbed(np.array([0.5, 0.25, 0.5]), np.random.default_rng(0))
    >>> np.argsort(values), np.round(values, 6)
    (array([1, 2, 0]), array([0.5 , 0.25, 0.5 ]))
    """
    if not bounded:
        scale = max(_SMALLEST_SCALE, float(np.abs(means).max(initial=0.0)))
        unbounded: Reals = means + _RELATIVE_AMPLITUDE * scale * (rng.random(len(means)) - 0.5)
        return unbounded
    values: Reals = rng.random(len(means))
    in_blocks(_mix, values, means)
    return values


def _mix(values: Reals, means: Reals) -> None:
    values -= means
    values *= AMPLITUDE
    values += means  # a mixture of a random number and the mean, so it stays within [0, 1]


def random_order(sums: Reals, rng: np.random.Generator) -> Ints:
    """The indices that sort sums of rewards, equal ones in random order.

    >>> random_order(np.array([3.0, 1.0, 2.0]), np.random.default_rng(0))
    array([1, 2, 0])
    """
    chance = rng.random(len(sums))
    if len(sums) >= _FEW and (np.floor(sums) == sums).all():
        # NumPy sorts by one key many times faster than by two. Rounding changes no order unless it makes keys equal.
        keys = sums + chance
        order = keys.argsort()
        ordered = keys[order]
        if (ordered[1:] > ordered[:-1]).all():
            return order
    return np.lexsort((chance, sums))


def sort(values: Reals) -> None:
    """Sort values in place."""
    values.sort(kind=None if len(values) >= _MANY else "stable")


def _of_rank(values: Reals, rank: int) -> Reals:
    """The value of this rank, 0 for the smallest, or that of each row."""
    ordered = np.partition(values, rank if values.shape[-1] >= _MANY else (rank, rank))
    return ordered[..., rank]


def border_values(values: Reals, below: int) -> tuple[float, float]:
    """The largest of the `below` smallest values, and the smallest of the others.

    >>> border_values(np.array([3.0, 1.0, 2.0]), below=2)
    (2.0, 3.0)
    """
    above = len(values) - below
    if above <= _FEW_ABOVE:
        return _next_to_maxima(values, above)
    if len(values) >= _MANY:
        ordered = np.partition(values, below)
        return float(ordered[:below].max()), float(ordered[below])
    ordered = values.copy()
    ordered.partition((below - 1, below))
    return ordered.item(below - 1), ordered.item(below)


def _next_to_maxima(values: Reals, above: int) -> tuple[float, float]:
    """The value that comes next to the `above` largest, and the smallest of these: NumPy finds maxima fast."""
    largest: list[tuple[int, float]] = []
    for _ in range(above + 1):
        index = int(values.argmax())
        largest.append((index, values.item(index)))
        values[index] = -np.inf
    for index, value in largest:
        values[index] = value
    return largest[-1][1], largest[-2][1]


def smallest(values: Reals, count: int) -> Flags:
    """Mark exactly `count` smallest values, 0 <= count <= len(values); of equal ones, the first.

    >>> smallest(np.array([3.0, 1.0, 2.0]), 2)
    array([False,  True,  True])
    """
    if count == 0:
        return np.zeros(len(values), np.bool_)
    return first_up_to(values, float(_of_rank(values, count - 1)), count)


def smallest_in_rows(rows: Reals, count: int) -> Flags:
    """Mark exactly `count` smallest values of each row, 0 <= count <= its length; of equal ones, the first.

    >>> smallest_in_rows(np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 1.0]]), 2)
    array([[False,  True,  True],
           [ True,  True, False]])
    """
    if count == 0:
        return np.zeros(rows.shape, np.bool_)
    last = _of_rank(rows, count - 1)[:, np.newaxis]
    chosen: Flags = rows <= last
    if np.count_nonzero(chosen) > count * len(rows):
        for row in np.flatnonzero(np.count_nonzero(chosen, axis=1) > count).tolist():
            chosen[row] = first_up_to(rows[row], last[row, 0], count)
    return chosen


def first_up_to(values: Reals, last: float, count: int) -> Flags:
    """Mark the first `count` of the values that are at most `last`, the one of rank `count`."""
    chosen: Flags = values <= last
    surplus = np.count_nonzero(chosen) - count
    if surplus:  # such as the two arms next to the border, which have the same gap; whichever stays, both are clear
        chosen[np.flatnonzero(values == last)[-surplus:]] = False
    return chosen
