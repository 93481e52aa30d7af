"""What is known about the candidates' true means before a run: from a pilot, or from a stated spread."""

import math
from collections.abc import Sequence
from os import PathLike
from typing import Any, NamedTuple

import msgspec
import numpy as np

from collabtop.arms.base import Reals
from collabtop.arms.logged import LoggedArms, read_rewards
from collabtop.arms.unit import DEFAULT_UNIT, Unit
from collabtop.errors import InputError
from collabtop.planning.setting import planned_arms
from collabtop.runlog.file import read_log
from collabtop.runlog.log_state import LogState
from collabtop.stats import Z_95
from collabtop.validation import real_number, whole_number, wrong_value

_LEAST_SPREAD = 1e-4
_LEAST_NOISE = 0.02


class Pilot(NamedTuple):
    """Earlier rewards of some of the candidates, as internal values."""

    pulls: Reals
    sums: Reals
    noise: float
    """Variance of a candidate's rewards, divided by that of 0/1 rewards with the same mean; at most 1."""
    unit: Unit
    agents: int | None
    seconds_per_pull: float | None
    """How long a pull took, if the pilot is the log of a run with times."""


class Beliefs(msgspec.Struct, frozen=True):
    """The true means, or a Beta distribution per candidate from which plausible ones are drawn."""

    n: int
    """Number of candidates."""
    text: str
    """Where this comes from."""
    agents: int = 1
    unit: Unit = DEFAULT_UNIT
    seconds_per_pull: float | None = None
    """How long a pull took in the pilot, if it is known."""
    means: Reals | None = None
    """The true means, if they are taken for certain."""
    successes: Reals | None = None
    failures: Reals | None = None
    """The parameters of the Beta distributions."""
    noise: float = 1.0

    def draw(self, rng: np.random.Generator) -> Reals:
        """One set of plausible true means."""
        if self.means is not None:
            return self.means
        return rng.beta(self.successes, self.failures)  # type: ignore[arg-type]  # they are given without means


def read_beliefs(
    n: int | None, m: int | None, agents: int | None, *, gap: Any, means: Any, pilot: Any, spread: Any
) -> Beliefs:
    """What is known about the candidates, from exactly one of the four arguments."""
    values = {"pilot": pilot, "spread": spread, "gap": gap, "means": means}
    given = [name for name, value in values.items() if value is not None]
    if len(given) != 1:
        count = f"{' and '.join(given)} were given" if given else "none was given"
        raise InputError(f"give exactly one of pilot, spread, gap and means: {count}")
    if n is not None:
        n = whole_number("n", n, least=2)
    if pilot is not None:
        evidence = read_pilot(pilot)
        beliefs = from_pilot(evidence, len(evidence.pulls) if n is None else n)
    elif spread is not None:
        if n is None:
            raise InputError("n is missing: a spread does not tell the number of candidates", argument="n")
        beliefs = from_spread(spread, n)
    else:
        arms, problem, text = planned_arms(n, m, 1 if agents is None else agents, gap, means)
        if not arms.iid:
            raise InputError("means differ between agents, but a budget needs one mean per arm", argument="means")
        beliefs = Beliefs(problem.n, text, means=arms.means)
    if agents is None:
        return beliefs
    return msgspec.structs.replace(beliefs, agents=whole_number("agents", agents, least=1))


def read_pilot(pilot: Any) -> Pilot:
    """The rewards of a `LoggedArms`, of a CSV file of rewards, or of an earlier run's checkpoint.

    >>> read_pilot(LoggedArms([[0, 1, 1], [0, 0]])).pulls
    array([3., 2.])
    """
    if isinstance(pilot, str | PathLike):
        if is_table(pilot):
            pilot = read_rewards(pilot)
        else:
            return _of_log(pilot)
    if not isinstance(pilot, LoggedArms):
        needed = "LoggedArms, a CSV file of rewards or a checkpoint is needed"
        raise wrong_value("pilot", pilot, needed)
    if not pilot.iid:
        raise InputError(
            "pilot has different rewards for each agent, but a budget is planned for candidates that are the same for "
            "all: leave out its column of agents",
            argument="pilot",
        )
    _check_bounds(pilot.unit)
    pulls, sums, squares = pilot.totals()
    return Pilot(pulls, sums, _noise(pulls, sums, squares), pilot.unit, None, None)


def is_table(path: str | PathLike[str]) -> bool:
    """Whether the name of a file is that of a table of rewards, not of a checkpoint.

    >>> is_table("pilot.CSV"), is_table("run.ctlog")
    (True, False)
    """
    return str(path).lower().endswith((".csv", ".tsv", ".txt"))


def _of_log(path: str | PathLike[str]) -> Pilot:
    state = LogState(read_log(path))
    header = state.header
    assert header is not None  # a log without one cannot be read
    _check_bounds(header.unit)
    pulls = (state.seen_pulls - state.failed).astype(np.float64)
    if not pulls.any():
        raise InputError(f"pilot {str(path)!r} has no rewards: at remote sites they stay there", argument="pilot")
    pace = None
    if state.started is not None and state.latest is not None and state.latest > state.started:
        pace = (state.latest - state.started) * header.agents / float(pulls.sum())
    sums = np.where(pulls > 0, np.nan_to_num(state.means) * pulls, 0.0)
    return Pilot(pulls, sums, 1.0, header.unit, header.agents, pace)


def _check_bounds(unit: Unit) -> None:
    if not unit.bounded:
        raise InputError("pilot has rewards without bounds, but a plan needs them", argument="pilot")


def _noise(pulls: Reals, sums: Reals, squares: Reals) -> float:
    repeated = pulls > 1
    if not repeated.any():
        return 1.0
    count, mean = pulls[repeated], sums[repeated] / pulls[repeated]
    variance = (squares[repeated] / count - mean**2).sum()
    largest = (mean * (1 - mean)).sum()
    return float(min(1.0, max(_LEAST_NOISE, variance / largest))) if largest > 0 else 1.0


def from_pilot(pilot: Pilot, n: int) -> Beliefs:
    """Each candidate's own rewards, with the spread over all candidates as the prior; new ones have the prior only."""
    known = pilot.pulls > 0
    if known.sum() < 2:
        raise InputError(
            f"pilot has rewards of {int(known.sum())} candidates, but at least 2 are needed", argument="pilot"
        )
    if len(pilot.pulls) > n:
        raise wrong_value("n", n, f"the pilot has {len(pilot.pulls)} candidates")
    means = (pilot.sums[known] + 0.5) / (pilot.pulls[known] + 1)
    centre = float(means.mean())
    chance = float((means * (1 - means) / pilot.pulls[known]).mean()) * pilot.noise
    spread = math.sqrt(max(_LEAST_SPREAD**2, float(means.var(ddof=1)) - chance))
    first, second = _beta(centre, spread)
    pulls, sums = (np.pad(values, (0, n - len(values))) / pilot.noise for values in (pilot.pulls, pilot.sums))
    text = f"a pilot of {pilot.pulls.sum():,.0f} pulls of {int(known.sum()):,} candidates"
    return Beliefs(
        n,
        text,
        agents=pilot.agents or 1,
        unit=pilot.unit,
        seconds_per_pull=pilot.seconds_per_pull,
        successes=first + sums,
        failures=second + pulls - sums,
        noise=pilot.noise,
    )


def from_spread(spread: Any, n: int) -> Beliefs:
    """Candidates of which about 95% have true means between two numbers.

    >>> beliefs = from_spread((0.2, 0.6), n=1_000)
    >>> means = beliefs.draw(np.random.default_rng(1))
    >>> bool(0.93 < np.mean((0.2 < means) & (means < 0.6)) < 0.97)
    True
    """
    if not isinstance(spread, Sequence) or isinstance(spread, str) or len(spread) != 2:
        raise wrong_value("spread", spread, "two numbers are needed, between which most true means lie")
    low, high = (real_number("spread", end) for end in spread)
    if not 0 <= low < high <= 1:
        raise wrong_value("spread", spread, "0 <= low < high <= 1 is needed")
    first, second = _beta((low + high) / 2, (high - low) / (2 * Z_95))
    text = f"a spread of true means from {low:g} to {high:g}"
    return Beliefs(n, text, successes=np.full(n, first), failures=np.full(n, second))


def _beta(mean: float, spread: float) -> tuple[float, float]:
    mean = min(1 - 1e-6, max(1e-6, mean))
    total = max(0.2, mean * (1 - mean) / spread**2 - 1)
    return mean * total, (1 - mean) * total
