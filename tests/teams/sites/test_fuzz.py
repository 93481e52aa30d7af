"""Mutated and made-up frames cause no crash, no hang and no growth of memory, and accepted ones make sense.

Hypothesis generates them. The long form sends 100,000 to the coordinator's decoder and 100,000 to the site's, which
passes accepted requests to its agent. It has 20 parts, so that several processes can share the work.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, seed, settings

from collabtop.errors import ProtocolError
from collabtop.protocol.messages import Moments, Narrow, Sample
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
from tests.support.honest_runs import N, conversations, exchanges, simulated_arms
from tests.support.made_up_messages import ANY, examples_of
from tests.support.memory import resident_bytes
from tests.support.wrong_frames import LIFE, MOST, RUN, to_coordinator, to_site

pytestmark = pytest.mark.slow

COUNT = 5_000
"""Wrong frames per part."""
PARTS = [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 21))]
LARGE_HORIZON = 100_000
"""A horizon that is large enough for unplanned requests."""
CLIENT = SiteClient("localhost:1", None, simulated_arms(), None, None, 2, b"", None, None, "", 1.0, 1.0, None)


# -- what both sides do with the frames they receive


def coordinator_reads(frames):
    """Process frames as the coordinator does; count those that it accepts and rejects."""
    counts = Counter()
    for number, data in frames:
        exchange = exchanges()[number]
        counts["wrong"] += data != encode(Answer(seal_reply(exchange.reply, LIFE)))
        try:
            frame = read_from_site(data)
            if isinstance(frame, Answer):
                reply = frame.reply.open()
                exchange.state._copy().check_reply(exchange.request, reply)
                check_answer(reply.answer)
            counts["accepted"] += 1
        except ProtocolError:
            counts["rejected"] += 1
    return counts


def check_answer(answer):
    """Check that means lie in [0, 1] and that arms exist, whatever the request was."""
    for name, values in msgspec.structs.asdict(answer).items():
        if isinstance(values, np.ndarray):
            largest = N - 1 if values.dtype == np.int64 else 1
            assert len(values) <= N, name
            assert ((values >= 0) & (values <= largest)).all(), name


class Contradicted(Exception):  # noqa: N818  (not an error of the site)
    """A request contradicts the agent's own values, so the site ends."""


class Site:
    """A site with one agent, and the coordinator's state of that agent."""

    def __init__(self, talk):
        setup, history = conversations()[talk.conversation]
        number = history[0].request.agent
        problem = msgspec.structs.replace(setup.problem, horizon=LARGE_HORIZON)
        setup = msgspec.structs.replace(setup, problem=problem)
        self.agent = Journal(None, RUN, setup, [number], simulated_arms(), 1, b"").agents[number]
        self.state = PublicState(number, problem)
        self.counts = Counter()
        for exchange in history[: talk.start]:
            self._answer(exchange.request)

    def read(self, data):
        """Process a frame as a site does."""
        try:
            frame = read_from_coordinator(data)
            if isinstance(frame, Ask):
                sealed = frame.request
                if (sealed.epoch, sealed.agent) != (LIFE, self.agent.number):
                    raise ProtocolError("a request for a different site")
                request = sealed.open()
                self.agent.state.check_request(request)
        except ProtocolError:
            self.counts["rejected"] += 1
            return
        self.counts["accepted"] += 1
        if isinstance(frame, Welcome):
            CLIENT._objection(frame)
        if isinstance(frame, Ask):
            self._answer(request)
            self.counts[type(request.messages[-1])] += 1

    def _answer(self, request):
        """Answer an accepted request; the coordinator must accept the answer."""
        try:
            reply = self.agent.answer(request)
        except ProtocolError:
            # Positions and borders may contradict values that only the agent knows.
            assert isinstance(request.messages[-1], Narrow | Sample)
            raise Contradicted from None
        frame = read_from_site(encode(Answer(seal_reply(reply, LIFE))))
        assert isinstance(frame, Answer)
        self.state.check_reply(request, frame.reply.open())


def site_reads(talk):
    """Process a conversation as a site does; a site that ends is replaced by a new one."""
    counts, site = Counter(wrong=talk.wrong), Site(talk)
    for data in talk.frames:
        try:
            site.read(data)
        except Contradicted:
            counts += site.counts
            site = Site(talk)
    return counts + site.counts


# -- fuzzing


@contextmanager
def time_limit():
    """Fail if the block takes longer than a minute."""

    def give_up(*_):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fuzz(strategy, reads, part, honest):
    """Generate frames, different ones in each part, and count what `reads` does with them.

    `honest` is at least the fraction of frames that are unchanged.
    """
    counts = Counter()
    conversations(), exchanges()  # made once, and before Hypothesis watches who draws random numbers

    @seed(part)
    @settings(ANY, max_examples=math.ceil(COUNT * (1 + honest) / MOST))
    @given(strategy)
    def read(frames):
        with time_limit():
            counts.update(reads(frames))

    read()
    assert counts["wrong"] >= COUNT
    return counts


@pytest.mark.parametrize("part", PARTS)
def test_a_coordinator_rejects_invalid_frames_and_accepts_valid_ones(part):
    counts = fuzz(to_coordinator, coordinator_reads, part, honest=0.1)
    # Most frames are invalid; in some, one valid number replaces another.
    assert 0.02 < counts["accepted"] / (counts["accepted"] + counts["rejected"]) < 0.5


@pytest.mark.parametrize("part", PARTS)
def test_a_site_rejects_invalid_frames_and_its_agent_answers_all_others(part):
    counts = fuzz(to_site, site_reads, part, honest=0.35)
    assert 0.1 < counts["accepted"] / (counts["accepted"] + counts["rejected"]) < 0.5
    assert {kind for kind in counts if isinstance(kind, type)} == set(_ANSWERS)


def test_the_honest_runs_have_every_kind_of_message():
    asked = {type(message) for exchange in exchanges() for message in exchange.request.messages}
    answered = {type(exchange.reply.answer) for exchange in exchanges()}
    assert asked == set(_QUESTIONS)
    assert answered == {answer for answer, _ in _ANSWERS.values()} | {Moments}  # instead of Means, if asked for


# -- memory


def both(count, part):
    """Frames for each side, generated in advance so that the memory of Hypothesis is not measured."""
    return examples_of(to_coordinator, count // MOST, part), examples_of(to_site, count // MOST, part)


def read_all(frames):
    for_coordinator, for_site = frames
    for frames_of_sites in for_coordinator:
        coordinator_reads(frames_of_sites)
    for talk in for_site:
        site_reads(talk)


@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_frames_leave_no_memory_behind(count):
    """Half a megabyte may remain after the second part: 25 bytes per frame in the long form."""
    first, second = both(count, part=101), both(count, part=102)
    read_all(first)
    before = resident_bytes()
    read_all(second)
    assert resident_bytes() - before < 500_000


GROWTH = """
import gc, tracemalloc
from tests.teams.sites.test_fuzz import both, read_all

def traced_after(frames):
    read_all(frames)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]

traced = [traced_after(frames) for frames in [both(700, part=part) for part in (103, 104, 105, 106)]]
print(min(after - before for before, after in zip(traced, traced[1:])))
"""


def test_frames_leave_no_python_objects_behind():
    """In a new process: memory from before tracing that is replaced, as in msgspec's cache of strings, looks new.

    A leak grows with every part, while a module that is imported when it is first used adds to one part only. The
    process does not measure its coverage, for which it would remember every line that it reaches.
    """
    command = [sys.executable, "-X", "tracemalloc", "-c", GROWTH]
    unmeasured = {name: value for name, value in os.environ.items() if name != "COVERAGE_PROCESS_START"}
    ended = subprocess.run(
        command, cwd=Path(__file__).parents[3], env=unmeasured, capture_output=True, text=True, check=True
    )
    assert int(ended.stdout) < 7_000  # 5 bytes per frame: any object is larger


def test_endless_and_malformed_pieces_are_rejected():
    joiner = Joiner(largest_frame(N))
    endless = (joiner.take(b"\1" + bytes(1000)) for _ in range(10_000))
    with pytest.raises(ProtocolError, match="larger than"):
        list(endless)
    for piece in (b"", b"\7", b"\1"):
        with pytest.raises(ProtocolError, match="piece"):
            Joiner(10).take(piece)
    whole = bytes(range(256)) * 4096
    joiner = Joiner(1 << 21)
    assert [frame for piece in pieces(whole) if (frame := joiner.take(piece))] == [whole]
