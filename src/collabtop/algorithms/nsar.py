"""Nonlinear Sequential Accepts and Rejects (Shahrampour and Tarokh 2017): a baseline for one agent."""

from dataclasses import dataclass
from typing import ClassVar

from collabtop.algorithms.sar import SAR
from collabtop.validation import positive_number


@dataclass(frozen=True)
class NSAR(SAR):
    """`SAR` with pulls of an open arm that grow as s^-power when s arms are open; `SAR` itself has power 1.

    With a horizon of T K it shows what K agents could do with `frugal-top`'s schedule if they shared everything for
    free.

    Args:
        power: the paper's p. Below 1, more of the pulls go to the many arms that are settled early; above 1, to the
            few that are settled last.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1, 0.2])
    >>> ct.identify(arms, m=2, agents=1, horizon=400, algorithm=ct.NSAR(power=1.3), seed=1).top
    [0, 1]
    """

    name: ClassVar[str] = "nsar"
    summary: ClassVar[str] = "SAR with pulls of an open arm that grow as a power of the number of open arms."
    power: float = 0.85

    def __post_init__(self) -> None:
        positive_number("power", self.power)

    @property
    def _power(self) -> float:
        return self.power
