"""The rows of a session: pulls that wait for a reward, and rewards that are checked before any is taken."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from collabtop.arms.base import Drawn
from collabtop.arms.calls import PullAttempt, reward_fault
from collabtop.arms.reward import Reward
from collabtop.arms.told import ToldArms
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
    """The pulls that wait for a reward, by agent and number."""

    def __init__(self, attempts: Sequence[PullAttempt] = ()) -> None:
        self.attempts = {(attempt.agent, attempt.number): attempt for attempt in attempts}

    def groups(self, *, single: bool) -> Iterator[PullAttempt]:
        """The pulls, one by one or with consecutive ones of a candidate together."""
        if single:
            yield from self.attempts.values()
            return
        group: list[PullAttempt] = []
        for attempt in self.attempts.values():
            if group and not _follows(attempt, group[-1]):
                yield group[0]._replace(times=len(group))
                group = []
            group.append(attempt)
        if group:
            yield group[0]._replace(times=len(group))

    def remove(self, batches: Sequence[Rewards]) -> bool:
        """Remove pulls that have rewards now; False if an agent has all of its own, so that it may need others."""
        for batch in batches:
            for number in range(batch.first, batch.first + batch.pulls):
                del self.attempts[batch.agent, number]
        return {batch.agent for batch in batches} <= {agent for agent, _ in self.attempts}


def _follows(attempt: PullAttempt, before: PullAttempt) -> bool:
    return (
        attempt.arm == before.arm
        and attempt.agent == before.agent
        and attempt.number == before.number + 1
        and attempt.replicate == before.replicate + 1
    )


class _Told(NamedTuple):
    """A reward, with the entry that it comes from."""

    attempt: PullAttempt
    value: Any
    entry: int


def checked_batches(
    pulls: Sequence[AskedPull],
    rewards: Sequence[Any],
    names: Sequence[str],
    waiting: OpenPulls,
    arms: ToldArms,
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
    told: dict[tuple[int, int], _Told] = {}
    for entry, (pull, value) in enumerate(zip(pulls, rewards, strict=True)):
        if not isinstance(pull, AskedPull):
            raise InputError(f"{names[entry]} is {pull!r:.80}, but a pull of ask() is needed", argument="pulls")
        is_single = pull.times == 1 and not isinstance(value, list | tuple)  # a list of one reward is fine, too
        values = [value] if is_single else _values(value, pull.times, names[entry])
        for number, reward in enumerate(values, pull.number):
            key = pull.agent, number
            attempt = waiting.attempts.get(key)
            if attempt is None or key in told or arms.label(attempt.arm) != pull.label:
                earlier = told.get(key)
                fault = _fault(pull, number, attempt, earlier and names[earlier.entry], arms, records)
                raise InputError(f"{names[entry]}: {fault}", argument="pulls")
            told[key] = _Told(attempt, reward, entry)
    return list(_batches([told[key] for key in sorted(told)], arms.unit, names))


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
    attempt: PullAttempt | None,
    earlier: str | None,
    arms: ToldArms,
    records: Sequence[Record],
) -> str:
    """Why a pull cannot be taken."""
    shown = f"pull {number} of agent {pull.agent}"
    if earlier is not None:
        return f"{shown} is in {earlier} already"
    if attempt is not None:
        return f"{shown} is of candidate {arms.label(attempt.arm)!r}, not of {pull.label!r}"
    for record in records:
        if isinstance(record, Rewards) and record.agent == pull.agent and 0 <= number - record.first < record.pulls:
            reward = arms.unit.shown(float(record.unpack()[1][number - record.first]))
            return f"{shown} has a reward already: {reward:g}"
    return f"{shown} was not asked for"


def _batches(told: Sequence[_Told], unit: Unit, names: Sequence[str]) -> Iterator[Rewards]:
    """A record per row of consecutive pulls of an agent; `told` is sorted."""
    drawn = _drawn(told, unit, names)
    attempts = [attempt for attempt, _, _ in told]
    numbers = np.array([attempt.number for attempt in attempts], np.int64)
    agents = np.array([attempt.agent for attempt in attempts], np.int64)
    arms = np.array([attempt.arm for attempt in attempts], np.int64)
    breaks = np.flatnonzero((np.diff(numbers) != 1) | (np.diff(agents) != 0)) + 1
    for span in np.split(np.arange(len(told)), breaks) if told else []:
        start, stop = int(span[0]), int(span[-1]) + 1
        part = Drawn(
            drawn.rewards[start:stop],
            None if drawn.costs is None else drawn.costs[start:stop],
            drawn.notes[start:stop],
        )
        yield Rewards.pack(int(agents[start]), int(numbers[start]), arms[start:stop], np.ones_like(span), part, "")


def _drawn(told: Sequence[_Told], unit: Unit, names: Sequence[str]) -> Drawn:
    """The rewards as internal values, with costs and notes."""
    values = [reward.value.value if isinstance(reward.value, Reward) else reward.value for reward in told]
    for value, reward in zip(values, told, strict=True):
        if fault := reward_fault(value, unit):
            raise InputError(f"{names[reward.entry]}: the reward is {fault}", argument="rewards")
    detailed = [reward.value if isinstance(reward.value, Reward) else Reward(None) for reward in told]
    costs = np.array([reward.cost for reward in detailed], np.float64)  # None becomes NaN
    notes = tuple(reward.note for reward in detailed)
    return Drawn(
        unit.internal(np.array(values, np.float64)),
        None if np.isnan(costs).all() else costs,
        () if notes.count(None) == len(notes) else notes,
    )
