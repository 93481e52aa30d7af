"""Frames that are wrong, or may be: what the fuzzer throws at a coordinator and at a site."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from hypothesis import strategies as st

from collabtop.algorithms.registry import available_algorithms
from collabtop.protocol import wire
from collabtop.protocol.messages import Request
from collabtop.protocol.setup import Setup
from collabtop.teams.remote.envelope import SealedRequest, seal_reply, seal_requests
from collabtop.teams.sites.frames import Answer, Ask, Declined, Done, Failed, Hello, Ready, Refused, Welcome, encode
from collabtop.teams.sites.validation import _ANSWERS, _QUESTIONS
from tests.support.honest_runs import N, conversations, exchanges
from tests.support.made_up_messages import junk, messages, mutated, numbers, with_one_field_made_up

RUN, LIFE = "ab" * 16, 5
MOST = 20
"""Frames of one example: there is a limit to what Hypothesis draws for one."""

_QUESTIONS_ASKED = sorted(kind.__name__ for kind in _ANSWERS)
_TOLD = ["Deal", *sorted({kind.__name__ for kind in _QUESTIONS} - set(_QUESTIONS_ASKED))]
_EVERY_KIND = sorted(wire.kinds())

ways = st.integers(0, 9)


def _with_a_field_made_up(draw, frame) -> bytes:
    fields = msgspec.msgpack.decode(encode(frame))
    fields[draw(st.integers(0, len(fields) - 1))] = draw(numbers | junk)
    return msgspec.msgpack.encode(fields)


def _sealed(draw, tag: int, envelope: list) -> bytes:
    """A frame about one agent: its envelope is right as a rule, so that what is in it is looked at."""
    way = draw(st.integers(0, 19))
    if way == 0:
        envelope[draw(st.integers(0, len(envelope) - 1))] = draw(numbers | junk)
    data = msgspec.msgpack.encode([tag, envelope])
    return mutated(draw, data) if way == 1 else data


# -- to a coordinator

_OTHERS_OF_SITES = [Hello(1, "", 3, N, "ab"), Ready(LIFE, (0, 3)), Declined("batch", 1), Failed(0, 1, 2)]


@st.composite
def _frames_of_sites(draw):
    exchange = draw(st.integers(0, len(exchanges()) - 1))
    reply, way = exchanges()[exchange].reply, draw(ways)
    if way == 0:
        return exchange, _with_a_field_made_up(draw, draw(st.sampled_from(_OTHERS_OF_SITES)))
    if way <= 3:
        return exchange, mutated(draw, encode(Answer(seal_reply(reply, LIFE))))
    if way <= 6:
        answer = with_one_field_made_up(draw, reply.answer)
    else:
        answer = draw(messages(*_EVERY_KIND) if way == 7 else messages(type(reply.answer).__name__))
    return exchange, _sealed(draw, 7, [LIFE, reply.agent, reply.number, reply.pulls, answer])


@st.composite
def _first_bytes(draw):
    hello = Hello(1, "", 3, N, "")
    way = draw(ways)
    if way <= 2:
        return draw(st.binary(max_size=300))
    return b"\0" + (_with_a_field_made_up(draw, hello) if way <= 5 else mutated(draw, encode(hello)))


broken_hellos = _first_bytes()
"""Pieces that come instead of a site's first one."""

to_coordinator = st.lists(_frames_of_sites(), min_size=MOST, max_size=MOST)
"""Exchanges by number, each with a frame that comes instead of its answer."""


# -- to a site


class Talk(NamedTuple):
    """What a coordinator says to a site: at first one of the honest conversations, up to a point, then these frames."""

    conversation: int
    begun: int
    frames: list[bytes]
    wrong: int
    """How many of the frames are not the honest ones."""


def _welcome(draw, setup: Setup) -> bytes:
    """The description of a run with one field made up."""
    described = msgspec.to_builtins(setup)
    part = described["problem"] if draw(st.booleans()) else described
    name = draw(st.sampled_from(sorted(part)))
    part[name] = draw(st.sampled_from(available_algorithms()) if name == "algorithm" else numbers | junk)
    return msgspec.msgpack.encode([2, RUN, described, [0, 1]])


def _other_frame(draw, setup: Setup) -> bytes:
    way = draw(ways)
    if way <= 4:
        return _welcome(draw, setup)
    other = (Refused("run"), Done(), Welcome(RUN, setup, (0, 1)))[way % 3]
    return _with_a_field_made_up(draw, other) if way <= 6 else mutated(draw, encode(other))


def _question(draw, honest: SealedRequest) -> bytes:
    way = draw(ways)
    if way <= 1:  # as it should be, so that the conversation gets on
        return encode(Ask(honest))
    if way <= 3:
        return mutated(draw, encode(Ask(honest)))
    if way <= 6:
        asked = list(honest.messages)
        place = draw(st.integers(0, len(asked) - 1))
        asked[place] = with_one_field_made_up(draw, wire.decode(asked[place]))
    else:
        asked = draw(st.lists(messages(*_TOLD), max_size=2))
        asked.append(draw(messages(*(_EVERY_KIND if way == 7 else _QUESTIONS_ASKED))))
    return _sealed(draw, 6, [LIFE, honest.agent, honest.number, asked])


@st.composite
def _talks(draw):
    conversation = draw(st.integers(0, len(conversations()) - 1))
    setup, heard = conversations()[conversation]
    begun = draw(st.integers(0, len(heard) - 1))
    agent, number = heard[0].request.agent, heard[begun].request.number
    frames, wrong = [], MOST
    turn = begun
    for step in range(MOST):
        if draw(st.integers(0, 19)) == 0:
            frames.append(_other_frame(draw, setup))
        else:
            asked = heard[turn % len(heard)].request.messages
            (honest,) = seal_requests([Request(agent, number + step, asked)], {agent: LIFE})
            frames.append(_question(draw, honest))
            if frames[-1] == encode(Ask(honest)):
                turn, wrong = turn + 1, wrong - 1
    return Talk(conversation, begun, frames, wrong)


to_site = _talks()
"""Conversations, each with frames that come instead of the honest ones from some point on."""
