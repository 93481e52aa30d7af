"""A team whose messages go through bytes, and are counted there a second time."""

from collections.abc import Sequence
from types import NoneType
from typing import Any, get_args

import msgspec

from collabtop.arms import Arms
from collabtop.protocol import wire
from collabtop.protocol.messages import Message, Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.recorder import RewardRecorder
from collabtop.teams.local import LocalTeam


class WireTeam(LocalTeam):
    """A team whose every message goes through bytes, and is counted there: a check on the ledger.

    Nothing that is not in a message can pass. `words` is counted on the decoded bytes, by a rule written
    down a second time, so that it agrees with the ledger only if both are right.

    >>> import collabtop as ct
    >>> team = WireTeam()
    >>> arms = ct.BernoulliArms([0.9, 0.5])
    >>> result = ct.identify(arms, m=1, agents=3, horizon=100, algorithm="uniform", team=team)
    >>> team.words == result.words
    True
    """

    def open(self, arms: Arms, setup: Setup, recorder: RewardRecorder) -> None:
        """Make the agents, from a set-up that went through bytes too."""
        super().open(arms, msgspec.msgpack.decode(msgspec.msgpack.encode(setup), type=Setup), recorder)
        self.words = 0
        self.crossed: list[tuple[int, str, Message]] = []
        """Every message that crossed: agent, "down" or "up", and the message."""

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Pass requests and replies on as bytes."""
        arrived = [
            Request(r.agent, r.number, tuple(self._cross(r.agent, "down", message) for message in r.messages))
            for r in requests
        ]
        return [
            Reply(r.agent, r.number, r.pulls, self._cross(r.agent, "up", r.answer)) for r in super().deliver(arrived)
        ]

    def _cross(self, agent: int, direction: str, message: Message) -> Message:
        data = wire.encode(message)
        self.words += words_on_wire(data)
        arrived = wire.decode(data)
        self.crossed.append((agent, direction, arrived))
        return arrived


def words_on_wire(data: bytes) -> int:
    """Count the paid numbers in an encoded message, knowing of its class only which fields may be missing.

    >>> from collabtop.protocol.messages import Border
    >>> words_on_wire(wire.encode(Border(upper=0.8, lower=0.7, top=3)))
    3
    """
    payload = msgspec.msgpack.decode(data, ext_hook=_array_of_zeros)
    choice = bool(payload.pop("chosen_from", ()))
    free = {"kind", "free", *payload.get("free", ())}
    numbers = sum(_numbers(value) for name, value in payload.items() if name not in free)
    return choice + numbers + _missing_or_not(type(wire.decode(data)), payload, free)


def _missing_or_not(kind: type[Message], payload: dict[str, Any], free: set[str]) -> int:
    """Words for what is not a number: that an optional one is missing, or whether an array of an extension is there."""
    words = 0
    for field in msgspec.structs.fields(kind):
        types = get_args(field.type)
        if NoneType in types and field.name not in free:
            is_number = not {int, float, bool}.isdisjoint(types)
            words += payload.get(field.name) is None if is_number else "." in payload["kind"]
    return words


def _array_of_zeros(code: int, buffer: memoryview) -> list[int]:
    size = int.from_bytes(buffer[:4], "little") if code == 3 else len(buffer) // {1: 4, 2: 8}[code]
    return [0] * size


def _numbers(value: Any) -> int:
    if isinstance(value, dict):  # packed numbers
        return int(value["count"])
    return 0 if value is None else len(value) if isinstance(value, list) else 1
