"""Frames that are probably invalid, for fuzzing a coordinator and a site."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from collabtop.algorithms.registry import available_algorithms
from collabtop.protocol import wire
from collabtop.protocol.messages import Request
from collabtop.protocol.setup import Setup
from collabtop.teams.remote.envelope import SealedRequest, seal_reply, seal_requests
from collabtop.teams.sites.frames import (
    VERSION,
    Answer,
    Ask,
    Declined,
    Done,
    Failed,
    Hello,
    Ready,
    Refused,
    Welcome,
    encode,
)
from collabtop.teams.sites.validation import _ANSWERS, _QUESTIONS
from tests.support.honest_runs import N, conversations, exchanges
from tests.support.made_up_messages import BUILT_IN_KINDS, junk, messages, mutated, numbers, with_one_field_made_up

RUN, LIFE = "ab" * 16, 5
MOST = 20
"""Frames per example: Hypothesis limits how much it draws for one."""

_QUESTION_KINDS = sorted(kind.__name__ for kind in _ANSWERS)
_INSTRUCTION_KINDS = ["Deal", *sorted({kind.__name__ for kind in _QUESTIONS} - set(_QUESTION_KINDS))]
_ALL_KINDS = sorted(BUILT_IN_KINDS)

choices = st.integers(0, 9)


def _with_a_field_made_up(draw, frame) -> bytes:
    fields = msgspec.msgpack.decode(encode(frame))
    fields[draw(st.integers(0, len(fields) - 1))] = draw(numbers | junk)
    return msgspec.msgpack.encode(fields)


def _sealed(draw, tag: int, envelope: list[Any]) -> bytes:
    """A frame for one agent. Its envelope is mostly valid, so that the message inside is decoded."""
    choice = draw(st.integers(0, 19))
    if choice == 0:
        envelope[draw(st.integers(0, len(envelope) - 1))] = draw(numbers | junk)
    data = msgspec.msgpack.encode([tag, envelope])
    return mutated(draw, data) if choice == 1 else data


# -- to a coordinator

_OTHER_FRAMES_OF_SITES = [Hello(VERSION, "", 3, N, "ab"), Ready(LIFE, (0, 3)), Declined("batch", 1), Failed(0, 1, 2)]


@st.composite
def _frames_of_sites(draw):
    exchange = draw(st.integers(0, len(exchanges()) - 1))
    reply, choice = exchanges()[exchange].reply, draw(choices)
    if choice == 0:
        return exchange, _with_a_field_made_up(draw, draw(st.sampled_from(_OTHER_FRAMES_OF_SITES)))
    if choice <= 3:
        return exchange, mutated(draw, encode(Answer(seal_reply(reply, LIFE))))
    if choice <= 6:
        answer = with_one_field_made_up(draw, reply.answer)
    else:
        answer = draw(messages(*_ALL_KINDS) if choice == 7 else messages(type(reply.answer).__name__))
    return exchange, _sealed(draw, 7, [LIFE, reply.agent, reply.number, reply.pulls, answer])


@st.composite
def _first_bytes(draw):
    hello = Hello(VERSION, "", 3, N, "")
    choice = draw(choices)
    if choice <= 2:
        return draw(st.binary(max_size=300))
    return b"\0" + (_with_a_field_made_up(draw, hello) if choice <= 5 else mutated(draw, encode(hello)))


broken_hellos = _first_bytes()
"""Pieces sent in place of a site's first one."""

to_coordinator = st.lists(_frames_of_sites(), min_size=MOST, max_size=MOST)
"""Numbers of exchanges, each with a frame in place of its answer."""


# -- to a site


class Talk(NamedTuple):
    """What a coordinator sends to a site: the start of an honest conversation, followed by these frames."""

    conversation: int
    """Index of the honest conversation."""
    start: int
    """How many of its exchanges come first."""
    frames: list[bytes]
    wrong: int
    """How many of the frames differ from the honest ones."""


def _welcome(draw, setup: Setup) -> bytes:
    """A `Welcome` whose setup has one field made up."""
    fields = msgspec.to_builtins(setup)
    part = fields["problem"] if draw(st.booleans()) else fields
    name = draw(st.sampled_from(sorted(part)))
    part[name] = draw(st.sampled_from(available_algorithms()) if name == "algorithm" else numbers | junk)
    return msgspec.msgpack.encode([2, RUN, fields, [0, 1]])


def _other_frame(draw, setup: Setup) -> bytes:
    choice = draw(choices)
    if choice <= 4:
        return _welcome(draw, setup)
    other = (Refused("run"), Done(), Welcome(RUN, setup, (0, 1)))[choice % 3]
    return _with_a_field_made_up(draw, other) if choice <= 6 else mutated(draw, encode(other))


def _question(draw, honest: SealedRequest) -> bytes:
    choice = draw(choices)
    if choice <= 1:  # unchanged, so that the conversation continues
        return encode(Ask(honest))
    if choice <= 3:
        return mutated(draw, encode(Ask(honest)))
    if choice <= 6:
        request = list(honest.messages)
        index = draw(st.integers(0, len(request) - 1))
        request[index] = with_one_field_made_up(draw, wire.decode(request[index]))
    else:
        request = draw(st.lists(messages(*_INSTRUCTION_KINDS), max_size=2))
        request.append(draw(messages(*(_ALL_KINDS if choice == 7 else _QUESTION_KINDS))))
    return _sealed(draw, 6, [LIFE, honest.agent, honest.number, request])


@st.composite
def _talks(draw):
    conversation = draw(st.integers(0, len(conversations()) - 1))
    setup, history = conversations()[conversation]
    start = draw(st.integers(0, len(history) - 1))
    agent, number = history[0].request.agent, history[start].request.number
    frames, wrong = [], MOST
    turn = start
    for step in range(MOST):
        if draw(st.integers(0, 19)) == 0:
            frames.append(_other_frame(draw, setup))
        else:
            request = history[turn % len(history)].request.messages
            (honest,) = seal_requests([Request(agent, number + step, request)], {agent: LIFE})
            frames.append(_question(draw, honest))
            if frames[-1] == encode(Ask(honest)):
                turn, wrong = turn + 1, wrong - 1
    return Talk(conversation, start, frames, wrong)


to_site = _talks()
"""Conversations that are honest at the start."""
