"""One certificate cannot keep the other sites out, however many connections and calls it opens."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any

import pytest

import collabtop as ct
from collabtop.events import SiteChanged
from collabtop.teams.sites.port import MOST_CALLS
from tests.support.zero_window import ZeroWindowPeer

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


@pytest.mark.slow
def test_a_connection_without_a_call_is_closed(certs):
    with ct.SitesTeam(["site0"], listen="localhost:0", cert=certs / "coordinator.pem", wait=15) as team:
        run = threading.Thread(target=lambda: _fails(team))
        run.start()
        time.sleep(0.5)
        idle = [ZeroWindowPeer(team.port, certs, "site0", calls=0) for _ in range(20)]
        end = time.monotonic() + 14
        for peer in idle:
            peer.socket.settimeout(max(0.1, end - time.monotonic()))
            while peer.socket.recv(1 << 16):  # settings, then a farewell
                pass
            peer.close()
        run.join(40)


def _fails(team, agents=1):
    with pytest.raises(ct.SiteError):
        ct.identify(ct.RemoteArms(3), **{**RUN, "agents": agents}, team=team)


@pytest.mark.slow
def test_of_many_connections_with_one_certificate_few_last(certs):
    """Each site may have four calls. A connection whose calls have ended is closed within twenty seconds."""
    with ct.SitesTeam(["site0", "site1"], listen="localhost:0", cert=certs / "coordinator.pem", wait=30) as team:
        run = threading.Thread(target=lambda: _fails(team, agents=2))
        run.start()
        time.sleep(0.5)
        peers = [ZeroWindowPeer(team.port, certs, "site1", calls=1, hello=False) for _ in range(20)]
        end = time.monotonic() + 28
        assert sum(_is_open(peer, end) for peer in peers) <= MOST_CALLS
        for peer in peers:
            peer.close()
        run.join(40)


def _is_open(peer, end):
    """Whether the server keeps a connection until this time."""
    try:
        peer.socket.settimeout(max(0.1, end - time.monotonic()))
        while peer.socket.recv(1 << 16):
            peer.socket.settimeout(max(0.1, end - time.monotonic()))
    except TimeoutError:
        return True
    return False
