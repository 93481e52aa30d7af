"""The ledger counts messages by kind, direction and round, and keeps transport statistics separate."""

from __future__ import annotations

import numpy as np
import pytest

import collabtop as ct
from collabtop.errors import ProtocolError
from collabtop.protocol.ledger import Entry, Ledger, Meter, TransportStats, cost
from collabtop.protocol.messages import Cut, Deal, Held, Ints, Means, Message, Reals, Reply, Sample
from collabtop.protocol.packing import Packed


def reply(agent, answer, pulls=0, number=1):
    return Reply(agent, number, pulls, answer)


def test_words_and_bits_add_up_by_kind_direction_and_round():
    meter = Meter(agents=2, horizon=100)
    meter.begin_round("local", live=8)
    meter.count("down", [Deal(np.arange(3))], copies=2)
    meter.count_replies([reply(0, Held(5)), reply(1, Held(3))])
    meter.begin_round("shared", live=4)
    meter.count("down", [Cut(1), Cut(2)])
    meter.count_replies([reply(0, Means(np.zeros(4)))])
    ledger = meter.ledger()
    assert ledger.entries == (
        Entry(0, "Deal", "down", messages=2, words=6, bits=192),
        Entry(0, "Held", "up", messages=2, words=2, bits=64),
        Entry(1, "Cut", "down", messages=2, words=2, bits=64),
        Entry(1, "Means", "up", messages=1, words=4, bits=256),
    )
    assert (ledger.words, ledger.bits, ledger.round_trips) == (14, 576, 2)
    assert ledger.words_by("direction") == {"down": 8, "up": 6}
    assert ledger.words_by("round") == {0: 8, 1: 6}
    assert ledger.bits_by("kind") == {"Deal": 192, "Held": 64, "Cut": 64, "Means": 256}
    assert [cost.words for cost in meter.rounds()] == [8, 6]


def test_time_is_the_busiest_agent_of_each_round_added_up():
    meter = Meter(agents=2, horizon=100)
    meter.begin_round("shared", live=4)
    meter.count_replies([reply(0, Held(1), pulls=3), reply(1, Held(1), pulls=5)])
    meter.count_replies([reply(0, Held(1), pulls=4)])  # in the same round: agent 0 now has 7
    meter.begin_round("shared", live=2)
    meter.count_replies([reply(1, Held(1), pulls=2)])
    assert [(cost.time, cost.pulls) for cost in meter.rounds()] == [(7, 12), (2, 2)]
    assert meter.time == 9


def test_messages_and_pulls_before_the_first_round_are_counted_in_it():
    meter = Meter(agents=1, horizon=100)
    meter.count("down", [Sample(1, 2)])
    meter.count_replies([reply(0, Held(1), pulls=6)])
    meter.begin_round("local", live=4)
    meter.count_replies([reply(0, Held(1), pulls=1)])
    (only,) = meter.rounds()
    assert (only.words, only.round_trips, only.pulls, only.time) == (4, 2, 7, 7)


def test_a_run_that_never_begins_a_round_is_counted():
    meter = Meter(agents=1, horizon=100)
    assert meter.rounds() == ()
    assert meter.ledger().entries == ()
    meter.count_replies([reply(0, Held(1), pulls=6)])
    assert meter.rounds()[0].time == 6
    assert meter.ledger().words == 1


def test_time_past_the_horizon_is_an_error():
    # No agent makes more than 4 pulls; but in rounds, where all wait for the busiest, they take 7 steps.
    meter = Meter(agents=2, horizon=6)
    meter.begin_round("shared", live=2)
    meter.count_replies([reply(0, Held(1), pulls=4)])
    meter.begin_round("shared", live=2)
    with pytest.raises(ProtocolError, match="time is 7, past the horizon of 6"):
        meter.count_replies([reply(1, Held(1), pulls=3)])


def test_transport_statistics_do_not_affect_equality():
    entries = (Entry(0, "Held", "up", 1, 1, 32),)
    first = Ledger(entries, 1, TransportStats(bytes=10, repeats=2))
    second = Ledger(entries, 1, TransportStats(seconds=3.0))
    assert first == second
    assert hash(first) == hash(second)
    assert first != Ledger(entries, 2, TransportStats())
    assert first != Ledger((), 1, TransportStats())
    assert first != "a ledger"


def test_waiting_time_is_a_transport_statistic():
    arms = ct.BernoulliArms([0.1, 0.9])
    assert ct.identify(arms, 1, agents=2, horizon=10, algorithm="uniform").ledger.transport.seconds > 0


class Perhaps(Message, frozen=True, tag="perhaps.Perhaps"):
    count: int | None
    share: float | None = None
    flag: bool | None = None


def test_an_optional_number_is_a_word_and_its_presence_a_bit():
    assert cost(Perhaps(None)) == (3, 3)
    assert cost(Perhaps(7)) == (3, 3 + 32)
    assert cost(Perhaps(7, 0.5, True)) == (3, 3 + 32 + 64 + 1)
    assert cost(Perhaps(7, 0.5, free=("count", "share"))) == (1, 1)
    meter = Meter(agents=2, horizon=10)
    meter.count("up", [Perhaps(7), Perhaps(None, 0.5)])
    assert (meter.ledger().words, meter.ledger().bits) == (6, 6 + 32 + 64)


class PerhapsArrays(Message, frozen=True, tag="perhaps.PerhapsArrays"):
    numbers: Ints | None
    packed: Packed | None = None


def test_the_presence_of_an_array_in_an_extensions_message_is_a_word_of_one_bit():
    assert cost(PerhapsArrays(None)) == (2, 2)
    assert cost(PerhapsArrays(np.array([], np.int64))) == (2, 2)
    assert cost(PerhapsArrays(np.array([4, 7]))) == (4, 2 + 64)
    assert cost(PerhapsArrays(np.array([4, 7]), free=("numbers",))) == (1, 1)
    meter = Meter(agents=2, horizon=10)
    meter.count("up", [PerhapsArrays(None), PerhapsArrays(np.array([4]), Packed.of(np.array([1, 0, 1]), 1))])
    assert (meter.ledger().words, meter.ledger().bits) == (4 + 1 + 3, 4 + 32 + 3)


class Note(Message, frozen=True, tag="note.Note"):
    text: str


class Listed(Message, frozen=True, tag="note.Listed"):
    values: list[float]


class Either(Message, frozen=True, tag="note.Either"):
    value: int | float


@pytest.mark.parametrize("message", [Note("0.25"), Listed([0.25]), Either(3)])
def test_a_field_that_cannot_be_counted_is_refused(message):
    with pytest.raises(ProtocolError, match=r"(text|values?) of note.* is .*, but a field is an int, float, bool"):
        cost(message)


class Square(Message, frozen=True, tag="square.Square"):
    table: Reals


def test_every_number_of_a_table_is_counted():
    assert cost(Square(np.zeros((3, 4)))) == (12, 12 * 64)
