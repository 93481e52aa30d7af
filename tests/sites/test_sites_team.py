"""Sites give the runs of the local team, word for word, and keep every law that teams keep."""

from __future__ import annotations

import numpy as np
import pytest
from in_threads import ThreadSites

import collabtop as ct
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
