"""Finds what an algorithm sends for nothing, and work that is declared as parallel but is not.

An agent knows the problem, the algorithm and its options, when it is asked, and what it was sent and has sent before.
Whatever a message leaves unpaid has to follow from that: the fields in `free`, whether an optional array is None (in an
extension's message that is paid for), and the kind, unless the message declares with `chosen_from` that it was chosen.
So the algorithm is run on many data sets with many seeds, and all runs in which an agent has seen the same so far have
to continue with the same unpaid part.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, get_args

import msgspec
import numpy as np

from collabtop.algorithms.base import Algorithm
from collabtop.arms import Arms, Draws
from collabtop.arms.base import Ints, Reals
from collabtop.errors import SettingError
from collabtop.events import Event, Exchanged, RoundBegan
from collabtop.problem import Problem
from collabtop.protocol.ledger import presence_is_paid
from collabtop.protocol.messages import Message, kind_of
from collabtop.protocol.packing import Packed
from collabtop.runs.identification import identify
from collabtop.runs.result import Result
from collabtop.testing.isolated_team import Crossing, IsolatedTeam

_META = ("free", "chosen_from")
_DECIMALS = 9
"""Smaller differences of real numbers only break ties, so they do not make runs different."""


class ScriptedArms(Arms):
    """Arms that pay each agent a fixed share of its pulls: share `shares[k, i]` of the pulls of arm i by agent k.

    Rewards are 0 or 1, so every data set could have been drawn from any IID arms. It depends on the agent and never
    on the seed, so two data sets can differ for one agent and be equal for all others.
    """

    repeatable: ClassVar[bool] = True

    def __init__(self, shares: Reals) -> None:
        super().__init__(shares.shape[1])
        self._shares = shares

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """The rounded share of the pulls."""
        return np.asarray(np.floor(self._shares[draws.agent, arms] * times + 0.5), np.float64)

    def identity(self) -> list[Any]:
        """The class, the numbers of arms and agents, and the shares."""
        return [*super().identity(), self._shares.tolist()]


class FreeInformation:
    """What agents were sent for nothing, over many runs of one algorithm on one problem.

    >>> from collabtop.protocol.messages import Cut, PullHand
    >>> runs = FreeInformation()
    >>> runs.add("first", [Crossing(1, 0, "down", PullHand(5, free=("times",)))])
    >>> runs.add("second", [Crossing(1, 0, "down", PullHand(5, free=("times",)))])
    >>> runs.add("third", [Crossing(1, 0, "down", PullHand(6, free=("times",)))])
    Traceback (most recent call last):
        ...
    AssertionError: agent 0 gets times of PullHand for nothing in exchange 1: 6, but 5 in a run that was the same for it
    up to there (third; first). Pay for it, or compute it from what the agent knows
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[Any, ...], tuple[dict[str, Any], str]] = {}

    def add(self, run: str, crossings: Iterable[Crossing]) -> None:
        """Add a run; raise `AssertionError` if something unpaid differs from an earlier run without a reason."""
        histories: dict[int, int] = {}
        for crossing in crossings:
            agent, message, kind = crossing.agent, crossing.message, kind_of(type(crossing.message))
            known = (agent, crossing.direction, crossing.number, histories.get(agent, 0))
            foreseen = message.chosen_from or (kind,)
            self._compare(known, {"the kind": foreseen}, run, crossing, kind)
            paid, unpaid = split(message)
            self._compare((*known, kind, *paid.items()), unpaid, run, crossing, kind)
            histories[agent] = hash((*known, kind, *paid.items(), *unpaid.items()))

    def _compare(self, known: tuple[Any, ...], unpaid: dict[str, Any], run: str, crossing: Crossing, kind: str) -> None:
        before, other_run = self._seen.setdefault(known, (unpaid, run))
        for name, value in unpaid.items():
            if before[name] != value:
                receives = "gets" if crossing.direction == "down" else "sends"
                raise AssertionError(
                    f"agent {crossing.agent} {receives} {name} of {kind} for nothing in exchange {crossing.number}: "
                    f"{_text(value)}, but {_text(before[name])} in a run that was the same for it up to there "
                    f"({run}; {other_run}). Pay for it, or compute it from what the agent knows"
                )


def split(message: Message) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a message that are paid for, and what it conveys unpaid, both as plain values.

    >>> from collabtop.protocol.messages import PullOpen
    >>> split(PullOpen(np.array([True, False]), 25, 0.1, free=("times", "coarseness")))
    ({'survived': (True, False)}, {'whether survived is None': False, 'times': 25, 'coarseness': 0.1})
    """
    paid, unpaid = {}, {}
    for field in msgspec.structs.fields(message):
        value = _plain(getattr(message, field.name))
        if field.name in message.free:
            unpaid[field.name] = value
        elif field.name not in _META:
            if not presence_is_paid(type(message), field.type):
                if type(None) in get_args(field.type):
                    unpaid[f"whether {field.name} is None"] = value is None
                value = () if value is None else value  # neither None nor an empty array costs a word
            paid[field.name] = value
    return paid, unpaid


def _plain(value: Any) -> Any:
    if isinstance(value, Packed):
        value = value.unpack()
    if isinstance(value, np.ndarray):
        return tuple(value.round(_DECIMALS).tolist() if value.dtype == np.float64 else value.tolist())
    return round(value, _DECIMALS) if isinstance(value, float) else value


def _text(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if len(text) < 80 else f"{text[:77]}..."


# -- runs on scripted data

_SHAPES = ((2, 1, 2), (4, 2, 3), (6, 1, 3), (16, 2, 2), (48, 3, 3), (80, 2, 2), (5, 1, 1))
"""n, m and K of the problems that are tried."""
_LEVELS = 2
"""Few different rewards, so that what an agent sees is often the same in two runs."""
_DATA_SETS, _WITH_SECOND_SEED = 16, 4
_LATE_DATA_SETS = 48
"""Where runs have many exchanges, the last ones are rarely reached with the same history."""


def check_free_information(algorithm: Algorithm, rng: np.random.Generator) -> None:
    """Check that nothing unpaid depends on data or chance, and that the work of a round is done in parallel."""
    for n, m, agents in _SHAPES:
        try:
            algorithm.check(Problem(n, m, agents, 1))
        except SettingError:
            continue
        smallest = algorithm.smallest_horizon(Problem(n, m, agents, 1))
        for horizon in (smallest, 4 * smallest + n):
            runs = FreeInformation()
            data_sets = _LATE_DATA_SETS if n > 40 and horizon > smallest else _DATA_SETS
            for data, shares in enumerate(_data_sets(n, agents, data_sets, rng)):
                for seed in range(2 if data < _WITH_SECOND_SEED else 1):
                    case = f"{algorithm}: n={n} m={m} agents={agents} horizon={horizon} seed={seed} data set {data}"
                    team = run_scripted(algorithm, ScriptedArms(shares), m, agents, horizon, seed, case)
                    runs.add(case, team.crossings)


def _data_sets(n: int, agents: int, count: int, rng: np.random.Generator) -> Iterable[Reals]:
    """Data sets that differ little from one another, so that some agents often see the same in two of them."""
    shares = rng.integers(0, _LEVELS + 1, (agents, n)) / _LEVELS
    for _ in range(count):
        yield shares
        shares, agent, change = shares.copy(), rng.integers(agents), rng.random()
        if change < 0.7:  # two arms change places, so only agents that pull one of them notice
            pair = rng.integers(n, size=2)
            shares[:, pair] = shares[:, pair[::-1]]
        elif change < 0.85:
            shares[agent] = rng.permutation(shares[agent])
        else:
            shares[agent, rng.integers(n)] = rng.integers(0, _LEVELS + 1) / _LEVELS


def run_scripted(
    algorithm: Algorithm, arms: Arms, m: int, agents: int, horizon: int, seed: int, case: str
) -> IsolatedTeam:
    """Run an algorithm with agents in another process, check that rounds are parallel, and return the team."""
    team, events = IsolatedTeam(), list[Event]()
    result = identify(
        arms,
        m,
        agents=agents,
        horizon=horizon,
        algorithm=algorithm,
        seed=seed,
        team=team,
        on_event=events.append,
    )
    check_parallel(result, team, events, case)
    return team


def check_parallel(result: Result, team: IsolatedTeam, events: Sequence[Event], case: str) -> None:
    """Check that the time of each round covers its exchanges, which follow one after the other.

    The coordinator waits for the replies of an exchange before it sends the next one. So a round takes at least the
    pulls of the busiest agent of each of its exchanges, added up.
    """
    serial, current = [0] * len(result.rounds), 0
    for event in events:
        if isinstance(event, RoundBegan):
            current = event.round
        elif isinstance(event, Exchanged):
            serial[current] += team.busiest.get(event.number, 0)
    for summary, needed in zip(result.rounds, serial, strict=True):
        assert needed <= summary.time, (
            f"round {summary.round} is counted as {summary.time} time steps, but its exchanges take {needed} one after "
            f"the other ({case}). Ask all agents at once, or begin a round for each exchange"
        )
