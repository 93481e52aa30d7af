"""A run with two sites, one of which is disconnected when the answer is found."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import collabtop as ct
from collabtop.events import SiteChanged
from tests.support.proxy import Proxy

MEANS = [0.9, 0.1]
RUN: dict[str, Any] = {"m": 1, "agents": 2, "horizon": 60, "algorithm": "uniform", "seed": 1}


class LastToAnswer(ct.BernoulliArms):
    """Arms of site 0, which answers only after site 1 has answered and lost its connection."""

    def __init__(self, team, link, disconnected, heal_after):
        super().__init__(MEANS)
        self.team, self.link, self.disconnected, self.heal_after = team, link, disconnected, heal_after

    def pull(self, arms, times, draws):
        while self.team._server._states[1].last_request < 1:
            time.sleep(0.01)
        self.link.cut()
        assert self.disconnected.wait(30)
        if self.heal_after is not None:
            threading.Timer(self.heal_after, self.link.heal).start()
        return super().pull(arms, times, draws)


@contextmanager
def site1_disconnected_at_the_end(certs, *, heal_after=None, give_up=60):
    """Yield a team for `RUN` whose second site loses its connection after its answer, and the sites' futures."""
    disconnected = threading.Event()

    def watch(event):
        if isinstance(event, SiteChanged) and (event.site, event.state) == ("site1", "gone"):
            disconnected.set()

    settings = {"listen": "localhost:0", "cert": certs / "coordinator.pem", "keepalive": 0.5, "on_event": watch}
    team = ct.SitesTeam(["site0", "site1"], **settings)
    link = Proxy(team.port)
    last = LastToAnswer(team, link, disconnected, heal_after)
    sites = [(team.port, last, "site0"), (link.port, ct.BernoulliArms(MEANS), "site1")]
    patience = {"give_up": give_up, "keepalive": 0.5}
    with ThreadPoolExecutor() as pool:
        joined = [
            pool.submit(ct.join, f"localhost:{port}", arms, cert=certs / f"{name}.pem", secret=b"", **patience)
            for port, arms, name in sites
        ]
        yield team, joined
    link.close()
