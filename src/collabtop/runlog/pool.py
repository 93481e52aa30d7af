"""Rewards of earlier legs of a run, for a longer one to use before it makes new pulls.

The rewards of an arm form one sequence, in the order in which they were drawn, and a longer run reads it from the
beginning: pull number t of the arm has reward number t, and new pulls continue where the sequence ends. How far an
earlier leg read it depends on its rewards, but what follows does not. So the longer run has the same distribution as
one that was planned from the start.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from collabtop.arms.draws import Draws
from collabtop.protocol.messages import Ints, Reals
from collabtop.runlog.format import Exchange, Record, Rewards, Sums


class RewardPool:
    """The rewards that earlier legs drew: of each arm if all agents share them, else of each arm and agent.

    >>> records = [Sums.pack(0, 0, np.array([1]), np.array([4]), np.array([2.0]), np.random.default_rng(0))]
    >>> pool = RewardPool([records], n=2, agents=1, shared=True)
    >>> pool.take_sums(0, np.array([0, 1]), np.array([3, 6]), np.array([0, 0]))
    (array([0., 2.]), array([0, 4]))
    >>> pool.pulls, pool.unused.tolist()
    (4, [0, 0])
    """

    def __init__(self, legs: Sequence[Sequence[Record]], *, n: int, agents: int, shared: bool) -> None:
        self._n, self._shared = n, shared
        keys, counts, sums = _entries(legs, n, shared=shared)
        order = np.argsort(keys, kind="stable")
        keys, counts, sums = keys[order], counts[order], sums[order]
        self._rewards = sums
        """Single rewards, or the sums of batches, key by key and in order."""
        size = n if shared else n * agents
        self._held: Ints = np.bincount(keys, counts, minlength=size).astype(np.int64)
        self._begin: Ints = np.concatenate([[0], np.cumsum(self._held)])[:-1]
        # Within a batch of which only the sum is known, every pull counts as its mean.
        self._counts_before: Reals = np.concatenate([[0.0], np.cumsum(counts)])
        self._sums_before: Reals = np.concatenate([[0.0], np.cumsum(np.nan_to_num(sums))])
        self._used: Ints = np.zeros(size, np.int64)
        self._next: dict[int, Ints] = {}
        self._made = _pulls_by_agent(legs)

    @property
    def pulls(self) -> int:
        """The number of pulls in it."""
        return int(self._held.sum())

    @property
    def held(self) -> Ints:
        """Pulls of each arm in it."""
        held: Ints = self._held.reshape(-1, self._n).sum(axis=0)
        return held

    @property
    def unused(self) -> Ints:
        """Pulls of each arm in it that no agent has used so far."""
        left: Ints = (self._held - self._used).reshape(-1, self._n).sum(axis=0)
        return left

    def begin(self, draws: Draws) -> None:
        """Let the draws of an agent continue after its earlier pulls, for arms that replay rewards in order."""
        if draws.agent in self._made:
            made = self._made.pop(draws.agent)
            draws.count_pulls(np.array(list(made)), np.array(list(made.values())))

    def take(self, agent: int, arm: int, number: int, limit: int) -> Reals:
        """Up to `limit` rewards of an arm from this number on; none if there are none left."""
        key = arm if self._shared else agent * self._n + arm
        count = max(0, min(limit, int(self._held[key]) - number))
        if count:
            self._used[key] = max(int(self._used[key]), number + count)
        start = int(self._begin[key]) + number
        return self._rewards[start : start + count]

    def take_sums(self, agent: int, arms: Ints, times: Ints, starts: Ints | None) -> tuple[Reals, Ints]:
        """The sums of up to `times` rewards of each arm from the numbers `starts` on, and how many rewards these are.

        Without `starts`, an agent continues where it left off.
        """
        keys = arms if self._shared else agent * self._n + arms
        if starts is None:
            position = self._next.setdefault(agent, np.zeros(self._n, np.int64))
            starts = position[arms]
            position[arms] += times
        taken: Ints = np.clip(self._held[keys] - starts, 0, times)
        first = (self._begin[keys] + np.minimum(starts, self._held[keys])).astype(np.float64)
        before, after = (np.interp(ends, self._counts_before, self._sums_before) for ends in (first, first + taken))
        self._used[keys] = np.maximum(self._used[keys], np.where(taken > 0, starts + taken, 0))
        sums: Reals = np.where(taken > 0, after - before, 0.0)
        return sums, taken


def _pulls_by_agent(legs: Sequence[Sequence[Record]]) -> dict[int, Counter[int]]:
    """Pulls of each arm by each agent, in batches."""
    pulls: dict[int, Counter[int]] = {}
    for record in (record for records in legs for record in records if isinstance(record, Sums)):
        arms, times, _ = record.unpack()
        pulls.setdefault(record.agent, Counter()).update(dict(zip(arms.tolist(), times.tolist(), strict=True)))
    return pulls


def _entries(legs: Sequence[Sequence[Record]], n: int, *, shared: bool) -> tuple[Ints, Ints, Reals]:
    """Keys, pulls and sums of all rewards, in the order in which they were drawn."""
    keys: list[Ints] = []
    counts: list[Ints] = []
    sums: list[Reals] = []
    for records in legs:
        for record in _in_order(records):
            if isinstance(record, Rewards):
                arms, rewards = record.unpack()
                times: Ints = np.ones(len(arms), np.int64)
            else:
                arms, times, rewards = record.unpack()
            keys.append(arms if shared else record.agent * n + arms)
            counts.append(times)
            sums.append(rewards)
    if not keys:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    return np.concatenate(keys), np.concatenate(counts), np.concatenate(sums)


def _in_order(records: Sequence[Record]) -> list[Rewards | Sums]:
    """The rewards of a leg: exchange by exchange, and in each agent by agent.

    The records of a log are in the order in which pulls ended, which depends on the speed of the agents.
    """
    ends: dict[int, list[int]] = {}  # pulls of an agent up to the end of each of its exchanges
    numbers: dict[int, list[int]] = {}
    for record in records:
        if isinstance(record, Exchange):
            for agent, pulls, _ in record.replies:
                before = ends.setdefault(agent, [])
                before.append(pulls + (before[-1] if before else 0))
                numbers.setdefault(agent, []).append(record.number)
    last = max((record.number for record in records if isinstance(record, Exchange)), default=0) + 1

    def position(record: Rewards | Sums) -> tuple[int, int, int]:
        index = int(np.searchsorted(ends.get(record.agent, []), record.first, "right"))
        of_agent = numbers.get(record.agent, [])
        return of_agent[index] if index < len(of_agent) else last, record.agent, record.first

    return sorted((record for record in records if isinstance(record, Rewards | Sums)), key=position)
