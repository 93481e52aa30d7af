"""How ties are broken: means get one random perturbation, and every ranking of a round uses the perturbed means."""

import numpy as np

from collabtop.protocol.messages import Reals

# Far above the rounding errors of means and gaps (2^-52), so that these order nothing, and far below the smallest
# difference that rewards can make: a single success in 2^34 pulls.
AMPLITUDE = 2.0**-36


def perturbed(means: Reals, rng: np.random.Generator) -> Reals:
    """Means in which no two are equal, so that rankings by mean and by gap have no ties.

    A gap of perturbed means is itself perturbed. So both rankings break ties alike and at random. Without this,
    rounding would order equal gaps: 1 - 2/3 is larger than 2/3 - 1/3 in floating point.

    >>> values = perturbed(np.array([0.5, 0.25, 0.5]), np.random.default_rng(0))
    >>> np.argsort(values), np.round(values, 6)
    (array([1, 2, 0]), array([0.5 , 0.25, 0.5 ]))
    """
    values: Reals = means + AMPLITUDE * (rng.random(len(means)) - means)  # a mixture, so it stays within [0, 1]
    return values
