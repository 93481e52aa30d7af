"""The rewards seen so far, added up by candidate, and the events that report them."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from collabtop.arms.base import Drawn
from collabtop.arms.unit import DEFAULT_UNIT, Unit
from collabtop.events import Score, Scored
from collabtop.protocol.messages import Ints, Reals
from collabtop.runlog.format import Record, Rewards, Sums

_MOST_CELLS = 5_000_000
"""Candidates times agents up to which the rewards of each agent are added up separately."""


class Tally:
    """Pulls and rewards of each candidate, as they arrive.

    An arm's value is the average of its local means if agents see different distributions (`iid=False`), with `weights`
    a weighted one; its rewards are then added up agent by agent.

    >>> tally = Tally(n=2, agents=3)
    >>> tally.add_rewards(0, np.array([1, 1, 0]), np.array([1.0, 0.5, np.nan]), failure_mode="skip")
    >>> tally.pulls.tolist(), tally.failed.tolist(), tally.means.tolist()
    ([1, 2], [1, 0], [nan, 0.75])
    """

    def __init__(self, n: int, agents: int, *, iid: bool = True, weights: Sequence[float] | None = None) -> None:
        self.n = n
        self.pulls: Ints = np.zeros(n, np.int64)
        """Pulls of each candidate, including those that failed."""
        self.failed: Ints = np.zeros(n, np.int64)
        """Pulls of each candidate that failed for good."""
        self.agent_pulls: Ints = np.zeros(agents, np.int64)
        """Pulls of each agent."""
        rows = 1 if iid or (n * agents > _MOST_CELLS and weights is None) else agents
        self._weights: Reals = np.ones(rows) if weights is None else np.array(weights)
        self._counts: Ints = np.zeros((rows, n), np.int64)  # of rewards: without failed pulls that are skipped
        self._sums: Reals = np.zeros((rows, n))
        self.squares: Reals = np.zeros(n)
        """Sum of the squared rewards of each candidate; NaN if some were seen only as sums."""

    def add_record(self, record: Rewards | Sums) -> None:
        """Add what a record of a log holds."""
        if isinstance(record, Rewards):
            self.add_rewards(record.agent, *record.unpack(), record.failures)
        else:
            self.add_sums(record.agent, *record.unpack(), record.pulls, record.unpack_squares())

    def add_earlier(self, record: Record) -> None:
        """Add the rewards of an earlier leg of the run; they are not pulls of an agent in this one."""
        if isinstance(record, Rewards | Sums):
            before = self.agent_pulls.copy()
            self.add_record(record)
            self.agent_pulls = before

    def add_rewards(self, agent: int, arms: Ints, rewards: Reals, failure_mode: str = "") -> None:
        """Add single rewards; NaN is a pull that failed, whose reward is 0 unless the `failure_mode` is "skip"."""
        if failure_mode and (failed := np.isnan(rewards)).any():
            np.add.at(self.failed, arms[failed], 1)
            if failure_mode == "skip":
                np.add.at(self._counts[self._row(agent)], arms[failed], -1)
            rewards = np.where(failed, 0.0, rewards)
        self.add_sums(agent, arms, 1, rewards, len(arms), rewards**2)

    def add_pulls(self, agent: int, arm: int, rewards: Reals, failure_mode: str = "") -> None:
        """Add rewards of one candidate: faster than `add_rewards` where they come one by one."""
        total = float(rewards[0]) if len(rewards) == 1 else float(rewards.sum())
        if total != total:
            self.add_rewards(agent, np.full(len(rewards), arm), rewards, failure_mode)
            return
        row, count = self._row(agent), len(rewards)
        self.pulls[arm] += count
        self._counts[row, arm] += count
        self._sums[row, arm] += total
        self.squares[arm] += total * total if count == 1 else float(rewards @ rewards)
        self.agent_pulls[agent] += count

    def add_sums(
        self, agent: int, arms: Ints, times: Ints | int, sums: Reals, pulls: int, squares: Reals | None = None
    ) -> None:
        """Add `pulls` pulls in all: `times[j]` of `arms[j]`, with the sum `sums[j]` and, if known, that of squares."""
        row = self._row(agent)
        np.add.at(self.pulls, arms, times)
        np.add.at(self._counts[row], arms, times)
        np.add.at(self._sums[row], arms, sums)
        np.add.at(self.squares, arms, np.nan if squares is None else squares)
        self.agent_pulls[agent] += pulls

    def _row(self, agent: int) -> int:
        return agent if len(self._sums) > 1 else 0

    @property
    def means(self) -> Reals:
        """The mean reward of each candidate, averaged over the agents that have one; NaN if there is none."""
        if len(self._sums) == 1:
            return self.pooled_means
        with np.errstate(invalid="ignore"):
            local: Reals = self._sums / self._counts
            known = ~np.isnan(local)
            means: Reals = self._weights @ np.where(known, local, 0.0) / (self._weights @ known)
            return means

    @property
    def pooled_means(self) -> Reals:
        """The mean of all rewards of each candidate, whichever agent has them; NaN if there is none."""
        with np.errstate(invalid="ignore"):
            means: Reals = self._sums.sum(axis=0) / self._counts.sum(axis=0)
            return means

    @property
    def deviations(self) -> Reals:
        """The standard deviation of the rewards of each candidate, over all agents; NaN if it is unknown."""
        with np.errstate(invalid="ignore"):
            counts = self._counts.sum(axis=0)
            deviations: Reals = np.sqrt(np.maximum(self.squares / counts - self.pooled_means**2, 0.0))
            return deviations

    def mean_of(self, arm: int) -> float | None:
        """The mean reward of one candidate, or None if there is none."""
        counts = self._counts[:, arm]
        known = counts > 0
        local = self._sums[known, arm] / counts[known]
        return float(np.average(local, weights=self._weights[known])) if len(local) else None


class Scorer:
    """Makes the `Scored` events of a run: the candidates, their rewards, what is known of them by then, and the cost.

    `prices` is the price of a pull of each candidate, where the pull itself does not report its cost.

    >>> tally = Tally(n=2, agents=1)
    >>> tally.add_pulls(0, 1, np.array([0.5]))
    >>> Scorer(tally, ["a", "b"].__getitem__).scored(0, [(1, Drawn(np.array([0.5])))]).scores
    (Score(candidate='b', arm=1, pulls=1, reward=0.5, estimate=0.5, cost=None),)
    """

    def __init__(
        self,
        tally: Tally,
        label: Callable[[int], str],
        unit: Unit = DEFAULT_UNIT,
        prices: Sequence[float] | None = None,
    ) -> None:
        self._tally, self._label, self._unit, self._prices = tally, label, unit, prices

    def scored(self, agent: int, pairs: Iterable[tuple[int, Drawn]], *, recalled: bool = False) -> Scored:
        """The event for single rewards: arms and what was drawn of each, in which an arm may occur several times."""
        by_arm: dict[int, list[Drawn]] = {}
        for arm, drawn in pairs:
            by_arm.setdefault(arm, []).append(drawn)
        scores = []
        for arm, parts in by_arm.items():
            rewards = np.concatenate([drawn.rewards for drawn in parts])
            costs = [drawn.costs for drawn in parts if drawn.costs is not None]
            valid = rewards[~np.isnan(rewards)]
            reward = float(valid.sum()) / len(valid) if len(valid) else None
            cost = float(np.nansum(np.concatenate(costs))) if costs else None
            scores.append(self._score(arm, len(rewards), reward, self._tally.mean_of(arm), cost))
        return Scored(agent, tuple(scores), recalled)

    def scored_sums(self, agent: int, arms: Ints, times: Ints, sums: Reals, *, recalled: bool = False) -> Scored:
        """The event for a batch of pulls with one sum per arm."""
        rows = zip(arms.tolist(), times.tolist(), sums.tolist(), self._tally.means[arms].tolist(), strict=True)
        scores = (self._score(arm, pulls, total / pulls, mean, None) for arm, pulls, total, mean in rows if pulls)
        return Scored(agent, tuple(scores), recalled)

    def scored_record(self, record: Rewards | Sums) -> Scored:
        """The event for what an agent in a different process drew."""
        if isinstance(record, Sums):
            return self.scored_sums(record.agent, *record.unpack())
        (arms, rewards), costs = record.unpack(), record.unpack_costs()
        where = ((arm, arms == arm) for arm in np.unique(arms).tolist())
        pairs = ((arm, Drawn(rewards[of_arm], None if costs is None else costs[of_arm])) for arm, of_arm in where)
        return self.scored(record.agent, pairs)

    def _score(self, arm: int, pulls: int, reward: float | None, estimate: float | None, cost: float | None) -> Score:
        if cost is None and self._prices is not None:
            cost = self._prices[arm] * pulls
        reward, estimate = (None if value is None else self._unit.shown(value) for value in (reward, estimate))
        return Score(self._label(arm), arm, pulls, reward, estimate, cost)
