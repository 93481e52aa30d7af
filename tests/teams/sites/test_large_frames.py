"""Messages that are larger than gRPC's limit are sent in pieces."""

from typing import Any

import numpy as np

import collabtop as ct
from tests.support.thread_sites import ThreadSites


def test_means_of_a_hundred_thousand_arms_are_sent(certs):
    arms = ct.BernoulliArms(np.random.default_rng(1).uniform(0, 1, 100_000))
    run: dict[str, Any] = {"m": 3, "agents": 2, "horizon": 300_000, "algorithm": "uniform", "seed": 1}
    result = ct.identify(arms, **run, team=ThreadSites(certs))
    assert result.top == ct.identify(arms, **run).top
    assert result.ledger.transport.bytes > 1_600_000
