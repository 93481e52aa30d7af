"""Frames mutated and made up: no crash, no hang, no growth of memory, and what is let through makes sense.

Hypothesis chooses them. The long form throws 100,000 at the coordinator's decoder and 100,000 at the site's, where
what is let through goes on to the agent; in 20 parts, so that several processes can share them.
"""

from __future__ import annotations

import gc
import math
import signal
import tracemalloc
from collections import Counter
from contextlib import contextmanager

import msgspec
import numpy as np
import pytest
from hypothesis import given, seed, settings

from collabtop.errors import ProtocolError
from collabtop.protocol.messages import Narrow, Sample
from collabtop.teams.remote.envelope import seal_reply
from collabtop.teams.sites.client import SiteClient
from collabtop.teams.sites.frames import (
    Answer,
    Ask,
    Joiner,
    Welcome,
    encode,
    largest_frame,
    pieces,
    read_from_coordinator,
    read_from_site,
)
from collabtop.teams.sites.journal import Journal
from collabtop.teams.sites.validation import _ANSWERS, _QUESTIONS, PublicState
from tests.support.honest_runs import N, conversations, exchanges, some_arms
from tests.support.made_up_messages import ANY, gathered
from tests.support.memory import held_now
from tests.support.wrong_frames import LIFE, MOST, RUN, to_coordinator, to_site

pytestmark = pytest.mark.slow

COUNT = 5_000
"""Wrong frames of one part."""
PARTS = [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 21))]
ROOM = 100_000
"""A horizon with room for questions that nobody planned."""
CLIENT = SiteClient("localhost:1", None, some_arms(), None, None, 2, "", 1.0, 1.0, None)


# -- what becomes of bytes that arrive


def coordinator_reads(frames):
    """What the coordinator does with bytes from sites: how many it took, and how many it refused."""
    counts = Counter()
    for number, data in frames:
        exchange = exchanges()[number]
        counts["wrong"] += data != encode(Answer(seal_reply(exchange.reply, LIFE)))
        try:
            frame = read_from_site(data)
            if isinstance(frame, Answer):
                reply = frame.reply.open()
                exchange.state._copy().check_reply(exchange.request, reply)
                check_sense(reply.answer)
            counts["taken"] += 1
        except ProtocolError:
            counts["refused"] += 1
    return counts


def check_sense(answer):
    """Whatever was asked: means lie in [0, 1], and arms are those there are."""
    for name, values in msgspec.structs.asdict(answer).items():
        if isinstance(values, np.ndarray):
            largest = N - 1 if values.dtype == np.int64 else 1
            assert len(values) <= N, name
            assert ((values >= 0) & (values <= largest)).all(), name


class Contradicted(Exception):  # noqa: N818  (it is no error of the site's)
    """A coordinator's question contradicts the agent's own values: the site ends."""


class Site:
    """A site with one agent, and what the coordinator knows of it."""

    def __init__(self, talk):
        setup, heard = conversations()[talk.conversation]
        number = heard[0].request.agent
        problem = msgspec.structs.replace(setup.problem, horizon=ROOM)
        setup = msgspec.structs.replace(setup, problem=problem)
        self.agent = Journal(None, RUN, setup, [number], some_arms(), 1, "").agents[number]
        self.known = PublicState(number, problem)
        self.counts = Counter()
        for exchange in heard[: talk.begun]:
            self._answer(exchange.request)

    def read(self, data):
        """What a site does with bytes from the coordinator."""
        try:
            frame = read_from_coordinator(data)
            if isinstance(frame, Ask):
                sealed = frame.request
                if (sealed.epoch, sealed.agent) != (LIFE, self.agent.number):
                    raise ProtocolError("a request for a different site")
                request = sealed.open()
                self.agent.state.check_request(request)
        except ProtocolError:
            self.counts["refused"] += 1
            return
        self.counts["taken"] += 1
        if isinstance(frame, Welcome):
            CLIENT._objection(frame)
        if isinstance(frame, Ask):
            self._answer(request)
            self.counts[type(request.messages[-1])] += 1

    def _answer(self, request):
        """What was let through is answered, and the coordinator takes the answer."""
        try:
            reply = self.agent.answer(request)
        except ProtocolError:
            # Places and borders may contradict the agent's own values, which it alone knows.
            assert isinstance(request.messages[-1], Narrow | Sample)
            raise Contradicted from None
        frame = read_from_site(encode(Answer(seal_reply(reply, LIFE))))
        self.known.check_reply(request, frame.reply.open())


def site_reads(talk):
    """What a site does with such a conversation; another one takes the place of one that ends."""
    counts, site = Counter(wrong=talk.wrong), Site(talk)
    for data in talk.frames:
        try:
            site.read(data)
        except Contradicted:
            counts += site.counts
            site = Site(talk)
    return counts + site.counts


# -- throwing


@contextmanager
def at_once():
    """What takes a minute hangs: end it."""

    def give_up(*_):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def thrown(strategy, reads, part, honest):
    """Throw frames at what reads them, others in each part; what became of them. That share of them is honest."""
    counts = Counter()

    @seed(part)
    @settings(ANY, max_examples=math.ceil(COUNT * (1 + honest) / MOST))
    @given(strategy)
    def throw(frames):
        with at_once():
            counts.update(reads(frames))

    throw()
    assert counts["wrong"] >= COUNT
    return counts


@pytest.mark.parametrize("part", PARTS)
def test_a_coordinator_refuses_nonsense_and_takes_what_makes_sense(part):
    counts = thrown(to_coordinator, coordinator_reads, part, honest=0.1)
    # Most is nonsense; some have a number changed into one that can be.
    assert 0.02 < counts["taken"] / (counts["taken"] + counts["refused"]) < 0.5


@pytest.mark.parametrize("part", PARTS)
def test_a_site_refuses_nonsense_and_its_agent_answers_all_that_is_let_through(part):
    counts = thrown(to_site, site_reads, part, honest=0.35)
    assert 0.1 < counts["taken"] / (counts["taken"] + counts["refused"]) < 0.5
    assert {kind for kind in counts if isinstance(kind, type)} == set(_ANSWERS)


def test_what_the_fuzzer_begins_with_has_every_kind_of_message():
    asked = {type(message) for exchange in exchanges() for message in exchange.request.messages}
    answered = {type(exchange.reply.answer) for exchange in exchanges()}
    assert asked == set(_QUESTIONS)
    assert answered == {answer for answer, _ in _ANSWERS.values()}


# -- memory


def both(count, part):
    """So many frames for each side. Hypothesis is done with them: its own memory is not what is measured."""
    return gathered(to_coordinator, count // MOST, part), gathered(to_site, count // MOST, part)


def read_all(frames):
    for_coordinator, for_site = frames
    for some in for_coordinator:
        coordinator_reads(some)
    for talk in for_site:
        site_reads(talk)


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_frames_leave_no_memory_behind(count):
    """Others the second time, which may leave half a megabyte behind: 25 bytes a frame, if long."""
    first, second = both(count, part=101), both(count, part=102)
    read_all(first)
    before = held_now()
    read_all(second)
    assert held_now() - before < 500_000


def test_of_what_python_knows_a_frame_leaves_nothing_behind():
    first, second = both(400, part=103), both(1_000, part=104)
    read_all(first)
    tracemalloc.start()
    try:
        read_all(first)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        read_all(second)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 10_000  # 5 bytes a frame: any object that stays is larger


def test_pieces_that_never_end_or_are_none_are_refused():
    joiner = Joiner(largest_frame(N))
    endless = (joiner.take(b"\1" + bytes(1000)) for _ in range(10_000))
    with pytest.raises(ProtocolError, match="larger than"):
        list(endless)
    for nonsense in (b"", b"\7", b"\1"):
        with pytest.raises(ProtocolError, match="piece"):
            Joiner(10).take(nonsense)
    whole = bytes(range(256)) * 4096
    joiner = Joiner(1 << 21)
    assert [it for piece in pieces(whole) if (it := joiner.take(piece))] == [whole]
