"""Rewards in the user's unit at remote sites."""

from __future__ import annotations

import numpy as np
import pytest

import collabtop as ct
from collabtop.protocol.messages import CoarseMeans, Means, Pull, PullOpen, Reply, Request
from collabtop.protocol.packing import Packed
from collabtop.teams.sites.validation import PublicState
from tests.support.thread_sites import ThreadSites


def latency(candidate, rng):
    return candidate + 10 * rng.standard_normal()


@pytest.mark.parametrize("bounds", [None, (-500, 1_000)])
@pytest.mark.parametrize("algorithm", ["frugal-top", "frugal-top-noniid", "collab-top-iid"])
def test_a_run_over_sites_is_the_local_run(certs, bounds, algorithm):
    arms = ct.FunctionArms(range(100, 340, 20), latency, direction="minimize", bounds=bounds)
    options = {"agents": 2, "horizon": 400, "algorithm": algorithm, "seed": 4}
    team = ThreadSites(certs)
    assert ct.identify(arms, 2, **options, team=team) == ct.identify(arms, 2, **options)
    assert not team.errors


@pytest.mark.slow
def test_a_site_with_a_different_unit_declines(certs):
    class OtherUnit(ThreadSites):
        def _join(self, name, arms, **more):
            own = ct.FunctionArms(range(3), latency, direction="minimize", bounds=(0, 1))
            super()._join(name, own if name == "site1" else arms, **more)

    arms, team = ct.FunctionArms(range(3), latency, direction="minimize", bounds=None), OtherUnit(certs)
    with pytest.raises(ct.SiteError, match="site1 declined to take part: its rewards have a different direction"):
        ct.identify(arms, 1, agents=2, horizon=30, team=team)
    own = "rewards of the run: minimize, no bounds; rewards of this site: minimize, bounds 0 to 1"
    assert any(own in str(error) for error in team.errors)


@pytest.mark.parametrize(
    ("question", "answer", "error"),
    [
        (Pull(None, np.array([5])), Means(np.array([-7.5, np.nan])), "not finite"),
        (Pull(None, np.array([5])), Means(np.array([np.inf, 1.0])), "not finite"),
        (
            PullOpen(None, 5, 0.1),
            CoarseMeans(5, False, Packed.of(np.array([1, 2]), 5), None),
            "rounded means of rewards",
        ),
    ],
)
def test_answers_without_bounds_are_checked_too(question, answer, error):
    state = PublicState(0, ct.Problem(n=2, m=1, agents=1, horizon=20, bounded=False))
    request = Request(0, 1, (question,))
    with pytest.raises(ct.ProtocolError, match=error):
        state.check_reply(request, Reply(0, 1, 10, answer))
    state.check_reply(Request(0, 1, (Pull(None, np.array([5])),)), Reply(0, 1, 10, Means(np.array([-7.5, 1e9]))))
