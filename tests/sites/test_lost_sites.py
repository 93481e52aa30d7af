"""A site that is gone for good: the run fails so that it can be resumed, or goes on without it and says so."""

from __future__ import annotations

import numpy as np
import pytest
from in_threads import ThreadSites

import collabtop as ct
from collabtop.events import SiteChanged
from collabtop.protocol.messages import Cut, Deal, HandOver, Prune, Pull, PullOpen, Sample
from collabtop.testing import ConstantArms

SPREAD = ConstantArms(np.random.default_rng(2).permutation(64) / 64)
MIXED = ConstantArms(np.random.default_rng(3).integers(0, 1024, (12, 4)) / 1024)


class Losing(ct.LocalTeam):
    """Loses agents when they are asked a question of some kind for the n-th time, as a team of sites may."""

    may_lose = True

    def __init__(self, kind, nth=1, agents=(1,)):
        self.kind, self.nth, self.losing, self.asked = kind, nth, set(agents), 0

    def deliver(self, requests):
        if any(isinstance(request.messages[-1], self.kind) for request in requests):
            self.asked += 1
        gone = self.losing if self.asked >= self.nth else set()
        assert not self.lost & {request.agent for request in requests}, "a lost agent was asked again"
        return super().deliver([request for request in requests if request.agent not in gone])


@pytest.mark.parametrize("schedule", ["paper", "full"])
@pytest.mark.parametrize("agents", [(1,), (0, 3)])
@pytest.mark.parametrize(
    ("kind", "nth"), [(Deal, 1), (Sample, 1), (Sample, 2), (Cut, 1), (Cut, 2), (HandOver, 1), (Pull, 1), (Pull, 2)]
)
def test_collab_top_iid_takes_back_what_a_lost_agent_was_dealt(kind, nth, agents, schedule):
    team = Losing(kind, nth, agents)
    algorithm = ct.CollabTopIID(schedule=schedule)
    result = ct.identify(SPREAD, 9, agents=4, horizon=9_000, algorithm=algorithm, seed=1, team=team)
    assert result.lost == agents
    assert sorted(SPREAD.means[result.top_indices]) == sorted(SPREAD.means)[-9:]
    assert result.time <= 9_000
    assert f"{len(agents)} of 4 agents were lost for good" in result.warnings[0]


@pytest.mark.parametrize(("kind", "nth"), [(Prune, 1), (Pull, 1), (Pull, 2)])
def test_frugal_top_takes_back_what_a_lost_agent_was_dealt(kind, nth):
    arms = ConstantArms(np.random.default_rng(2).permutation(256) / 256)
    team = Losing(kind, nth, agents=(2,))
    result = ct.identify(arms, 1, agents=8, horizon=9_000, algorithm="frugal-top", seed=1, team=team)
    assert result.lost == (2,)
    assert result.top_indices == [int(np.argmax(arms.means))]
    assert result.time <= 9_000


def test_a_horizon_that_cannot_pay_for_it_is_said():
    smallest = ct.FrugalTop().smallest_horizon(ct.Problem(256, 1, 8, 1))
    arms = ConstantArms(np.random.default_rng(2).permutation(256) / 256)
    with pytest.raises(ct.SiteError, match=r"what it left undone takes [\d,]+ time steps .* only [\d,]+ are left"):
        ct.identify(
            arms, 1, agents=8, horizon=smallest, algorithm="frugal-top", seed=1, team=Losing(Prune, agents=range(6))
        )


@pytest.mark.parametrize(
    ("algorithm", "kind", "nth"),
    [
        ("uniform", Pull, 1),
        ("collab-top-noniid", Pull, 1),
        ("collab-top-noniid", Pull, 3),
        ("frugal-top-noniid", PullOpen, 1),
        ("frugal-top-noniid", PullOpen, 2),
    ],
)
def test_non_iid_values_are_averages_over_the_agents_that_remain(algorithm, kind, nth):
    result = ct.identify(MIXED, 2, horizon=8_000, algorithm=algorithm, seed=1, team=Losing(kind, nth, agents=(1,)))
    remaining = MIXED.means[:, [0, 2, 3]].mean(axis=1)
    last = [one for one in result.estimates if one.round == len(result.rounds) - 1]
    assert last
    for one in last:  # what was still open when the agent was lost
        assert one.mean == pytest.approx(remaining[one.arm], abs=1e-6)
    if nth == 1:
        assert sorted(result.top_indices) == sorted(np.argsort(-remaining)[:2].tolist())


def test_an_algorithm_that_cannot_go_on_is_refused_before_anything_is_pulled():
    with pytest.raises(ct.SettingError, match="on_lost is 'go-on', but kzz cannot go on without an agent"):
        ct.identify(SPREAD, 1, agents=4, horizon=9_000, algorithm="kzz", team=Losing(Pull))


class SomeLeave(ThreadSites):
    """Sites of which the last one's function ends its process's part at its third batch, without a word."""

    def _join(self, name, arms):
        if name == "site3":
            arms = Leaves(arms)
        super()._join(name, arms)


class Leaves(ct.Arms):
    def __init__(self, arms):
        super().__init__(arms.n, agents=arms.agents)
        self.arms, self.batches = arms, 0

    def identity(self):
        return self.arms.identity()

    def pull(self, arms, times, draws):
        self.batches += 1
        if self.batches == 3:
            raise RuntimeError("the power is out")
        return self.arms.pull(arms, times, draws)


@pytest.mark.parametrize(("algorithm", "arms"), [("collab-top-iid", SPREAD), ("collab-top-noniid", MIXED)])
def test_a_real_site_that_leaves_is_done_without(certs, algorithm, arms, tmp_path):
    told = []
    team = SomeLeave(certs, grace=1, on_lost="go-on", on_event=told.append)
    result = ct.identify(
        arms, 2, agents=4, horizon=9_000, algorithm=algorithm, seed=1, team=team, checkpoint=tmp_path / "run.ctlog"
    )
    assert result.lost == (3,)
    assert [event.site for event in told if isinstance(event, SiteChanged) and event.state == "lost"] == ["site3"]
    # A coordinator that starts again knows it from its log, and needs no site to tell the end again.
    again = ct.SitesTeam(
        [f"site{k}" for k in range(4)], listen="localhost:0", cert=certs / "coordinator.pem", on_lost="go-on"
    )
    repeated = ct.identify(
        arms, 2, agents=4, horizon=9_000, algorithm=algorithm, seed=1, team=again, checkpoint=tmp_path / "run.ctlog"
    )
    assert repeated == result


def test_by_default_the_run_fails_and_goes_on_from_its_log_when_the_site_is_back(certs, tmp_path):
    run = {"m": 2, "agents": 4, "horizon": 9_000, "algorithm": "collab-top-iid", "seed": 1}
    log = tmp_path / "run.ctlog"
    with pytest.raises(ct.SiteError, match="site site3 has been gone for 1 s; when it is back"):
        ct.identify(SPREAD, **run, checkpoint=log, team=SomeLeave(certs, grace=1, journals=tmp_path))
    result = ct.identify(SPREAD, **run, checkpoint=log, team=ThreadSites(certs, journals=tmp_path))
    expected = ct.identify(SPREAD, **run)
    assert result == expected
    assert result.ledger == expected.ledger
