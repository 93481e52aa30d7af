"""Mutated messages and broken connections: no crash, no hang, no growth of memory, and the run goes on unharmed."""

from __future__ import annotations

import random
import resource
import socket
import ssl
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from peers import Peer, wait_for_port

import collabtop as ct
from collabtop.errors import ProtocolError
from collabtop.protocol.envelope import seal_reply, seal_requests
from collabtop.sites.checks import PublicState
from collabtop.sites.frames import (
    Answer,
    Ask,
    Declined,
    Done,
    Failed,
    Hello,
    Joiner,
    Ready,
    Refused,
    Welcome,
    encode,
    largest_frame,
    pieces,
    read_from_coordinator,
    read_from_site,
)

N = 40


class Listening(ct.LocalTeam):
    """Keeps every question with its answer, and what was known before it."""

    def open(self, arms, setup):
        super().open(arms, setup)
        self.setup, self.heard = setup, []
        self.states = [PublicState(agent, setup.problem) for agent in range(setup.problem.agents)]

    def deliver(self, requests):
        replies = super().deliver(requests)
        for request, reply in zip(requests, replies, strict=True):
            before = self.states[request.agent]
            self.states[request.agent] = before._copy()
            self.states[request.agent].check_reply(request, reply)
            self.heard.append((before, request, reply))
        return replies


@pytest.fixture(scope="module")
def conversations():
    """What was known, the question and the answer, for all exchanges of runs with every kind of message."""
    found = []
    for algorithm in ("frugal-top", "collab-top-iid", "collab-top-noniid", "frugal-top-noniid", "kzz", "confident-top"):
        team = Listening()
        arms = ct.BernoulliArms(np.random.default_rng(2).integers(1, 9, N) / 10)
        ct.identify(arms, 3, agents=3, horizon=4_000, algorithm=algorithm, seed=1, team=team)
        found += team.heard
    return found, team.setup


def mutated(data, rng):
    """A frame with bytes changed, cut out, put in or doubled, or with the end of it missing."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randrange(len(data) + 1)
        what = rng.randrange(5)
        if what == 0 and place < len(data):
            data[place] = rng.randrange(256)
        elif what == 1:
            del data[place : place + rng.randrange(1, 9)]
        elif what == 2:
            data[place:place] = rng.randbytes(rng.randrange(1, 9))
        elif what == 3:
            data[place:place] = data[place : place + rng.randrange(1, 40)]
        else:
            del data[place:]
        if not data:
            return b""
    return bytes(data)


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def test_a_hundred_thousand_mutated_messages_are_refused_or_make_sense_and_take_no_memory(conversations):
    found, setup = conversations
    rng = random.Random(1)
    asked = [
        (state, request, encode(Ask(seal_requests([request], {request.agent: 5})[0]))) for state, request, _ in found
    ]
    answered = [(state, request, encode(Answer(seal_reply(reply, 5)))) for state, request, reply in found]
    others = [encode(it) for it in (Hello(1, "", 3, N, "ab"), Ready(5, (0, 3)), Declined("batch", 1), Failed(0, 1, 2))]
    others += [encode(it) for it in (Welcome("ab" * 16, setup, (0, 1)), Refused("run"), Done())]
    understood, before = 0, megabytes()
    for _ in range(50_000):
        state, request, data = rng.choice(answered)
        understood += coordinator_reads(mutated(data, rng), state, request)
        state, request, data = rng.choice(asked)
        understood += site_reads(mutated(data, rng), state)
    for _ in range(10_000):
        data = mutated(rng.choice(others), rng)
        with suppress(ProtocolError):
            read_from_site(data)
        with suppress(ProtocolError):
            read_from_coordinator(data)
    assert 0 < understood < 50_000  # most are nonsense, and some change a number into another that can be
    assert megabytes() - before < 50


def coordinator_reads(data, state, request):
    """What the coordinator does with bytes from a site."""
    try:
        frame = read_from_site(data)
        if isinstance(frame, Answer):
            state._copy().check_reply(request, frame.reply.open())
    except ProtocolError:
        return False
    return True


def site_reads(data, state):
    """What a site does with bytes from the coordinator, up to the pulls."""
    try:
        frame = read_from_coordinator(data)
        if isinstance(frame, Ask):
            state.check_request(frame.request.open())
    except ProtocolError:
        return False
    return True


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


def break_in(port, certs, rng):
    """Open a connection and break it: bytes that are no TLS, a handshake cut short, a valid one that ends at once."""
    with socket.socket() as sock, suppress(OSError, ssl.SSLError):
        sock.settimeout(5)
        sock.connect(("127.0.0.1", port))
        what = rng.randrange(4)
        if what == 0:
            sock.send(rng.randbytes(rng.randrange(1, 200)))
        elif what == 1:
            sock.send(b"\x16\x03\x01\x02\x00\x01" + rng.randbytes(rng.randrange(1, 200)))
        elif what == 2:
            context = ssl.create_default_context(cafile=certs / "authority.pem")
            context.set_alpn_protocols(["h2"])
            with context.wrap_socket(sock, server_hostname="localhost") as wrapped:
                wrapped.send(rng.randbytes(64))


def break_in_with_a_certificate(port, certs, rng):
    """A valid certificate, and nonsense instead of a Hello."""
    with Peer.of(port, certs, "site1") as peer:
        hello = encode(Hello(1, "", 3, 3, ""))
        peer.send_bytes(b"\0" + mutated(hello, rng) if rng.random() < 0.7 else rng.randbytes(rng.randrange(300)))
        peer.outbox.put(None)
        with suppress(Exception):
            peer.read()


@pytest.mark.parametrize(("count", "certified"), [(400, 40), pytest.param(10_000, 1_000, marks=pytest.mark.long)])
def test_broken_connections_at_the_port_leave_the_run_under_way_unharmed(certs, count, certified):
    team = ct.SitesTeam(["site0", "site1"], listen="localhost:0", cert=certs / "coordinator.pem", wait=600)
    arms = ct.BernoulliArms([0.9, 0.5, 0.4])
    run = {"agents": 2, "horizon": 300, "algorithm": "kzz", "seed": 1}
    results = []
    thread = threading.Thread(target=lambda: results.append(ct.identify(ct.RemoteArms(3), 1, **run, team=team)))
    thread.start()
    wait_for_port(team.port)
    rng = random.Random(3)
    for _ in range(count // 10):  # the first ones fill caches and pools
        break_in(team.port, certs, rng)
    before, files = megabytes(), open_files()
    for _ in range(count):
        break_in(team.port, certs, rng)
    for _ in range(certified):
        break_in_with_a_certificate(team.port, certs, rng)
    sites = [
        threading.Thread(target=ct.join, args=[f"localhost:{team.port}", arms], kwargs={"cert": certs / f"site{k}.pem"})
        for k in range(2)
    ]
    for site in sites:
        site.start()
    thread.join(60)
    for site in sites:
        site.join(20)
    assert results == [ct.identify(arms, 1, **run)]
    assert megabytes() - before < 60
    end = time.monotonic() + 20
    while open_files() > files + 20:
        assert time.monotonic() < end, "connections are left open"
        time.sleep(0.1)


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))
