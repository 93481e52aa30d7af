"""Checks that arms, algorithms and teams behave as they must: ours are tested with them, and yours can be.

>>> import collabtop as ct
>>> from collabtop.testing import check_algorithm, check_arms, check_team
>>> check_arms(ct.BernoulliArms([0.2, 0.7]))
>>> check_algorithm(ct.KZZ(balanced=True))
>>> check_team(ct.LocalTeam)
"""

from collabtop.testing.algorithms import check_algorithm, check_run
from collabtop.testing.arms import ConstantArms, UnboundedArms, check_arms
from collabtop.testing.isolated_team import IsolatedTeam
from collabtop.testing.simulations import SimulationCase, check_simulation
from collabtop.testing.teams import check_team
from collabtop.testing.wire_team import WireTeam, words_on_wire

__all__ = [
    "ConstantArms",
    "IsolatedTeam",
    "SimulationCase",
    "UnboundedArms",
    "WireTeam",
    "check_algorithm",
    "check_arms",
    "check_run",
    "check_simulation",
    "check_team",
    "words_on_wire",
]
