"""Agent extensions: messages of one's own are typed, metered, and refused where they are not known."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any, ClassVar, Optional, TypeVar

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from typing_extensions import TypeAliasType

import collabtop as ct
from collabtop.errors import ProtocolError
from collabtop.extending import Agent, AgentExtension, Message, Request, Setup, register_extension
from collabtop.protocol import wire
from collabtop.protocol.extension import module_of
from collabtop.protocol.ledger import cost
from collabtop.testing import IsolatedTeam, WireTeam, check_algorithm, words_on_wire
from tests.support.pickling_team import PicklingTeam
from tests.support.voting import CallVote, Majority, Vote

ARMS = ct.BernoulliArms([0.2, 0.9, 0.5, 0.8, 0.1])
RUN: dict[str, Any] = {"m": 2, "agents": 3, "horizon": 500, "seed": 1}


@pytest.mark.slow
def test_an_algorithm_with_messages_of_its_own_passes_check_algorithm():
    check_algorithm(Majority())


def test_its_messages_are_counted_like_any_other():
    result = ct.identify(ARMS, algorithm=Majority(), **RUN)
    assert sorted(result.top) == [1, 3]
    assert result.ledger.words_by("kind") == {"voting.CallVote": 0, "voting.Vote": 2 * 2 * 3}
    assert result.ledger.bits_by("kind")["voting.Vote"] == 3 * (2 * 32 + 2 * 64)


@pytest.mark.parametrize(
    "team", [WireTeam, ct.ThreadsTeam, IsolatedTeam, pytest.param(PicklingTeam, marks=pytest.mark.slow)]
)
def test_it_runs_the_same_on_every_team(team):
    result = ct.identify(ARMS, algorithm=Majority(), team=team(), **RUN)
    local = ct.identify(ARMS, algorithm=Majority(), **RUN)
    assert result == local
    assert result.ledger == local.ledger


def test_a_run_with_a_checkpoint_is_resumed(tmp_path):
    path = tmp_path / "run.ctlog"
    first = ct.identify(ARMS, algorithm=Majority(), checkpoint=path, **RUN)
    assert ct.identify(ARMS, algorithm=Majority(), checkpoint=path, **RUN) == first


def test_types_are_checked_when_a_message_arrives():
    data = msgspec.msgpack.encode({"kind": "voting.CallVote", "times": "many"})
    with pytest.raises(ProtocolError, match="not a message"):
        wire.decode(data)
    assert wire.decode(wire.encode(CallVote(3))) == CallVote(3)


def test_an_agent_keeps_the_state_of_its_extension_between_requests():
    agent = Agent(0, ARMS, Setup(ct.Problem(5, 1, 1, 20), seed=1))
    first = agent.answer(Request(0, 1, (Count(),)))
    second = agent.answer(Request(0, 2, (Count(), Count())))
    assert (first.answer, second.answer) == (Counted(1), Counted(3))


def test_an_agent_counts_the_pulls_of_an_extension_and_enforces_the_horizon():
    agent = Agent(0, ARMS, Setup(ct.Problem(5, 1, 1, 20), seed=1))
    assert agent.answer(Request(0, 1, (CallVote(3),))).pulls == 15
    with pytest.raises(ProtocolError, match="past the horizon"):
        agent.answer(Request(0, 2, (CallVote(2),)))


class Count(Message, frozen=True, tag="counting.Count"):
    pass


class Counted(Message, frozen=True, tag="counting.Counted"):
    times: int


@register_extension
class Counting(AgentExtension):
    name = "counting"
    messages: ClassVar[Mapping[type[Message], type[Message] | None]] = {Count: Counted}
    times = 0

    def handle(self, message):
        self.times += 1
        return Counted(self.times)


class Unknown(Message, frozen=True, tag="nowhere.Unknown"):
    pass


def test_a_message_that_is_not_registered_is_refused_by_the_agent_and_on_the_wire():
    agent = Agent(0, ARMS, Setup(ct.Problem(5, 1, 1, 20), seed=1))
    with pytest.raises(ProtocolError, match=r"does not understand nowhere\.Unknown: register the extension"):
        agent.answer(Request(0, 1, (Unknown(),)))
    with pytest.raises(ProtocolError, match="not a message"):
        wire.decode(wire.encode(Unknown()))


def test_an_extension_has_to_give_the_answer_that_it_declares():
    class Silent(Counting):
        def handle(self, message):
            return None

    agent = Agent(0, ARMS, Setup(ct.Problem(5, 1, 1, 20), seed=1))
    agent._extensions[Counting] = Silent(agent)
    with pytest.raises(ProtocolError, match="handles Count with None, not with Counted"):
        agent.answer(Request(0, 1, (Count(),)))


@pytest.mark.parametrize(
    ("name", "messages", "error"),
    [
        ("Voting!", {}, "name is 'Voting!', but up to 40 lower-case letters"),
        ("voting", {}, "name is 'voting', but Voting has that name already"),
        ("other", {CallVote: Vote}, r"is 'voting\.\w+', but 'other\.' and a word are needed"),
    ],
)
def test_a_wrong_name_or_tag_is_refused(name, messages, error):
    class Extension(AgentExtension):
        def handle(self, message):
            return None

    Extension.name, Extension.messages = name, messages
    with pytest.raises(ct.InputError, match=error):
        register_extension(Extension)


def test_an_extension_of_the_main_script_cannot_be_imported_by_other_processes():
    script = (
        "from tests.support.voting import Voting\n"
        "from collabtop.protocol.extension import module_of\n"
        "Voting.__module__ = '__main__'\n"
        "module_of('voting')\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "is defined in the main script, but agents in other processes import it: move Voting to a module" in (
        ended.stderr
    )
    assert module_of("voting") == "tests.support.voting"
    with pytest.raises(ct.InputError, match="'nowhere' is not registered"):
        module_of("nowhere")


def test_the_mean_of_an_extension_is_mirrored_for_large_m():
    result = ct.identify(ARMS, 4, agents=2, horizon=500, algorithm=Majority(), seed=1)
    assert sorted(result.top) == [0, 1, 2, 3]
    assert np.isfinite(result.words)


# As NumPy defines NDArray from 2.5 on; `type ... = ...` would need Python 3.12.
Element = TypeVar("Element", bound=np.generic)
parameters: Any = (Element,)
Array: Any = TypeAliasType("Array", np.ndarray[tuple[Any, ...], np.dtype[Element]], type_params=parameters)
Shares: Any = TypeAliasType("Shares", Array[np.float64])


class Mixed(Message, frozen=True, tag="aliases.Mixed"):
    numbers: NDArray[np.int64]
    flags: Array[np.bool_]
    counts: Array[np.int64] | None = None
    shares: Shares | None = None
    more: Optional[Array[np.float64]] = None  # noqa: UP045  (the old form of the same)


class Inherited(Mixed, frozen=True, tag="aliases.Inherited"):
    times: int = 0


@register_extension
class Aliases(AgentExtension):
    name = "aliases"
    messages: ClassVar[Mapping[type[Message], type[Message] | None]] = {Inherited: Mixed}

    def handle(self, message):
        return Mixed(message.numbers, message.flags)


def test_arrays_may_be_declared_by_an_alias():
    numbers, flags, shares = np.array([1, 2]), np.array([True, False, True]), np.array([0.5])
    for message in (
        Mixed(numbers, flags, shares=shares),
        Inherited(numbers, flags, numbers, shares, shares, times=3),
    ):
        decoded = wire.decode(wire.encode(message))
        assert repr(decoded) == repr(message)
        assert cost(decoded) == cost(message)
        assert cost(message)[0] == words_on_wire(wire.encode(message))
    assert cost(Mixed(numbers, flags, shares=shares)) == (2 + 3 + 1 + 3, 64 + 3 + 64 + 3)
    together = [Mixed(numbers, flags), Mixed(numbers[:1], flags)]
    assert repr(wire.decode_all(wire.encode_all(together))) == repr(together)
    wrong = msgspec.msgpack.encode({"kind": "aliases.Mixed", "numbers": "many", "flags": []})
    with pytest.raises(ProtocolError, match="not a message"):
        wire.decode(wrong)


def test_an_extension_whose_messages_cannot_be_counted_is_refused():
    class Whisper(Message, frozen=True, tag="whisper.Whisper"):
        text: str | None

    class Whispers(AgentExtension):
        name: ClassVar[str] = "whisper"
        messages: ClassVar[Mapping[type[Message], type[Message] | None]] = {Whisper: None}

        def handle(self, message):
            return None

    with pytest.raises(ct.InputError, match=r"text of whisper.Whisper is str \| None, but a field is an int") as caught:
        register_extension(Whispers)
    assert caught.value.argument == "messages"
