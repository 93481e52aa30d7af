"""A site adds the noise that its owner demands, and counts what all runs spend, whatever the coordinator asks for."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import collabtop as ct
from collabtop.privacy import NoiseScale, epsilon_of
from collabtop.protocol.messages import Prune, Pull, Request
from collabtop.protocol.setup import Setup
from collabtop.teams.sites.journal import Journal
from collabtop.teams.sites.site_budget import OverBudget, SiteBudget
from collabtop.teams.sites.site_policy import noise_of
from tests.support.thread_sites import ThreadSites

RUN_ID = "0123456789abcdef" * 2
ARMS = ct.BernoulliArms(np.linspace(0.1, 0.9, 8))
RUN: dict[str, Any] = {"m": 1, "agents": 1, "horizon": 800, "algorithm": "uniform", "seed": 1}


def privacy(epsilon=1.0, unit="reward"):
    return ct.Privacy(epsilon=epsilon, delta=1e-6, unit=unit)


def run(certs, policy, *, arms=ARMS, journals=None, audit=None, secret=b"ours", **changed):
    """A run with one site under a policy; returns the result, or the errors of both sides."""
    team = ThreadSites(certs, journals=journals, joins={"site_policy": policy, "audit": audit, "secret": secret})
    try:
        return ct.identify(arms, **{**RUN, **changed}, team=team)
    except ct.SiteError as error:
        return str(error), str(team.errors[0])


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_site_adds_noise_that_the_coordinator_did_not_ask_for(certs, tmp_path):
    policy = ct.SitePolicy(privacy=privacy(0.02))
    result = run(certs, policy, audit=tmp_path / "sent.jsonl")
    sums = np.array([estimate.mean * 100 for estimate in result.estimates])
    assert result.privacy is None  # the coordinator does not know
    assert ((sums >= 0) & (sums <= 100)).all()  # the answer is one that a coordinator without privacy accepts
    assert np.abs(sums - 100 * ARMS.values).max() > 25  # otherwise 3e-6; for the rewards alone it is five deviations
    [noise] = [line for line in lines_of(tmp_path / "sent.jsonl") if line.get("event") == "noise"]
    assert noise["requested"] is False
    assert noise["epsilon"] == pytest.approx(0.02)
    assert noise["deviation"] > 25
    [noted] = [line for line in lines_of(tmp_path / "sent.jsonl") if line.get("event") == "policy"]
    assert noted["privacy"] == {"epsilon": 0.02, "delta": 1e-06, "unit": "reward"}


def test_sites_give_the_privacy_that_the_coordinator_asks_for(certs):
    result = run(certs, None, privacy=privacy(0.02))
    means = np.array([estimate.mean for estimate in result.estimates])
    assert result.privacy.epsilon == pytest.approx(0.02)
    assert means.min() < 0 or means.max() > 1  # noise is not cut off at the bounds; otherwise 3e-7
    assert np.abs(means - ARMS.values).max() > 0.25  # otherwise 1e-9


@pytest.mark.parametrize(("demanded", "asked"), [(0.5, 2.0), (2.0, 0.5), (0.5, None)])
def test_the_stronger_of_both_demands_counts(demanded, asked):
    setup = Setup(ct.Problem(n=8, m=1, agents=2, horizon=800), 1, privacy=asked and privacy(asked))
    noise = noise_of(setup, privacy(demanded), agents=1)
    assert noise.deviation == NoiseScale.of(privacy(min(demanded, asked or demanded)), 8, 800).deviation
    assert epsilon_of(noise.rho, 1e-6) <= demanded


def test_agents_of_a_site_that_share_its_examples_share_its_privacy():
    setup = Setup(ct.Problem(n=8, m=1, agents=2, horizon=800), 1)
    alone, both = (noise_of(setup, privacy(1.0, "example"), agents) for agents in (1, 2))
    assert both.variance == pytest.approx(2 * alone.variance)


def test_a_run_beyond_the_privacy_of_all_runs_is_declined_before_the_first_pull(certs, tmp_path):
    policy = ct.SitePolicy(privacy=privacy(1.0), total_epsilon=1.5)  # two runs have an epsilon of about 1.42
    audit = tmp_path / "sent.jsonl"
    for number in range(2):
        assert isinstance(run(certs, policy, journals=tmp_path / "journals", seed=number), ct.Result)
    theirs, ours = run(certs, policy, journals=tmp_path / "journals", audit=audit, seed=3)
    assert "its budget for questions, pulls or privacy in all runs is used up" in theirs
    assert "this run would exceed the privacy budget of all runs (total_epsilon)" in ours
    assert '"Answer"' not in audit.read_text()
    budget = SiteBudget(tmp_path / "journals" / "site0" / "budget.db")
    assert budget.spent_rho() == pytest.approx(2 * privacy(1.0).rho)
    budget.close()


def test_a_run_is_charged_once_and_with_one_unit(tmp_path):
    budget = SiteBudget(tmp_path / "budget.db", rho=1.0)
    for _ in range(3):
        budget.charge_privacy("a", "reward", 0.6)
    with pytest.raises(OverBudget, match="total_epsilon"):
        budget.charge_privacy("b", "reward", 0.6)
    with pytest.raises(OverBudget, match="did not have privacy of each example"):
        budget.charge_privacy("c", "example", 0.1)
    assert budget.spent_rho() == pytest.approx(0.6)
    budget.close()


def test_a_site_with_privacy_declines_algorithms_without_noise(certs):
    theirs, ours = run(certs, ct.SitePolicy(privacy=privacy()), algorithm="frugal-top-noniid", horizon=2_000)
    assert "its policy does not allow this run" in theirs
    assert "the messages of frugal-top-noniid have no noise" in ours


def test_noise_at_a_site_is_not_the_coordinators():
    """The coordinator knows the seed: with it alone, it cannot compute the noise, but the site repeats its own."""
    setup = Setup(ct.Problem(n=8, m=1, agents=1, horizon=8_000), 7, privacy=privacy(1.0))

    class Same(ct.Arms):
        def pull(self, arms, times, draws):
            return np.full(len(arms), 50.0)

    def answers(secret):
        agent = Journal(None, RUN_ID, setup, [0], Same(8), 1, secret=secret).agents[0]
        prune = Prune(1, np.array([4, 4]), np.array([100, 200]))
        requests = [Request(0, 1, (Pull(None, np.array([100])),)), Request(0, 2, (prune,))]
        replies: list[Any] = [agent.answer(request).answer for request in requests]
        return [answer.means.tolist() for answer in replies]

    assert answers(b"ours") == answers(b"ours")
    assert len({str(answers(secret)) for secret in (b"ours", b"theirs", b"", None)}) == 4


def test_an_empty_secret_is_refused_with_privacy(certs):
    with pytest.raises(ct.InputError, match="secret is empty, but with privacy it must not be") as caught:
        run_join(certs, ARMS, ct.SitePolicy(privacy=privacy()), secret=b"")
    assert caught.value.argument == "secret"
    theirs, ours = run(certs, None, privacy=privacy(), secret=b"")
    assert "it cannot give the privacy of this run" in theirs
    assert "secret is empty" in ours


def run_join(certs, arms, policy, **settings):
    ct.join("localhost:1", arms, cert=certs / "site0.pem", site_policy=policy, give_up=0.1, **settings)


def test_arms_that_cannot_be_private_are_refused(certs):
    with pytest.raises(ct.InputError, match="BernoulliArms may use an example more than once"):
        run_join(certs, ARMS, ct.SitePolicy(privacy=privacy(1.0, "example")))
    remote = ct.RemoteArms(8)

    class Mistaken(ThreadSites):
        def _join(self, name, arms, **more):
            super()._join(name, ARMS, **more)

    team = Mistaken(certs, joins={"secret": None})
    with pytest.raises(ct.SiteError, match="it cannot give the privacy of this run"):
        ct.identify(remote, **RUN, privacy=privacy(1.0, "example"), team=team)
    assert "BernoulliArms may use an example more than once" in str(team.errors[0])


def test_with_privacy_examples_in_a_common_order_are_accepted(certs, tmp_path):
    arms = ct.DatasetArms(list(range(4)), list(range(60)), lambda candidate, example: example % 4 < candidate)
    policy = ct.SitePolicy(privacy=privacy(20.0, "example"), min_batch=20)
    result = run(certs, policy, arms=arms, horizon=240, journals=tmp_path, privacy=privacy(20.0, "example"))
    assert result.top == ["3"]
    setup = Setup(ct.Problem(n=4, m=1, agents=1, horizon=480), 7, privacy=privacy(20.0, "example"))
    agent = Journal(None, RUN_ID, setup, [0], arms, 20).agents[0]
    agent.answer(Request(0, 1, (Pull(None, np.array([40])),)))
    with pytest.raises(ct.ProtocolError, match="an example would be used twice"):
        agent.answer(Request(0, 2, (Pull(None, np.array([21])),)))


def test_a_policy_file_with_privacy(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text('total_epsilon = 3.0\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\nunit = "example"\n')
    assert ct.read_site_policy(path) == ct.SitePolicy(privacy=privacy(1.0, "example"), total_epsilon=3.0)
    for text, message in [
        ("total_epsilon = 3.0", "total_epsilon only applies with privacy"),
        ("total_epsilon = -1.0", "total_epsilon is -1.0, but a positive number is needed"),
        ("[privacy]\nepsilon = 1.0", "missing required field `delta`"),
        ('[privacy]\nepsilon = 0.0\ndelta = 1e-6\nunit = "reward"', "epsilon is 0.0, but a positive number is needed"),
    ]:
        path.write_text(text)
        with pytest.raises(ct.FileError, match=message):
            ct.read_site_policy(path)
