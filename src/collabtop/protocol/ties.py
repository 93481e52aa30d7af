"""How ties are broken: means get one random perturbation, and every ranking of a round uses the perturbed means."""

import numpy as np

from collabtop.protocol.messages import Reals

# Far above the rounding errors of means and gaps (2^-52), so that these order nothing, and far below the smallest
# difference that rewards can make: a single success in 2^34 pulls.
AMPLITUDE = 2.0**-36


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
    values: Reals = means + AMPLITUDE * (rng.random(len(means)) - means)  # a mixture, so it stays within [0, 1]
    return values
