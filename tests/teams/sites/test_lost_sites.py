"""A site that is lost for good: the run fails and can be resumed, or continues without the site and reports it."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import collabtop as ct
from collabtop.events import SiteChanged
from collabtop.protocol.agent import Agent
from collabtop.protocol.messages import CoarseMeans, Cut, Deal, HandOver, Prune, Pull, PullOpen, Sample
from collabtop.runlog.file import read_log
from collabtop.runlog.format import Finished
from collabtop.stats import trimmed_mean
from collabtop.testing import ConstantArms
from tests.support.thread_sites import ThreadSites

SPREAD = ConstantArms(np.random.default_rng(2).permutation(64) / 64)
MIXED = ConstantArms(np.random.default_rng(3).integers(0, 1024, (12, 4)) / 1024)


class Losing(ct.LocalTeam):
    """Loses agents when a question of a given kind is asked for the n-th time, as a team of sites may."""

    tolerates_loss = True

    def __init__(self, kind, nth=1, agents=(1,)):
        self.kind, self.nth, self.doomed, self.asked = kind, nth, set(agents), 0
        self.lost = set()

    def deliver(self, requests):
        if any(isinstance(request.messages[-1], self.kind) for request in requests):
            self.asked += 1
        assert not self.lost & {request.agent for request in requests}, "a lost agent was asked again"
        if self.asked >= self.nth:
            self.lost |= self.doomed & {request.agent for request in requests}
        return super().deliver([request for request in requests if request.agent not in self.lost])


@pytest.mark.parametrize("schedule", ["paper", "full"])
@pytest.mark.parametrize("agents", [(1,), (0, 3)])
@pytest.mark.parametrize(
    ("kind", "nth"), [(Deal, 1), (Sample, 1), (Sample, 2), (Cut, 1), (Cut, 2), (HandOver, 1), (Pull, 1), (Pull, 2)]
)
def test_collab_top_iid_reclaims_the_arms_of_a_lost_agent(kind, nth, agents, schedule):
    team = Losing(kind, nth, agents)
    algorithm = ct.CollabTopIID(schedule=schedule)
    result = ct.identify(SPREAD, 9, agents=4, horizon=9_000, algorithm=algorithm, seed=1, team=team)
    assert result.lost == agents
    assert sorted(SPREAD.means[result.top_indices]) == sorted(SPREAD.means)[-9:]
    assert result.time <= 9_000
    assert f"{len(agents)} of 4 agents were lost for good" in result.warnings[0]


@pytest.mark.parametrize(("kind", "nth"), [(Prune, 1), (Pull, 1), (Pull, 2)])
def test_frugal_top_reclaims_the_arms_of_a_lost_agent(kind, nth):
    arms = ConstantArms(np.random.default_rng(2).permutation(256) / 256)
    team = Losing(kind, nth, agents=(2,))
    result = ct.identify(arms, 1, agents=8, horizon=9_000, algorithm="frugal-top", seed=1, team=team)
    assert result.lost == (2,)
    assert result.top_indices == [int(np.argmax(arms.means))]
    assert result.time <= 9_000


def test_a_horizon_that_is_too_short_to_replace_an_agent_is_reported():
    smallest = ct.FrugalTop().smallest_horizon(ct.Problem(256, 1, 8, 1))
    arms = ConstantArms(np.random.default_rng(2).permutation(256) / 256)
    with pytest.raises(ct.SiteError, match=r"replacing its pulls takes [\d,]+ time steps, but only [\d,]+ are left"):
        ct.identify(
            arms, 1, agents=8, horizon=smallest, algorithm="frugal-top", seed=1, team=Losing(Prune, agents=range(6))
        )


def test_a_fully_planned_horizon_is_too_short_to_replace_two_of_four_agents():
    with pytest.raises(
        ct.SiteError, match=r"replacing its pulls takes 1 time steps, but only 0 are left until the horizon"
    ):
        ct.identify(
            SPREAD,
            9,
            agents=4,
            horizon=9_000,
            algorithm=ct.CollabTopIID(schedule="full"),
            seed=1,
            team=Losing(Pull, 3, (0, 3)),
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
    last = [estimate for estimate in result.estimates if estimate.round == len(result.rounds) - 1]
    assert last
    for estimate in last:  # arms that were still open when the agent was lost
        assert estimate.mean == pytest.approx(remaining[estimate.arm], abs=1e-6)
    if nth == 1:
        assert sorted(result.top_indices) == sorted(np.argsort(-remaining)[:2].tolist())


def test_robust_top_trims_the_means_of_the_agents_that_remain():
    result = ct.identify(MIXED, 2, horizon=8_000, algorithm="robust-top", seed=1, team=Losing(PullOpen, 1, agents=(1,)))
    remaining = np.median(MIXED.means[:, [0, 2, 3]], axis=1)
    assert sorted(result.top_indices) == sorted(np.argsort(-remaining)[:2].tolist())


class Noting(Losing):
    """Notes which agents are asked in each exchange, and the kinds of all messages."""

    def open(self, arms, setup, recorder):
        super().open(arms, setup, recorder)
        self.rounds, self.kinds = [], set()

    def deliver(self, requests):
        self.rounds.append([request.agent for request in requests])
        replies = super().deliver(requests)
        self.kinds |= {type(message) for request in requests for message in request.messages}
        self.kinds |= {type(reply.answer) for reply in replies}
        return replies


@pytest.mark.parametrize("lost", [(), (1,), (1, 4)])
def test_every_decision_of_robust_top_rests_on_the_means_of_all_agents_that_are_left(lost):
    """So no arm is held, pruned or settled by an agent alone, and nothing is left for others to check by sampling."""
    everyone, liars = range(7), 2
    remaining = [agent for agent in everyone if agent not in lost]  # at least 2 f + 1
    arms = ConstantArms(np.random.default_rng(4).integers(0, 1024, (24, 7)) / 1024)
    team = Noting(PullOpen, 2, agents=lost)
    result = ct.identify(arms, 2, horizon=8_000, robust=liars, seed=1, team=team)
    assert team.kinds == {PullOpen, CoarseMeans}  # all of them pull all open arms, and answer with their means
    assert team.rounds == [[*everyone]] * 2 + [remaining] * (len(result.rounds) - 2)
    assert {estimate.round for estimate in result.estimates} == set(range(len(result.rounds)))
    for estimate in result.estimates:
        counted = everyone if estimate.round == 0 else remaining  # who is lost in a round does not count in it
        assert estimate.mean == pytest.approx(trimmed_mean(arms.means[estimate.arm, counted], liars), abs=1e-6)
    assert result.lost == lost


def test_robust_top_stops_when_too_few_agents_remain():
    with pytest.raises(ct.SiteError, match="2 agents are left, but at least 3 are needed if 1 may lie"):
        ct.identify(MIXED, 2, horizon=8_000, robust=1, seed=1, team=Losing(PullOpen, 2, agents=(1, 2)))


SURVIVORS = [name for name in ct.available_algorithms() if ct.make_algorithm(name).survives_loss]


def test_an_algorithm_that_cannot_continue_is_rejected_at_the_start(certs):
    team = ct.SitesTeam(["site0", ("site1", 3)], listen="localhost:0", cert=certs / "coordinator.pem", on_lost="go-on")
    with pytest.raises(ct.SettingError, match="on_lost is 'go-on', but kzz cannot continue without an agent") as caught:
        ct.identify(ct.RemoteArms(64), 1, agents=4, horizon=9_000, algorithm="kzz", team=team)
    names = str(caught.value).split("one of ")[1]
    assert sorted(re.split(", | and ", names)) == sorted(SURVIVORS)


class Leaves(ct.Arms):
    """Arms whose site fails without notice at a certain batch of pulls."""

    def __init__(self, arms, batch):
        super().__init__(arms.n, agents=arms.agents)
        self.arms, self.batch, self.batches = arms, batch, 0

    def identity(self):
        return self.arms.identity()

    def pull(self, arms, times, draws):
        self.batches += 1
        if self.batches == self.batch:
            raise RuntimeError("the power is out")
        return self.arms.pull(arms, times, draws)


class LastSiteLeaves(ThreadSites):
    """Sites over real connections, the last of which fails."""

    def __init__(self, certs, *, batch, **settings):
        super().__init__(certs, **settings)
        self.batch = batch

    def _join(self, name, arms, **more):
        super()._join(name, Leaves(arms, self.batch) if name == "site3" else arms, **more)


class LastAgentLeaves(ct.LocalTeam):
    """A local team whose last agent fails in the same way."""

    tolerates_loss = True

    def __init__(self, batch):
        self.batch = batch

    def open(self, arms, setup, recorder):
        super().open(arms, setup, recorder)
        self._members[3] = Agent(3, Leaves(arms, self.batch), setup)

    def deliver(self, requests):
        replies = []
        for request in requests:
            with suppress(RuntimeError):
                replies.append(self._members[request.agent].answer(request))
        return replies


LEAVES_AT = {
    "uniform": 1,
    "frugal-top": 2,
    "frugal-top-noniid": 3,
    "robust-top": 3,
    "collab-top-iid": 3,
    "collab-top-noniid": 3,
}
"""The batch at which the last site fails; in a local phase if there is one."""


@pytest.mark.parametrize("algorithm", SURVIVORS)
def test_a_run_continues_without_a_real_site_that_fails(certs, algorithm, tmp_path):
    arms = MIXED if "noniid" in algorithm else SPREAD
    run = {"m": 2, "agents": 4, "horizon": 9_000, "algorithm": algorithm, "seed": 1}
    log, events, batch = tmp_path / "run.ctlog", [], LEAVES_AT[algorithm]
    team = LastSiteLeaves(certs, batch=batch, grace=0.5, on_lost="go-on", on_event=events.append)
    result = ct.identify(arms, **run, team=team, checkpoint=log)
    assert result.lost == (3,)
    assert [event.site for event in events if isinstance(event, SiteChanged) and event.state == "lost"] == ["site3"]
    expected = ct.identify(arms, **run, team=LastAgentLeaves(batch))
    assert result == expected
    assert result.ledger == expected.ledger
    # A restarted coordinator has the answer in its log and needs no site.
    names = [f"site{number}" for number in range(4)]
    again = ct.SitesTeam(names, listen="localhost:0", cert=certs / "coordinator.pem", on_lost="go-on")
    assert ct.identify(arms, **run, team=again, checkpoint=log) == result


SMALLER: dict[str, Any] = {"m": 2, "agents": 4, "horizon": 9_000, "algorithm": "collab-top-iid", "seed": 1}
"""The rehearsal of this run has no batch below 46 pulls; without site3 from its third batch on, some have 30."""


def test_smaller_batches_after_a_loss_are_answered_if_they_are_large_enough(certs):
    team = LastSiteLeaves(certs, batch=3, grace=0.5, on_lost="go-on", min_batch=20)
    result = ct.identify(SPREAD, **SMALLER, team=team)
    assert result.lost == (3,)
    assert result == ct.identify(SPREAD, **SMALLER, team=LastAgentLeaves(3))


def test_a_run_whose_sites_decline_smaller_batches_after_a_loss_ends_with_their_reasons(certs, tmp_path):
    team = LastSiteLeaves(certs, batch=3, grace=0.5, on_lost="go-on", min_batch=40, journals=tmp_path)
    with pytest.raises(ct.SiteError, match=r"^no site is left: ") as caught:
        ct.identify(SPREAD, **SMALLER, team=team, checkpoint=tmp_path / "run.ctlog")
    *declined, lost = re.split("; (?=site)", str(caught.value).removeprefix("no site is left: "))
    assert len(declined) == 3
    for number, message in enumerate(declined):
        reason = r"the schedule has a batch of size \d+, below the site's --min-batch"
        assert re.match(rf"site site{number} stopped taking part: {reason}", message)
    assert lost.startswith("site site3 has been disconnected for 0.5 s")
    assert sum("but min_batch is 40" in str(error) for error in team.errors) == 3
    assert not any(isinstance(record, Finished) for record in read_log(tmp_path / "run.ctlog"))


LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("kzz-balanced", "confident-top", "frugal-top-noniid")]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["collab-top-iid", "kzz", *LONG])
def test_by_default_the_run_fails_and_continues_from_its_log_when_the_site_is_back(certs, tmp_path, algorithm):
    run = {"m": 2, "agents": 4, "horizon": 9_000, "algorithm": algorithm, "seed": 1}
    log = tmp_path / "run.ctlog"
    with pytest.raises(
        ct.SiteError, match=r"site site3 has been disconnected for 0.5 s: start the run again when it is back"
    ):
        ct.identify(SPREAD, **run, checkpoint=log, team=LastSiteLeaves(certs, batch=3, grace=0.5, journals=tmp_path))
    result = ct.identify(SPREAD, **run, checkpoint=log, team=ThreadSites(certs, journals=tmp_path))
    expected = ct.identify(SPREAD, **run)
    assert result == expected
    assert result.ledger == expected.ledger
