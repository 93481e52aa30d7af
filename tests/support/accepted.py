"""What an algorithm accepts, found by asking it."""

from __future__ import annotations

import collabtop as ct


def accepted_setting(algorithm: str | ct.Algorithm, m: int, agents: int) -> tuple[int, int]:
    """The m and the number of agents nearest to these that the algorithm accepts."""
    made = ct.make_algorithm(algorithm) if isinstance(algorithm, str) else algorithm
    return next(
        (m, agents) for m, agents in ((m, agents), (1, agents), (m, 1), (1, 1), (m, 3)) if accepts(made, m, agents)
    )


def accepts(algorithm: ct.Algorithm, m: int, agents: int, *, paired: bool = False) -> bool:
    """Whether the algorithm accepts this m and this many agents."""
    try:
        algorithm.check(ct.Problem(n=2 * m + 1, m=m, agents=agents, horizon=1, numbered=paired))
    except ct.SettingError:
        return False
    return True
