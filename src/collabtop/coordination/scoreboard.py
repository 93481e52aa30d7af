"""What the coordinator has learnt about each arm: sums and pulls where it knows them, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from collabtop.arms.unit import DEFAULT_UNIT, Unit
from collabtop.blocks import in_blocks
from collabtop.errors import ProtocolError
from collabtop.intervals import Evidence, FiniteEvidence, drift_bounds, mean_bounds, weighted_bounds
from collabtop.problem import opposite, squares_of_opposite
from collabtop.protocol.messages import Ints, Reals

Verdict = Literal["accepted", "rejected"]

OPEN, ACCEPTED, REJECTED = 0, 1, 2
_UNKNOWN = -1

# A mean crosses, a sum is stored. Multiplied back, a sum of 0/1 rewards can be off in its last bits. So sums are
# rounded to 44 significant bits, which restores whole numbers and is exact enough for all others.
_SPLIT = 2.0**9 + 1


def _rounded(sums: Reals) -> Reals:
    scaled = sums * _SPLIT
    in_blocks(_split, scaled, sums)
    return scaled


def _split(scaled: Reals, sums: Reals) -> None:
    scaled -= scaled - sums  # Veltkamp's splitting: the upper 44 bits


class Estimate(msgspec.Struct, frozen=True):
    """What the coordinator learnt about one arm, in the user's unit; None where it learnt nothing."""

    arm: int
    verdict: Verdict
    round: int | None
    """The round that settled it; None if that happened inside an agent."""
    phase: str | None
    mean: float | None
    pulls: int | None
    settled: bool = True
    """False if the verdict is a guess, because the run reached its limit before it was sure."""


class Estimates:
    """What the coordinator learnt about all arms: a sequence of `Estimate`, stored in columns.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5])
    >>> ct.identify(arms, m=1, agents=2, horizon=100, algorithm="uniform", seed=1).estimates[1]
    Estimate(arm=1, verdict='rejected', round=0, phase='shared', mean=0.5, pulls=100, settled=True)
    """

    def __init__(
        self,
        columns: Columns,
        phases: NDArray[np.int8],
        phase_names: tuple[str | None, ...],
        guesses: frozenset[int] = frozenset(),
        unit: Unit = DEFAULT_UNIT,
        history: Sequence[BatchOfArms] = (),
    ) -> None:
        self.columns = columns
        """What is known about all arms, one array per column."""
        self._verdicts, self._rounds, self._phases = columns.verdicts, columns.rounds, phases
        self.guesses = guesses
        """Arms whose verdict is a guess."""
        self._phase_names = phase_names
        self._means, self._pulls = columns.means, columns.pulls  # internal values
        self._unit = unit
        self.history = history
        """The pulls of each round, if arms are paired: all arms of a batch were pulled on the same examples."""

    def __len__(self) -> int:
        return len(self._verdicts)

    def __getitem__(self, arm: int) -> Estimate:
        arm = range(len(self))[arm]
        round_, mean, pulls = int(self._rounds[arm]), float(self._means[arm]), int(self._pulls[arm])
        return Estimate(
            arm=arm,
            verdict="accepted" if self._verdicts[arm] == ACCEPTED else "rejected",
            round=None if round_ == _UNKNOWN else round_,
            phase=self._phase_names[self._phases[arm]],
            mean=None if np.isnan(mean) else self._unit.shown(mean),
            pulls=pulls if pulls > 0 else None,
            settled=arm not in self.guesses,
        )

    def __iter__(self) -> Iterator[Estimate]:
        return (self[arm] for arm in range(len(self)))

    def pulls_by_arm(self) -> list[int | None]:
        """Pulls of each arm; None if the coordinator does not know them."""
        return [pulls if pulls > 0 else None for pulls in self._pulls.tolist()]

    def completed(self, accepted: Ints, means: Reals, pulls: Ints) -> Estimates:
        """The same with a verdict for every arm: `accepted` of the open ones are accepted, all verdicts are guesses.

        `means` and `pulls` replace what is known about all arms.
        """
        is_open, verdicts = self._verdicts == OPEN, self._verdicts.copy()
        verdicts[is_open] = REJECTED
        verdicts[accepted] = ACCEPTED
        guesses = self.guesses.union(np.flatnonzero(is_open).tolist())
        squares = np.where(pulls == self._pulls, self.columns.squares, means * pulls if self._unit.bounded else np.nan)
        columns = Columns(verdicts, self._rounds, means, pulls, squares, None, self.columns.noise)
        return Estimates(columns, self._phases, self._phase_names, guesses, self._unit, self.history)

    def known(self, verdict: Verdict) -> tuple[Ints, Reals, Ints]:
        """The arms with that verdict whose pulls the coordinator knows, with their internal means and pulls."""
        wanted = self._verdicts == (ACCEPTED if verdict == "accepted" else REJECTED)
        arms = np.flatnonzero(wanted & (self._pulls > 0))
        return arms, self._means[arms], self._pulls[arms]

    def top(self) -> list[int]:
        """The accepted arms, best first; those whose mean never reached the coordinator come first (guesses: last)."""
        arms = np.flatnonzero(self._verdicts == ACCEPTED)
        keys = np.nan_to_num(-self._means[arms], nan=-np.inf)
        if self.guesses:
            is_guess = np.isin(arms, list(self.guesses))
            keys[is_guess & np.isinf(keys)] = np.inf
        return [int(arm) for arm in arms[np.argsort(keys, kind="stable")]]


class Columns(NamedTuple):
    """What the coordinator knows about all arms, one array per column."""

    verdicts: NDArray[np.int8]
    """`OPEN`, `ACCEPTED` or `REJECTED`."""
    rounds: NDArray[np.int32]
    """The round that settled the arm; -1 if it is open, or the round is unknown."""
    means: Reals
    """NaN if unknown."""
    pulls: Ints
    """0 if the arm is unknown, -1 if a mean is known but not the number of pulls behind it."""
    squares: Reals
    """Sums of the squared rewards, where agents sent them; otherwise the sums of rewards, which are no smaller."""
    finite: Evidence | None
    """What the rewards say about the means, if each example is used once and all of them make the means exact."""
    noise: Noisy | None = None
    """The noise in the means, if the run has differential privacy."""


class Noisy(NamedTuple):
    """The noise in the sums of arms: `batches` of it per arm, each with this standard deviation."""

    batches: Ints
    deviation: float


class BatchOfArms(NamedTuple):
    """Pulls of several arms on the same examples: `pulls` each."""

    arms: Ints
    sums: Reals
    pulls: int


class LocalAnswer(NamedTuple):
    """The best arms of one agent on its own, for algorithms that find them."""

    arms: tuple[int, ...]
    sure: bool
    """Whether the agent is sure of all of them."""


class Scoreboard:
    """The coordinator's memory of n arms: an algorithm writes it, and a result is made from it.

    >>> board = Scoreboard(3)
    >>> board.add(np.array([0, 2]), sums=np.array([6.0, 1.0]), pulls=10)
    >>> board.means(np.array([0, 2]))
    array([0.6, 0.1])
    >>> board.accept(np.array([0]), round=0, phase="shared")
    >>> board.reject_rest()
    >>> board.verdict().top()
    [0]
    """

    def __init__(
        self,
        n: int,
        population: int | None = None,
        *,
        bounded: bool = True,
        paired: bool = False,
        largest_weight: float = 1.0,
        deviation: float | None = None,
    ) -> None:
        self.n = n
        self.bounded = bounded
        """Whether rewards have bounds, so that means lie in [0, 1]."""
        self._largest_weight = largest_weight  # above 1 if the sums are weighted
        counted = bounded and largest_weight == 1.0
        self._finite = FiniteEvidence(n, population) if population is not None and counted else None
        self._history: list[BatchOfArms] | None = [] if paired else None
        self._noise = None if deviation is None else Noisy(np.zeros(n, np.int64), deviation)
        self._sums = np.zeros(n)
        self._squares: Reals | None = None  # if agents have sent some
        self._pulls = np.zeros(n)  # as floats, by which sums are divided
        self._latest: tuple[Ints, Reals, Reals] | None = None  # arms added last, whose means are usually needed next
        self._every_arm_pulled = self._some_pulls_unknown = False
        self._is_shared = False  # whether the arrays are also those of `Columns`, so that they must not change
        self._verdicts = np.zeros(n, np.int8)
        self._rounds = np.full(n, _UNKNOWN, np.int32)
        self._phases = np.zeros(n, np.int8)
        self._phase_numbers: dict[str | None, int] = {None: 0}
        self._accepted: int | None = 0  # None: to be counted
        self._guesses: frozenset[int] = frozenset()
        self._local_tops: dict[int, LocalAnswer] = {}

    def add(self, arms: Ints, sums: Reals, pulls: int, squares: Reals | None = None) -> None:
        """Add `pulls` more pulls of each of these arms: the sums of their rewards and, if known, of their squares."""
        sums, squares = _rounded(sums), None if squares is None else _rounded(squares)
        self._stop_sharing()
        if squares is not None and self._squares is None:
            self._squares = self._largest_squares(self._sums, self._pulls).copy()
        if self._squares is not None:
            self._squares[arms] += self._largest_squares(sums, pulls) if squares is None else squares
        where = self._where(arms)
        all_sums, all_pulls = self._sums[where], self._pulls[where]
        all_sums += sums
        all_pulls += pulls
        if where is arms:  # otherwise these are views
            self._sums[arms], self._pulls[arms] = all_sums, all_pulls
        elif pulls > 0:
            self._every_arm_pulled = True
        self._latest = arms, all_sums, all_pulls
        if self._finite is not None and pulls > 0:
            self._finite.add(arms, pulls, sums, self._largest_squares(sums, pulls) if squares is None else squares)
        if self._history is not None and pulls > 0:
            self._history.append(BatchOfArms(arms, sums, pulls))

    def _where(self, arms: Ints) -> Ints | slice:
        """Where these arms are: for all arms in order a slice, by which NumPy finds them faster."""
        return slice(None) if len(arms) == self.n and bool((arms[1:] > arms[:-1]).all()) else arms

    def _stop_sharing(self) -> None:
        """Leave the arrays to the `Columns` that share them, and continue with copies."""
        if self._is_shared:
            self._sums, self._pulls, self._latest = self._sums.copy(), self._pulls.copy(), None
            self._verdicts, self._rounds = self._verdicts.copy(), self._rounds.copy()
            self._phases = self._phases.copy()
            self._squares = None if self._squares is None else self._squares.copy()
            self._is_shared = False

    def _largest_squares(self, sums: Reals, pulls: Reals | int) -> Reals:
        """The largest that sums of squares can be: for rewards in [0, 1] the sums of rewards, otherwise unknown."""
        return sums if self.bounded else np.where(pulls == 0, 0.0, np.nan)

    def add_noise(self, arms: Ints, batches: int) -> None:
        """Note that the sums of these arms, added by now or later, have the noise of so many more batches."""
        assert self._noise is not None
        self._noise.batches[arms] += batches

    def means(self, arms: Ints) -> Reals:
        """The means of these arms, over all pulls known to the coordinator."""
        if self._latest is not None and self._latest[0] is arms:
            _, sums, pulls = self._latest
        else:
            sums, pulls = self._sums[arms], self._pulls[arms]
        if self._some_pulls_unknown or not self._every_arm_pulled:
            if np.count_nonzero(pulls) < len(pulls):
                raise ProtocolError(f"arm {arms[pulls == 0][0]} has no mean: it was never pulled")
            pulls = np.abs(pulls)  # with an unknown number of pulls (-1), the sum is the mean
        return sums / pulls

    def pulls(self, arms: Ints) -> Ints:
        """The pulls of each of these arms, as far as the coordinator knows them."""
        return np.maximum(self._pulls[arms], 0).astype(np.int64)

    def bounds(self, arms: Ints, error: float) -> tuple[Reals, Reals]:
        """Intervals of the means of these arms that miss one of them, at any time, with probability at most `error`."""
        if self._finite is not None:
            return drift_bounds(Evidence(*(column[arms] for column in self._finite.evidence)), error)
        pulls = self._pulls[arms]
        if self._largest_weight > 1.0:
            return weighted_bounds(pulls, self._sums[arms], self._largest_weight, error)
        squares = self._sums[arms] if self._squares is None else self._squares[arms]
        return mean_bounds(pulls, self._sums[arms], squares, error)

    def accept(self, arms: Ints, round: int, phase: str) -> None:
        """Accept these arms into the answer."""
        self._settle(arms, ACCEPTED, round, phase)

    def reject(self, arms: Ints, round: int, phase: str) -> None:
        """Reject these arms."""
        self._settle(arms, REJECTED, round, phase)

    def note_means(self, arms: Ints, means: Reals) -> None:
        """Note the means of arms that agents have also pulled for purposes of their own, unknown to the coordinator."""
        self._stop_sharing()
        self._sums[arms] = means
        self._pulls[arms] = _UNKNOWN
        self._latest, self._some_pulls_unknown = None, True

    def note_local_top(self, agent: int, arms: Ints, *, sure: bool) -> None:
        """Note an agent's own best arms, and whether it is sure of them."""
        self._local_tops[agent] = LocalAnswer(tuple(arms.tolist()), sure)

    def local_tops(self, *, mirrored: bool = False) -> dict[int, LocalAnswer]:
        """The best arms of each agent on its own, where known; `mirrored` reverses a search for the worst arms."""
        if not mirrored:
            return dict(self._local_tops)
        everything = range(self.n)
        return {
            agent: answer._replace(arms=tuple(arm for arm in everything if arm not in answer.arms))
            for agent, answer in self._local_tops.items()
        }

    def accept_unseen(self, arms: Ints, means: Reals, phase: str) -> None:
        """Accept arms that an agent accepted in an earlier round, with the means that it handed over."""
        self.note_means(arms, means)
        self._settle(arms, ACCEPTED, _UNKNOWN, phase)

    def leave_open(self, arms: Ints) -> None:
        """Mark the verdicts of these arms as guesses."""
        self._guesses = self._guesses.union(arms.tolist())

    def reject_rest(self, phase: str | None = None) -> None:
        """Reject all arms without a verdict: they were settled inside an agent, in an unknown round."""
        self._settle(np.flatnonzero(self._verdicts == OPEN), REJECTED, _UNKNOWN, phase)

    @property
    def accepted(self) -> int:
        """How many arms have been accepted."""
        if self._accepted is None:
            self._accepted = int(np.count_nonzero(self._verdicts == ACCEPTED))
        return self._accepted

    def columns(self, *, mirrored: bool = False) -> Columns:
        """What is known about each arm so far, not to be changed; `mirrored` reverses a search for the worst arms."""
        self._is_shared = True
        verdicts, pulls, divisors = self._verdicts, self._pulls.astype(np.int64), np.abs(self._pulls)
        divisors[pulls == 0] = np.nan
        means = self._sums / divisors
        squares = self._largest_squares(self._sums, self._pulls) if self._squares is None else self._squares
        finite = None if self._finite is None else self._finite.evidence
        if mirrored:
            verdicts = np.where(verdicts == OPEN, verdicts, (ACCEPTED + REJECTED) - verdicts)
            means = opposite(means, bounded=self.bounded)
            squares = squares_of_opposite(squares, self._sums, pulls, bounded=self.bounded)
            finite = None if finite is None else finite.mirrored
        noise = None if self._noise is None else Noisy(self._noise.batches.copy(), self._noise.deviation)
        return Columns(verdicts, self._rounds, means, pulls, squares, finite, noise)

    def verdict(self, *, mirrored: bool = False, unit: Unit = DEFAULT_UNIT) -> Estimates:
        """What is known about each arm at the end; `mirrored` reverses a search for the worst arms."""
        columns, history = self.columns(mirrored=mirrored), list(self._history or ())
        if mirrored:
            history = [
                BatchOfArms(arms, opposite(sums, pulls, bounded=self.bounded), pulls) for arms, sums, pulls in history
            ]
        return Estimates(columns, self._phases, tuple(self._phase_numbers), self._guesses, unit, history)

    def _settle(self, arms: Ints, verdict: int, round_: int, phase: str | None) -> None:
        if not len(arms):
            return
        self._stop_sharing()
        if verdict == ACCEPTED or (self._accepted and np.count_nonzero(self._verdicts[arms] == ACCEPTED)):
            self._accepted = None
        self._verdicts[arms] = verdict
        self._rounds[arms] = round_
        self._phases[arms] = self._phase_numbers.setdefault(phase, len(self._phase_numbers))
