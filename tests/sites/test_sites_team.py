"""Sites give the runs of the local team, word for word, and keep every law that teams keep."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from in_threads import ThreadSites
from proxy import Proxy

import collabtop as ct
from collabtop.events import SiteChanged
from collabtop.testing import check_team


def test_fifty_sites_finish_a_run(certs):
    arms = ct.BernoulliArms(np.random.default_rng(1).uniform(0.2, 0.8, 600))
    run = {"m": 5, "agents": 50, "horizon": 2_000, "algorithm": "frugal-top", "seed": 1}
    result = ct.identify(arms, **run, team=ThreadSites(certs))
    expected = ct.identify(arms, **run)
    assert result == expected
    assert result.ledger == expected.ledger


FEW = ["frugal-top", "collab-top-iid", "frugal-top-noniid"]


@pytest.mark.parametrize("algorithms", [FEW, pytest.param(None, marks=pytest.mark.long)], ids=["few", "all"])
def test_the_team_keeps_the_laws(certs, algorithms):
    check_team(lambda: ThreadSites(certs), algorithms=algorithms)


def test_a_free_port_is_taken_when_it_is_asked_for_and_given_back(certs):
    def team(port):
        return ct.SitesTeam(["site0"], listen=f"localhost:{port}", cert=certs / "coordinator.pem", wait=0.1)

    def run(team):
        ct.identify(ct.RemoteArms(3), 1, agents=1, horizon=30, seed=1, team=team)

    first = team(0)
    second = team(first.port)
    assert first.port == second.port > 0
    with pytest.raises(ct.InputError, match="nothing can listen there: is the port in use"):
        run(second)
    first.close()
    with pytest.raises(ct.SiteError, match="did not come"):
        run(second)


class LastToAnswer(ct.BernoulliArms):
    """Arms of a site that answers when another one has answered, and has lost its connection after that."""

    def pull(self, arms, times, draws):
        while self.team._coordinator._states[1].last < 1:
            time.sleep(0.01)
        self.link.cut()
        assert self.gone.wait(30)
        threading.Timer(0.5, self.link.heal).start()
        return super().pull(arms, times, draws)


def test_a_site_that_is_gone_when_the_answer_is_found_is_told_when_it_is_back(certs):
    arms = LastToAnswer([0.9, 0.1])
    arms.gone = threading.Event()

    def watch(event):
        if isinstance(event, SiteChanged) and (event.site, event.state) == ("site1", "gone"):
            arms.gone.set()

    run = {"m": 1, "agents": 2, "horizon": 60, "algorithm": "uniform", "seed": 1}
    arms.team = ct.SitesTeam(
        ["site0", "site1"], listen="localhost:0", cert=certs / "coordinator.pem", keepalive=0.5, on_event=watch
    )
    arms.link = Proxy(arms.team.port)
    sites = [(arms.team.port, arms, "site0"), (arms.link.port, ct.BernoulliArms(arms.means), "site1")]
    with ThreadPoolExecutor() as pool:
        joined = [
            pool.submit(ct.join, f"localhost:{port}", theirs, cert=certs / f"{name}.pem", give_up=60)
            for port, theirs, name in sites
        ]
        result = ct.identify(ct.RemoteArms(2), **run, team=arms.team)
        assert [one.result(60).answers for one in joined] == [1, 1]
    arms.link.close()
    assert result == ct.identify(ct.BernoulliArms(arms.means), **run)
