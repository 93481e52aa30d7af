"""One certificate cannot keep the other sites out, however many connections and calls it opens."""

from __future__ import annotations

import gc
import queue
import socket
import threading
import time
from contextlib import suppress
from typing import Any

import pytest

import collabtop as ct
from collabtop.events import SiteChanged
from collabtop.teams.sites import tls
from collabtop.teams.sites.port import MOST_CALLS
from tests.support.peers import wait_for_port
from tests.support.zero_window import ZeroWindowPeer

GIVE_UP = 120
"""Seconds after which a test fails that waits for something the server never does."""

ARMS = ct.BernoulliArms([0.9, 0.5, 0.4])
RUN: dict[str, Any] = {"m": 1, "agents": 2, "horizon": 300, "algorithm": "uniform", "seed": 1}


@pytest.mark.parametrize("hello", [True, False], ids=["with a Hello", "silent"])
@pytest.mark.parametrize("name", ["site7", "site1"], ids=["not in the run", "in the run"])
def test_sixty_connections_without_a_window_keep_no_other_site_out(certs, name, hello):
    here = threading.Event()

    def watch(event):
        if isinstance(event, SiteChanged) and (event.site, event.state) == ("site0", "here"):
            here.set()

    settings = {"cert": certs / "coordinator.pem", "wait": 20, "on_event": watch}
    team, outcome = ct.SitesTeam(["site0", "site1"], listen="localhost:0", **settings), []

    def run():
        with suppress(ct.SiteError):
            outcome.append(ct.identify(ct.RemoteArms(3), **RUN, team=team))

    def join(site):
        with suppress(ct.SiteError):
            ct.join(f"localhost:{team.port}", ARMS, cert=certs / f"{site}.pem", give_up=15, secret=b"")

    threads = [threading.Thread(target=run)]
    threads[0].start()
    port = team.port
    time.sleep(0.2)
    peers = [ZeroWindowPeer(port, certs, name, hello=hello) for _ in range(60)]
    threads += [threading.Thread(target=join, args=[site]) for site in ("site0", "site1")]
    for thread in threads[1:]:
        thread.start()
    try:
        assert here.wait(5)
        if name == "site7":
            threads[0].join(15)
            assert outcome == [ct.identify(ARMS, **RUN)]
    finally:
        for peer in peers:
            peer.close()
        for thread in threads:
            thread.join(30)
    assert outcome == [ct.identify(ARMS, **RUN)]  # in time, the attacked site gets in as well


@pytest.fixture
def short_idle(monkeypatch):
    """Connections may be idle for half a second instead of ten."""
    assert ("grpc.max_connection_idle_ms", 10_000) in tls.server_options(keepalive=10)
    monkeypatch.setattr(tls, "_IDLE_SECONDS", 0.5)


def wait_until_closed(certs, count, *, calls):
    """Open 20 connections with one certificate, and wait until the server has closed so many, during a run."""
    closed: queue.Queue[None] = queue.Queue()

    def read(peer):
        with suppress(OSError):
            while peer.socket.recv(1 << 16):  # settings and pings, then a farewell
                pass
        peer.close()
        closed.put(None)

    with ct.SitesTeam(["site0", "site1"], listen="localhost:0", cert=certs / "coordinator.pem") as team:
        run = ct.start(ct.RemoteArms(3), **RUN, team=team)
        peers = [ZeroWindowPeer(team.port, certs, "site1", calls=calls, hello=False) for _ in range(20)]
        threads = [threading.Thread(target=read, args=[peer]) for peer in peers]
        for peer, thread in zip(peers, threads, strict=True):
            peer.socket.settimeout(GIVE_UP)
            thread.start()
        for _ in range(count):
            closed.get(timeout=GIVE_UP)
        with pytest.raises(TimeoutError):  # the run is under way: nothing was closed because it had ended
            run.result(timeout=0.01)
        run.stop()
        assert not run.result().complete
    for thread in threads:
        thread.join()


@pytest.mark.slow
@pytest.mark.usefixtures("short_idle")
def test_a_connection_without_a_call_is_closed(certs):
    wait_until_closed(certs, 20, calls=0)


def test_a_tls_handshake_that_does_not_begin_is_ended(certs, monkeypatch):
    monkeypatch.setattr(tls, "_HANDSHAKE_SECONDS", 0.3)
    with ct.SitesTeam(["site0", "site1"], listen="localhost:0", cert=certs / "coordinator.pem") as team:
        run = ct.start(ct.RemoteArms(3), **RUN, team=team)
        wait_for_port(team.port)
        with socket.create_connection(("localhost", team.port), timeout=GIVE_UP / 2) as silent:
            assert silent.recv(1) == b""  # gRPC by itself would wait for 120 seconds
        run.stop()
        assert not run.result().complete


@pytest.mark.slow
@pytest.mark.usefixtures("short_idle")
def test_of_many_connections_with_one_certificate_few_last(certs, caplog):
    """Each site may have four calls: the server closes all connections but those of four."""
    wait_until_closed(certs, 20 - MOST_CALLS, calls=1)
    gc.collect()  # tasks whose exception was not retrieved are logged
    assert [record for record in caplog.records if record.name == "asyncio"] == []
