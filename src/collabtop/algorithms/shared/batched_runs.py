"""Many independent runs at once, as arrays with one row per run: what simulations of errors are made of."""

from collections.abc import Callable, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from collabtop.algorithms.shared.allocation import balanced_shares
from collabtop.algorithms.shared.binomial_tables import CACHED, BinomialDraws
from collabtop.problem import Problem
from collabtop.protocol.messages import Flags, Ints, Reals


class BatchedRuns:
    """The live arms of many runs with Bernoulli rewards, the sums of their rewards, and the answers so far.

    All runs have the same number of live arms. A run in which nothing is left to decide is removed from the rows of
    `live` and `sums`; `runs` has the number of the run of each row. Messages are not simulated: only the sums of the
    rewards matter for the answer.

    Args:
        problem: n, m and K.
        means: one mean per arm, or n x K for arms that differ between agents.
        runs: number of runs.
        rng: the source of all randomness.

    >>> problem = Problem(n=3, m=1, agents=2, horizon=8)
    >>> batch = BatchedRuns(problem, np.array([1.0, 0.0, 0.5]), runs=2, rng=np.random.default_rng(1))
    >>> batch.pull(4)
    >>> batch.eliminate(keep=0)
    >>> batch.answers
    array([[ True, False, False],
           [ True, False, False]])
    """

    def __init__(self, problem: Problem, means: Reals, runs: int, rng: np.random.Generator) -> None:
        self.means, self.rng = means, rng
        self._draws = [BinomialDraws(of_agent) for of_agent in means.reshape(problem.n, -1).T]
        self.runs: Ints = np.arange(runs)
        """The number of the run of each row."""
        self.live: Ints = np.broadcast_to(np.arange(problem.n), (runs, problem.n))
        """The live arms of each run."""
        self.sums: Reals = np.broadcast_to(0.0, (runs, problem.n))
        """The sums of the rewards of the live arms."""
        self.attached: Reals = np.zeros((0, runs, 0))
        """Other numbers that an algorithm keeps for each live arm: tables with the shape of `sums`."""
        self.perturbation = 0.25
        """The largest perturbation of a sum, which breaks ties; a quarter leaves gaps of whole numbers in order."""
        self.answers: Flags = np.zeros((runs, problem.n), np.bool_)
        """The arms that each run has accepted."""
        self._to_accept = np.full(runs, problem.m)
        self._problem, self._agents = problem, problem.agents
        if problem.weights is not None:  # sums are no whole numbers
            self.perturbation = 1e-9

    def pull(self, times: int | Ints, batches: int | None = None) -> None:
        """Pull every live arm so many times in total (or one number per row); all agents see the same means.

        Noise is added for so many batches per arm; if omitted, for those of `pull_balanced`.
        """
        if batches is None and self._problem.noise:
            self._add(self.successes(times), _balanced_batches(self.live.shape[1], times, self._agents))
        else:
            self._add(self.successes(times), batches or 0)

    def pull_by_all(self, times: int) -> None:
        """Let every agent pull every live arm so many times."""
        if self.means.ndim == 1:
            self._add(self.successes(times * self._agents), self._agents)
        elif self._problem.weights is None:
            self._add(BinomialDraws(self.means).successes(self.live, times, self.rng), self._agents)
        else:
            for agent in range(self._agents):
                self._add(self.successes(times, agent), 1, self._problem.weight(agent))

    def _add(self, sums: Reals, batches: int | Ints, weight: float = 1.0) -> None:
        """Add these to the sums, with the noise of so many batches."""
        if self._problem.noise:
            sums += self.rng.normal(scale=self._problem.noise * np.sqrt(batches), size=sums.shape)
        if weight != 1.0:
            sums *= weight
        sums += self.sums
        self.sums = sums

    def successes(self, times: int | Ints, agent: int = 0) -> Reals:
        """The successes in so many pulls of every live arm by this agent; its number matters only for non-IID arms."""
        return self._draws[agent if self.means.ndim == 2 else 0].successes(self.live, times, self.rng)

    def part(self, rows: Flags) -> "BatchedRuns":
        """Some of the rows, to continue differently from the others; the answers are those of all runs."""
        part = copy(self)
        part.runs, part._to_accept = self.runs[rows], self._to_accept[rows]
        part.live, part.sums, part.attached = self.live[rows], self.sums[rows], self.attached[:, rows]
        return part

    def agent_blocks(self) -> list[slice]:
        """The agents one by one, or all together where the arrays of all of them stay in the processor's cache."""
        if self._agents * self.sums.size <= 2 * CACHED:
            return [slice(0, self._agents)]
        return [slice(agent, agent + 1) for agent in range(self._agents)]

    def successes_of(self, agents: slice, times: int) -> Reals:
        """The successes in so many pulls of every live arm by each of these agents, a table per agent."""
        if agents.stop - agents.start == 1:
            return self.successes(times, agents.start)[np.newaxis]
        # Arms of different agents count as different arms, unless all agents see the same means.
        first = np.arange(agents.start, agents.stop) * (self._problem.n if self.means.ndim == 2 else 0)
        arms = self.live + first[:, np.newaxis, np.newaxis]
        drawn = BinomialDraws(self.means.T.ravel()).successes(arms.reshape(-1, arms.shape[2]), times, self.rng)
        return drawn.reshape(arms.shape)

    def eliminate(self, keep: int) -> None:
        """End a round as `elimination.eliminate` does: keep the arms nearest to the border, and settle the others."""
        self._keep([self._eliminate(rows, keep) for rows in self._blocks()])

    def _blocks(self) -> list[slice]:
        """The rows in blocks that stay in the processor's cache."""
        rows, width = self.sums.shape
        step = max(1, CACHED // max(1, width))
        return [slice(start, start + step) for start in range(0, rows, step)]

    def _eliminate(self, rows: slice, keep: int) -> "_Kept":
        """Settle arms of these rows; returns those that are kept."""
        values, to_accept = self._perturbed(rows), self._to_accept[rows]
        ranked, below = np.sort(values, axis=1), values.shape[1] - to_accept[:, np.newaxis]
        start = nearest_to_border(ranked, below, keep) if keep else below
        above, kept = _split(values, ranked, below, start, keep)
        if np.count_nonzero(above) > to_accept.sum() or np.count_nonzero(kept) > keep * len(kept):
            # Perturbations coincide: their order in memory decides.
            values = values.argsort(axis=1, kind="stable").argsort(axis=1).astype(np.float64)
            ranks = np.arange(values.shape[1], dtype=np.float64)
            above, kept = _split(values, np.broadcast_to(ranks, values.shape), below, start, keep)
        self._to_accept[rows] -= values.shape[1] - keep - start[:, 0]
        self._accept(rows, np.flatnonzero(above > kept))  # rank m_r or better, and not kept
        return self._kept(rows, np.flatnonzero(kept))

    def keep_best(self, keep: int) -> None:
        """End a round that only rejects arms: keep those with the largest sums."""
        self._keep([self._find_best(rows, keep) for rows in self._blocks()])

    def _find_best(self, rows: slice, keep: int) -> "_Kept":
        """The arms of these rows with the largest sums."""
        values = self._perturbed(rows)
        kept = np.zeros(values.shape, np.bool_)
        best = np.argpartition(-values, keep - 1, axis=1)[:, :keep]
        np.put_along_axis(kept, best, True, axis=1)
        return self._kept(rows, np.flatnonzero(kept))

    def _perturbed(self, rows: slice) -> Reals:
        """The sums of these rows without ties, for all rankings of a round."""
        sums = self.sums[rows]
        values = self.rng.random(sums.shape)
        values *= self.perturbation
        values += sums
        return values

    def _accept(self, rows: slice, places: Ints) -> None:
        """Accept the live arms at these places in the rows, laid end to end."""
        if len(places):
            live = self.live[rows]
            self.answers[self.runs[rows][places // live.shape[1]], live.ravel()[places]] = True

    def _kept(self, rows: slice, places: Ints) -> "_Kept":
        """What there is for the live arms at these places in the rows, laid end to end."""
        sums, tables = self.sums[rows], len(self.attached)
        shape = len(sums), len(places) // len(sums)
        attached = self.attached[:, rows]
        if tables:
            attached = attached.reshape(tables, -1).take(places, axis=1).reshape(tables, *shape)
        live = self.live[rows].ravel().take(places)
        return _Kept(live.reshape(shape), sums.ravel().take(places).reshape(shape), attached)

    def _keep(self, kept: Sequence["_Kept"]) -> None:
        """Keep only these arms live. Settle the runs that need all of them, or none, and remove their rows."""
        if not kept:
            return
        self.live = np.concatenate([part.live for part in kept])
        self.sums = np.concatenate([part.sums for part in kept])
        self.attached = np.concatenate([part.attached for part in kept], axis=1)
        all_needed = self._to_accept == self.live.shape[1]
        finished = all_needed | (self._to_accept == 0)
        if finished.any():
            self._accept(slice(None), np.flatnonzero(np.repeat(all_needed, self.live.shape[1])))
            left = ~finished
            self.runs, self._to_accept = self.runs[left], self._to_accept[left]
            self.live, self.sums, self.attached = self.live[left], self.sums[left], self.attached[:, left]


class _Kept(NamedTuple):
    """The arms that some rows keep, with their sums and what is attached to them."""

    live: Ints
    sums: Reals
    attached: Reals


def _split(values: Reals, ranked: Reals, below: Ints, start: Ints, keep: int) -> tuple[Flags, Flags]:
    """In each row, the values above the border, and the `keep` ones from place `start` on in ascending order."""
    at = _by_place(ranked)
    above = values >= at(below)
    if not keep:
        return above, np.zeros(values.shape, np.bool_)
    kept = values >= at(start)
    kept &= values <= at(start + (keep - 1))
    return above, kept


def _by_place(rows: Reals) -> Callable[[Ints], Reals]:
    """A function that takes one value of each row, as `np.take_along_axis` does in several times the time."""
    flat, first = rows.ravel(), rows.shape[1] * np.arange(len(rows))[:, np.newaxis]
    return lambda places: flat.take(places + first)


def nearest_to_border(ranked: Reals, below: Ints, keep: int) -> Ints:
    """Where in each row of ascending values the `keep` values with the smallest gaps begin, which are all in one piece.

    The gap of a value is its distance from the nearest value on the other side of the border, which has `below` values
    below it. Where both values next to the border have the same gap and only one may stay, either is right.

    >>> nearest_to_border(np.array([[0.1, 0.5, 0.6, 0.9]]), below=np.array([[2]]), keep=2)
    array([[1]])
    """
    if not len(ranked):
        return below
    at = _by_place(ranked)
    first, last = np.maximum(0, below - keep), np.minimum(below, ranked.shape[1] - keep)
    low, high = int(first.min()), int(last.max())
    # A beginning is too early where its value is farther away than the one after the last. Where it is not, no later
    # one is.
    too_early = at(below) - ranked[:, low:high] > ranked[:, low + keep : high + keep] - at(below - 1)
    start: Ints = low + np.count_nonzero(too_early, axis=1)[:, np.newaxis]
    return np.asarray(np.minimum(np.maximum(start, first), last))


def deal_hands(arms: Ints, agents: int, rng: np.random.Generator) -> Ints:
    """Deal the arms of each run, a row each, to the agents at random: one row per run and agent.

    The last hands of a run may have one arm fewer; n, an arm that does not exist, takes its place.

    >>> deal_hands(np.array([[0, 1, 2]]), agents=2, rng=np.random.default_rng(1)).shape
    (2, 2)
    """
    runs, n = arms.shape
    dealt = np.pad(rng.permuted(arms, axis=1), ((0, 0), (0, -n % agents)), constant_values=n)
    return dealt.reshape(runs, -1, agents).transpose(0, 2, 1).reshape(runs * agents, -1)


def _balanced_batches(arms: int, times: int | Ints, agents: int) -> Ints:
    """By how many agents each arm is pulled if pulls are divided with `balanced_shares`.

    >>> _balanced_batches(arms=3, times=5, agents=2)
    array([1, 2, 1])
    """
    batches = np.zeros(arms, np.int64)
    for first, shares in balanced_shares(arms, int(np.max(times)), agents):
        batches[first : first + len(shares)] += 1
    return batches


def prune_hands(
    hands: Ints, means: Reals, sizes: Sequence[int], pulls: Sequence[int], rng: np.random.Generator, noise: float = 0.0
) -> tuple[Ints, Reals]:
    """Prune many hands at once, as `protocol.pruning.prune` does one: the arms left, and their successes.

    A hand is a row. A size of 0 keeps all. Each stage adds noise of this standard deviation to each sum.

    >>> prune_hands(np.array([[0, 1], [2, 1]]), np.array([1.0, 0.5, 0.0]), [1], [60], np.random.default_rng(1))[0]
    array([[0],
           [1]])
    """
    n, draws = len(means), BinomialDraws(np.append(means, 0.0))
    sums: Reals = np.zeros(hands.shape)
    before = 0
    for size, total in zip(sizes, pulls, strict=True):
        new = draws.successes(hands, total - before, rng)
        sums = np.add(sums, new, out=new)
        if noise and total > before:
            sums = np.where(hands < n, sums + rng.normal(scale=noise, size=sums.shape), -1e300)
        before, width = total, hands.shape[1]
        if 0 < size < width:
            step = max(1, CACHED // width)
            blocks = [slice(start, start + step) for start in range(0, len(hands), step)]
            kept = [_best_of_hands(hands[rows], sums[rows], n, size) for rows in blocks]
            hands, sums = (np.concatenate(parts).reshape(-1, size) for parts in zip(*kept, strict=True))
    return hands, sums


def _best_of_hands(hands: Ints, sums: Reals, n: int, size: int) -> tuple[Ints, Reals]:
    """The arms with the largest sums of each hand, laid end to end, and these sums; arm n comes last."""
    width = hands.shape[1]
    keys = sums + (hands < n)
    keys *= width
    keys -= np.arange(width)  # no two are equal
    best = np.flatnonzero(keys >= np.partition(keys, width - size, axis=1)[:, width - size, np.newaxis])
    return hands.ravel().take(best), sums.ravel().take(best)
