"""The rows of a session: pulls that wait for a reward, and rewards that are checked before any is taken."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from collabtop.arms.base import Drawn, Ints
from collabtop.arms.calls import PullAttempt, first_reward_fault
from collabtop.arms.reported import ReportedArms
from collabtop.arms.reward import Reward
from collabtop.arms.unit import Unit
from collabtop.errors import InputError
from collabtop.runlog.format import Record, Rewards
from collabtop.validation import wrong_value


class AskedPull(msgspec.Struct, frozen=True):
    """Pulls of one candidate by one agent that a session asks for.

    >>> pull = AskedPull(agent=0, number=4, candidate="tea", label="tea", replicate=0, example=None, times=2)
    >>> [single.number for single in pull.split()]
    [4, 5]
    """

    agent: int
    """The agent that makes them, from 0 on."""
    number: int
    """The number of the first of them, counted per agent from 0 on: agent and number identify a pull."""
    candidate: Any
    label: str
    """The name of the candidate in results."""
    replicate: int
    """The number of the first of them, counted per candidate: over all agents if pulls are paired, else per agent."""
    example: int | None
    """The index of the example, if there are examples."""
    times: int
    """How many pulls they are; 1 if there are examples."""

    def split(self) -> list["AskedPull"]:
        """The same pulls one by one, to report some of them earlier than others."""
        return [
            msgspec.structs.replace(self, number=self.number + done, replicate=self.replicate + done, times=1)
            for done in range(self.times)
        ]


class OpenPulls:
    """The pulls that wait for a reward, by agent and number.

    Args:
        attempts: those of a candidate in a row together.
    """

    def __init__(self, attempts: Sequence[PullAttempt] = ()) -> None:
        rows = [msgspec.structs.astuple(attempt) for attempt in attempts]
        columns = np.array(rows, np.int64).reshape(-1, len(PullAttempt.__struct_fields__)).T
        arms, times, _, agents, numbers, replicates, _ = columns
        done = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)  # of the attempt, before each pull
        self.agents, self.arms = np.repeat(agents, times), np.repeat(arms, times)
        self.numbers, self._replicates = np.repeat(numbers, times) + done, np.repeat(replicates, times) + done
        self._seed = attempts[0].seed if attempts else 0
        keys = zip(self.agents.tolist(), self.numbers.tolist(), strict=True)
        self.positions = {key: position for position, key in enumerate(keys)}
        """Where each pull is in `agents`, `arms` and `numbers`; those that are not open any more are left out."""

    def groups(self, *, single: bool) -> Iterator[PullAttempt]:
        """The pulls, one by one or with consecutive ones of a candidate together."""
        is_open = np.fromiter(self.positions.values(), np.int64, len(self.positions))
        arms, agents, numbers, replicates = (
            column[is_open] for column in (self.arms, self.agents, self.numbers, self._replicates)
        )
        breaks = np.ones(len(is_open), np.bool_)
        if not single:
            same = (np.diff(arms) == 0) & (np.diff(agents) == 0)
            breaks[1:] = ~(same & (np.diff(numbers) == 1) & (np.diff(replicates) == 1))
        first = np.flatnonzero(breaks)
        times = np.diff(first, append=len(is_open))
        columns = (column.tolist() for column in (arms[first], times, agents[first], numbers[first], replicates[first]))
        for arm, count, agent, number, replicate in zip(*columns, strict=True):
            yield PullAttempt(arm, count, self._seed, agent, number, replicate)

    def remove(self, batches: Sequence[Rewards]) -> bool:
        """Remove pulls that have rewards now; False if an agent has all of its own, so that it may need others."""
        for batch in batches:
            for number in range(batch.first, batch.first + batch.pulls):
                del self.positions[batch.agent, number]
        return {batch.agent for batch in batches} <= {agent for agent, _ in self.positions}


def checked_batches(
    pulls: Sequence[AskedPull],
    rewards: Sequence[Any],
    names: Sequence[str],
    waiting: OpenPulls,
    arms: ReportedArms,
    records: Sequence[Record],
) -> list[Rewards]:
    """Records of the rewards of these pulls; `names` is what errors call each entry, `records` is the log so far."""
    pulls, rewards = _as_list("pulls", pulls), _as_list("rewards", rewards)
    if len(pulls) != len(rewards):
        raise InputError(
            f"rewards has {len(rewards)} entries, but there are {len(pulls)} pulls: pass one per pull, a list of "
            "rewards for a pull with times above 1",
            argument="rewards",
        )
    names = names or [f"pulls[{entry}]" for entry in range(len(pulls))]
    positions, labels = waiting.positions, arms.labels or ()  # candidates always have labels
    arm_at: list[int] = waiting.arms.tolist()
    entry_at: dict[int, int] = {}  # the entry of each pull, by its position among those that wait
    values: list[Any] = []
    for entry, (pull, value) in enumerate(zip(pulls, rewards, strict=True)):
        if not isinstance(pull, AskedPull):
            raise InputError(f"{names[entry]} is {pull!r:.80}, but a pull of ask() is needed", argument="pulls")
        is_single = pull.times == 1 and not isinstance(value, list | tuple)  # a list of one reward is fine, too
        values += [value] if is_single else _values(value, pull.times, names[entry])
        agent, label = pull.agent, pull.label
        for number in range(pull.number, pull.number + pull.times):
            at = positions.get((agent, number), -1)
            if at < 0 or at in entry_at or labels[arm_at[at]] != label:
                earlier = names[entry_at[at]] if at in entry_at else None
                fault = _fault(pull, number, None if at < 0 else labels[arm_at[at]], earlier, arms, records)
                raise InputError(f"{names[entry]}: {fault}", argument="pulls")
            entry_at[at] = entry
    places = np.fromiter(entry_at, np.int64, len(entry_at))
    order = np.lexsort((waiting.numbers[places], waiting.agents[places]))
    entries, names_of = list(entry_at.values()), names
    drawn = _drawn([values[at] for at in order.tolist()], arms.unit, lambda at: names_of[entries[order[at]]])
    return list(_batches(waiting, places[order], drawn))


def _as_list(name: str, entries: Any) -> list[Any]:
    try:
        return list(entries)
    except TypeError:
        raise wrong_value(name, entries, "a list is needed") from None


def _values(value: Any, times: int, name: str) -> list[Any]:
    """The rewards of a pull that is made several times."""
    values = list(value) if hasattr(value, "__len__") and not isinstance(value, str | bytes) else None
    if values is None or len(values) != times:
        given = f"{value!r:.80} is not a list" if values is None else f"there are {len(values)}"
        raise InputError(f"{name}: {times} rewards are needed, but {given}", argument="rewards")
    return values


def _fault(
    pull: AskedPull,
    number: int,
    label: str | None,
    earlier: str | None,
    arms: ReportedArms,
    records: Sequence[Record],
) -> str:
    """Why a pull cannot be taken; `label` is its candidate if it waits for a reward."""
    shown = f"pull {number} of agent {pull.agent}"
    if earlier is not None:
        return f"{shown} is in {earlier} already"
    if label is not None:
        return f"{shown} is of candidate {label!r}, not of {pull.label!r}"
    for record in records:
        if isinstance(record, Rewards) and record.agent == pull.agent and 0 <= number - record.first < record.pulls:
            reward = arms.unit.shown(float(record.unpack()[1][number - record.first]))
            return f"{shown} has a reward already: {reward:g}"
    return f"{shown} was not asked for"


def _batches(waiting: OpenPulls, places: Ints, drawn: Drawn) -> Iterator[Rewards]:
    """A record per row of consecutive pulls of an agent; `places` are sorted by agent and number."""
    agents, numbers, arms = waiting.agents[places], waiting.numbers[places], waiting.arms[places]
    breaks = np.flatnonzero((np.diff(numbers) != 1) | (np.diff(agents) != 0)) + 1
    ends = [0, *breaks.tolist(), len(places)] if len(places) else []
    for start, stop in pairwise(ends):
        part = Drawn(
            drawn.rewards[start:stop],
            None if drawn.costs is None else drawn.costs[start:stop],
            drawn.notes[start:stop],
        )
        ones = np.ones(stop - start, np.int64)
        yield Rewards.pack(int(agents[start]), int(numbers[start]), arms[start:stop], ones, part, "")


def _drawn(rewards: Sequence[Any], unit: Unit, name: Callable[[int], str]) -> Drawn:
    """The rewards as internal values, with costs and notes; `name` is what errors call the entry of a reward."""
    detailed = any(issubclass(kind, Reward) for kind in set(map(type, rewards)))
    values = [reward.value if isinstance(reward, Reward) else reward for reward in rewards] if detailed else rewards
    if (fault := first_reward_fault(values, unit)) is not None:
        raise InputError(f"{name(fault[0])}: the reward is {fault[1]}", argument="rewards")
    internal = unit.internal(np.array(values, np.float64))
    if not detailed:
        return Drawn(internal)
    details = [reward if isinstance(reward, Reward) else Reward(None) for reward in rewards]
    costs = np.array([reward.cost for reward in details], np.float64)  # None becomes NaN
    notes = tuple(reward.note for reward in details)
    return Drawn(internal, None if np.isnan(costs).all() else costs, () if notes.count(None) == len(notes) else notes)
