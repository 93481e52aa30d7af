"""A site answers what its owner's policy allows: algorithms, rounds, batches, and a budget over all runs."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

import collabtop as ct
from collabtop.algorithms import registry
from collabtop.algorithms.registry import make_algorithm
from collabtop.cli import app
from collabtop.protocol.messages import Deal, HandOver, Prune, Pull, PullOpen, Request
from collabtop.teams.sites.audit import Audit
from collabtop.teams.sites.rehearsal import rehearse
from collabtop.teams.sites.site_budget import OverBudget, SiteBudget
from collabtop.teams.sites.site_policy import PolicyError, PolicyGuard
from tests.support.accepted import accepted_setting
from tests.support.site_processes import CANDIDATES, Trial
from tests.support.thread_sites import ThreadSites

RUN_ID = "0123456789abcdef" * 2
ARMS = ct.BernoulliArms(np.linspace(0.1, 0.9, 8), labels=[f"drug {number}" for number in range(8)])
RUN: dict[str, Any] = {"m": 1, "agents": 1, "horizon": 400, "algorithm": "uniform", "seed": 1}


def run(certs, policy, *, journals=None, audit=None, **changed):
    """A run with one site under a policy; returns the result, or the errors of both sides."""
    team = ThreadSites(certs, journals=journals, joins={"site_policy": policy, "audit": audit, "secret": None})
    try:
        return ct.identify(ARMS, **{**RUN, **changed}, team=team)
    except ct.SiteError as error:
        return str(error), str(team.errors[0])


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


# -- the file


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rounds = 0", "rounds is 0, but a whole number of at least 1 is needed"),
        ("min_batch = -3", "min_batch is -3, but a whole number of at least 1 is needed"),
        ("questions = 1.5", "Expected `int | null`, got `float` - at `$.questions`"),
        ('algorithms = ["ucb"]', "algorithms is 'ucb', but only these are known: frugal-top, "),
        ("algorithms = []", "algorithms is empty, so no run would be allowed"),
        ("coordinators = []", "coordinators is empty, so no run would be allowed"),
        ("min_batch = 20\npulls_per_candidate = 19", "pulls_per_candidate is 19, but a batch of at least 20 is needed"),
        ('total_epsilon = 0.5\n[privacy]\nepsilon = 1\ndelta = 1e-6\nunit = "example"', "total_epsilon is 0.5, but "),
        ("round = 5", r"unknown field `round` \(the keys are algorithms, coordinators, rounds, min_batch, questions, "),
        ("rounds = ", "invalid TOML"),
        ("labels = 1", "Expected `bool`, got `int`"),
    ],
)
def test_a_wrong_policy_file_is_rejected_with_the_key(tmp_path, text, message):
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(ct.FileError, match=message) as caught:
        ct.read_site_policy(path)
    assert str(caught.value).startswith(f"policy {str(path)!r}: ")


def test_the_policy_on_the_page_is_valid_and_the_page_has_all_keys(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "sites.md").read_text(encoding="utf-8")
    (tmp_path / "policy.toml").write_text(page.split("<!-- file: policy.toml -->\n```toml\n")[1].split("```")[0])
    policy = msgspec.structs.asdict(ct.read_site_policy(tmp_path / "policy.toml"))
    assert None not in policy.values()
    assert all(f"| `{key}` |" in page for key in policy)
    planned = page.split("follow from the announced algorithm. For ")[1].split(" the number of arms")[0]
    fixed = [name for name in ct.available_algorithms() if make_algorithm(name).fixed_schedule]
    assert set(re.findall("`([a-z-]+)`", planned)) == set(fixed) - {"kzz-balanced"}  # the page names it with kzz


def test_the_command_reports_a_missing_policy_in_one_line(certs, tmp_path):
    (tmp_path / "means.txt").write_text("0.5\n0.6\n")
    arguments = ["--site", "site0", "--cert", str(certs / "site0.pem"), "--means", str(tmp_path / "means.txt")]
    ended = CliRunner().invoke(app, ["join", "localhost:1", *arguments, "--policy", "nowhere.toml"])
    assert (ended.exit_code, ended.stderr) == (2, "error: policy 'nowhere.toml': no such file or directory\n")


@pytest.mark.slow
def test_the_command_enforces_a_policy(certs, tmp_path):
    (tmp_path / "policy.toml").write_text("questions = 1\npulls_per_candidate = 2\nmin_batch = 2\n")
    trial = Trial(tmp_path, certs, algorithm="uniform")
    try:
        trial.start_coordinator()
        for number in range(2):
            trial.start_site(number, more=("--policy", "policy.toml", "--journal", f"journal{number}"))
        trial.check(trial.result())
    finally:
        trial.stop()
    budget = SiteBudget(tmp_path / "journal1" / "budget.db")
    assert budget.spent() == (1, dict.fromkeys(sorted(CANDIDATES), 2))
    budget.close()


# -- one run


def test_an_allowed_run_is_answered(certs, tmp_path):
    policy = ct.SitePolicy(
        algorithms=["uniform"], coordinators=["localhost"], rounds=1, min_batch=50, questions=1, pulls_per_candidate=50
    )
    assert isinstance(run(certs, policy, journals=tmp_path), ct.Result)


@pytest.mark.parametrize(
    ("policy", "there", "here"),
    [
        (ct.SitePolicy(algorithms=["kzz"]), "its policy does not allow", "does not allow this algorithm"),
        (ct.SitePolicy(min_batch=51), "a batch of size 50", "but min_batch is 51"),
    ],
)
def test_a_run_that_is_not_allowed_is_declined_before_the_first_pull(certs, policy, there, here, tmp_path):
    theirs, ours = run(certs, policy, audit=tmp_path / "sent.jsonl")
    assert there in theirs
    assert here in ours
    assert '"Answer"' not in (tmp_path / "sent.jsonl").read_text()


def test_a_plan_with_too_many_rounds_is_declined_at_the_start(certs):
    theirs, ours = run(certs, ct.SitePolicy(rounds=2), algorithm="collab-top-noniid", horizon=4_000)
    assert "declined to take part: its policy does not allow this run" in theirs
    assert "the plan has 3 questions, but the policy allows 2" in ours


def test_rounds_that_depend_on_rewards_are_counted(certs):
    theirs, ours = run(certs, ct.SitePolicy(rounds=2), algorithm="confident-top", horizon=None, confidence=0.999999)
    assert "stopped taking part: its policy does not allow this run" in theirs
    assert "this site declined a question: the policy allows 2 questions per run" in ours


def test_an_unlisted_coordinator_is_not_contacted(certs):
    policy = ct.SitePolicy(coordinators=["hub.example.org"])
    with pytest.raises(ct.InputError, match=r"the policy allows these coordinators only: hub\.example\.org") as caught:
        ct.join("localhost:1", ARMS, cert=certs / "site0.pem", site_policy=policy)
    assert caught.value.argument == "address"


@pytest.mark.parametrize("labels", [True, False])
def test_the_hash_of_the_labels_is_sent_only_if_the_policy_allows_it(certs, tmp_path, labels):
    run(certs, ct.SitePolicy(labels=labels), audit=tmp_path / "sent.jsonl")
    [hello] = [line for line in lines_of(tmp_path / "sent.jsonl") if line.get("frame") == "Hello"]
    assert bool(hello["labels"]) == labels


# -- all runs together


def test_the_budget_is_readable_by_its_owner_only(certs, tmp_path):
    before = os.umask(0)
    try:
        assert isinstance(run(certs, ct.SitePolicy(questions=2), journals=tmp_path / "journals"), ct.Result)
    finally:
        os.umask(before)
    [budget] = (tmp_path / "journals").rglob("budget.db")
    assert budget.stat().st_mode & 0o777 == 0o600


def test_the_budget_of_questions_holds_across_runs(certs, tmp_path):
    policy = ct.SitePolicy(questions=2)
    assert isinstance(run(certs, policy, journals=tmp_path), ct.Result)
    assert isinstance(run(certs, policy, journals=tmp_path), ct.Result)
    theirs, ours = run(certs, policy, journals=tmp_path)
    assert "its budget for questions, pulls or privacy in all runs is used up" in theirs
    assert "has answered 2 questions in all runs, its budget is 2" in ours


def test_the_budget_of_pulls_stops_a_second_run_with_one_pull_more(certs, tmp_path):
    """The attack of two runs, with 50 pulls of every candidate and with 51."""
    policy = ct.SitePolicy(pulls_per_candidate=100)
    sent = tmp_path / "sent.jsonl"
    assert isinstance(run(certs, policy, journals=tmp_path / "journals"), ct.Result)
    theirs, ours = run(certs, policy, journals=tmp_path / "journals", audit=sent, horizon=408)
    assert "its budget for questions, pulls or privacy in all runs is used up" in theirs
    assert "candidate 'drug 0' had 50 pulls, and 51 more exceed its budget of 100" in ours
    lines = lines_of(sent)
    assert [line.get("event") or line["frame"] for line in lines] == [
        *("policy", "Hello", "Ready", "asked", "stopped", "Declined")
    ]
    assert lines[0]["spent"] == {"questions": 1, "pulls": dict.fromkeys(ARMS.labels, 50)}
    assert lines[0]["pulls_per_candidate"] == 100
    assert lines[3]["kinds"] == ["Pull"]
    assert "exceed its budget" in lines[4]["why"]


def test_a_site_that_cannot_write_why_it_stopped_ends_with_that_error(certs, tmp_path, monkeypatch):
    note_event = Audit.note_event

    def full_disk(audit, event, **fields):
        if event == "stopped":
            raise ct.FileError("audit: no space left on device")
        note_event(audit, event, **fields)

    monkeypatch.setattr(Audit, "note_event", full_disk)
    policy = ct.SitePolicy(pulls_per_candidate=10)
    _, ours = run(certs, policy, journals=tmp_path / "journals", audit=tmp_path / "sent.jsonl")
    assert ours == "audit: no space left on device"


def test_a_budget_needs_a_journal(certs):
    with pytest.raises(ct.InputError, match="journal is missing: a policy with a budget needs a folder"):
        ct.join("localhost:1", ARMS, cert=certs / "site0.pem", site_policy=ct.SitePolicy(questions=5))


def test_what_is_repeated_after_a_restart_is_charged_once(tmp_path):
    path = tmp_path / "budget.db"
    for _ in range(3):  # as many processes
        budget = SiteBudget(path, questions=1, pulls_per_candidate=20)
        budget.charge_question(RUN_ID, 0, 1)
        budget.charge_pulls(RUN_ID, 0, 0, ["a"], [20])
        budget.close()
    budget = SiteBudget(path, questions=1, pulls_per_candidate=20)
    assert budget.spent() == (1, {"a": 20})
    with pytest.raises(OverBudget):  # a different draw with the same number
        budget.charge_pulls(RUN_ID, 0, 0, ["a"], [1])
    assert budget.spent() == (1, {"a": 20})
    budget.close()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_damaged_budget_stops_the_site(certs, tmp_path):
    folder = tmp_path / "site0"
    folder.mkdir()
    (folder / "budget.db").write_bytes(b"not a database, but long enough to be taken for one" * 20)
    with pytest.raises(ct.FileError, match=r"budget .*: file is not a database; without it nothing is pulled"):
        ct.join("localhost:1", ARMS, cert=certs / "site0.pem", journal=folder, site_policy=ct.SitePolicy(questions=5))


@pytest.mark.parametrize("number", ["'abc'", "-1000", "x'00'", "NULL", "9e999"])
def test_a_budget_that_was_edited_stops_the_site(tmp_path, number):
    path = tmp_path / "budget.db"
    with closing(sqlite3.connect(path)) as file:
        file.executescript(
            "CREATE TABLE candidates (label TEXT PRIMARY KEY, pulls);"
            "CREATE TABLE privacy (run TEXT PRIMARY KEY, unit TEXT, rho);"
            f"INSERT INTO candidates VALUES ('a', {number}); INSERT INTO privacy VALUES ('x', 'example', {number});"
        )
    with closing(SiteBudget(path, pulls_per_candidate=50, rho=1.0)) as budget:
        for name, spend in (
            ("pulls", lambda: budget.charge_pulls(RUN_ID, 0, 0, ["a"], [20])),
            ("pulls", budget.spent),
            ("rho", lambda: budget.charge_privacy(RUN_ID, "example", 0.25)),
            ("rho", budget.spent_rho),
        ):
            with pytest.raises(ct.FileError, match=f"it is damaged: {name} is .*; without it nothing is pulled"):
                spend()


# -- questions that follow from the announced algorithm


class Guarded(ct.LocalTeam):
    """A local team that shows every request to the guard of a site that has all agents."""

    def open(self, arms, setup, recorder):
        super().open(arms, setup, recorder)
        self.agents = tuple(range(setup.problem.agents))
        self.guard = PolicyGuard(ct.SitePolicy(), setup, RUN_ID, rehearse(setup, self.agents), None, str)
        self.history = {agent: [] for agent in self.agents}

    def deliver(self, requests):
        for request in requests:
            self.guard.check_request(request, len(self.history[request.agent]))
            self.history[request.agent].append(request)
        return super().deliver(requests)

    def declines(self, request, answered):
        with pytest.raises(PolicyError) as caught:
            self.guard.check_request(request, answered)
        return caught.value.why


def guarded_run(algorithm, seed):
    rng = np.random.default_rng(seed)
    n, agents = int(rng.integers(8, 80)), int(rng.integers(1, 6))
    m, agents = accepted_setting(algorithm, int(rng.integers(1, n)), agents)
    horizon = int(rng.integers(40, 120)) * n
    early = make_algorithm(algorithm).stops_early
    budget = {"confidence": 0.9, "max_horizon": min(horizon, 1_000)} if early else {"horizon": horizon}
    team = Guarded()
    ct.identify(ct.BernoulliArms(rng.random(n)), m, agents=agents, algorithm=algorithm, seed=seed, team=team, **budget)
    return team


@pytest.mark.parametrize("algorithm", ct.available_algorithms())
def test_no_question_of_an_honest_run_is_declined(algorithm):
    for seed in range(1 if algorithm == "kl-lucb" else 15):
        assert any(guarded_run(algorithm, seed).history.values())


def changed_requests(request):
    """The same request with one pull more, and with a different kind of question."""
    *instructions, question = request.messages
    if isinstance(question, Pull):
        times = question.times.copy()
        times[0] += 1
        question = Pull(question.arms, times)
    elif isinstance(question, PullOpen):
        question = PullOpen(question.survived, question.times + 1, question.coarseness)
    elif isinstance(question, Prune):
        question = Prune(question.seed, question.sizes, question.pulls + 1)
    yield msgspec.structs.replace(request, messages=(*instructions, question))
    yield msgspec.structs.replace(request, messages=(*instructions, HandOver(live=True)))


@pytest.mark.parametrize(
    "algorithm", [name for name in ct.available_algorithms() if make_algorithm(name).fixed_schedule]
)
def test_a_question_that_is_not_in_a_fixed_plan_is_declined(algorithm):
    team = guarded_run(algorithm, seed=1)
    requests = team.history[0]
    for answered, request in enumerate(requests):
        assert [team.declines(changed, answered) for changed in changed_requests(request)] == ["plan", "plan"]
    assert team.declines(requests[-1], len(requests)) == "plan"  # one question more than planned


@pytest.mark.parametrize("algorithm", ["collab-top-iid", "confident-top", "confident-top-noniid", "kl-lucb"])
def test_a_kind_of_question_that_an_algorithm_does_not_ask_is_declined(algorithm):
    team = guarded_run(algorithm, seed=1)
    foreign = Prune(1, np.array([1]), np.array([20]))
    assert team.declines(Request(0, 1, (foreign,)), 0) == "plan"
    if algorithm != "collab-top-iid":
        assert team.declines(Request(0, 1, (Deal(np.array([1])),)), 0) == "plan"


def test_an_algorithm_that_announces_nothing_is_declined(certs, monkeypatch):
    class Own(ct.Uniform):
        name, fixed_schedule = "own", False

    monkeypatch.setitem(registry._catalogue, "own", Own)
    theirs, ours = run(certs, ct.SitePolicy(), algorithm="own")
    assert "does not follow from the announced algorithm and plan" in theirs
    assert "own does not announce its questions" in ours
