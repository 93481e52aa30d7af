"""Repeated, delayed and reordered messages change nothing."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import collabtop as ct
from tests.support.middlebox import Middlebox

ARMS = ct.BernoulliArms(np.random.default_rng(3).uniform(0.2, 0.8, 60))


@pytest.mark.parametrize("algorithm", ["collab-top-iid", "frugal-top"])
def test_duplicated_delayed_and_reordered_messages_give_the_undisturbed_run(certs, algorithm):
    run = {"m": 3, "horizon": 3_000, "algorithm": algorithm, "seed": 2, "agents": 3}
    # One site has two agents, so that their messages can be reordered on one connection.
    team = ct.SitesTeam([("site0", 2), "site1"], listen="localhost:0", cert=certs / "coordinator.pem", wait=20)
    boxes = [Middlebox(team.port, certs, f"site{number}", seed=number) for number in range(2)]
    sites = [
        threading.Thread(
            target=ct.join,
            args=[f"localhost:{box.port}", ARMS],
            kwargs={"cert": certs / f"site{number}.pem", "min_batch": 1, "secret": b""},
        )
        for number, box in enumerate(boxes)
    ]
    for site in sites:
        site.start()
    result = ct.identify(ct.RemoteArms(60), **run, team=team)
    for site in sites:
        site.join(20)
        assert not site.is_alive()
    for box in boxes:
        box.close()
    expected = ct.identify(ARMS, **run)
    assert result == expected
    assert result.ledger == expected.ledger
    assert sum(box.repeats for box in boxes) >= 5
