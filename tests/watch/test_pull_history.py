"""The pulls of single candidates, read from the log: their rewards, their examples, and pairs of them."""

from __future__ import annotations

import itertools
import urllib.error
import urllib.parse
from typing import Any

import numpy as np
import pytest

import collabtop as ct
from collabtop.watch import pull_history, watched_runs
from collabtop.watch.pull_history import PullHistory, candidate_view, comparison_view
from collabtop.watch.views import view
from collabtop.watch.watched_runs import WatchedRun
from tests.support import malformed_logs as malformed
from tests.support.page_requests import get_json

QUESTIONS, CANDIDATES = 40, 12
TABLE = np.random.default_rng(5).random((CANDIDATES, QUESTIONS)).round(3)


def scored(path, *, agents=1, algorithm="auto", by_agent=False, horizon=None, **more):
    examples = list(range(QUESTIONS))
    arms = ct.DatasetArms(
        list(range(CANDIDATES)),
        [examples[agent::agents] for agent in range(agents)] if by_agent else examples,
        lambda candidate, question: TABLE[candidate, question],
        by_agent=by_agent,
    )
    horizon = horizon or CANDIDATES * QUESTIONS // agents
    return ct.identify(arms, 2, agents=agents, horizon=horizon, seed=3, algorithm=algorithm, checkpoint=path, **more)


def read(path, arm):
    history = PullHistory(path, arm)
    assert history.update(seconds=60)
    return history


@pytest.mark.parametrize(
    ("agents", "algorithm"), [(1, "auto"), (3, "kzz"), (3, "uniform"), (4, "collab-top-iid"), (3, "frugal-top")]
)
def test_the_examples_of_pulls_are_those_that_were_scored(tmp_path, agents, algorithm):
    scored(tmp_path / "run.ctlog", agents=agents, algorithm=algorithm)
    numbered = 0
    for arm in range(CANDIDATES):
        history = read(tmp_path / "run.ctlog", arm)
        for pull in history.kept:
            if pull.example is not None:
                numbered += 1
                assert TABLE[arm, int(history.example_name(pull.example))] == pull.reward
    assert numbered > 50


def test_examples_of_agents_of_their_own_are_compared_agent_by_agent(tmp_path):
    scored(tmp_path / "run.ctlog", agents=2, by_agent=True, horizon=150)
    first, second = read(tmp_path / "run.ctlog", 3), read(tmp_path / "run.ctlog", 7)
    shared = first.by_example().keys() & second.by_example().keys()
    assert {owner for owner, _ in shared} == {0, 1}
    names = {first.example_name(example) for example in shared}
    assert "0 of agent 1" in names


def test_two_candidates_are_compared_on_the_same_examples(tmp_path):
    scored(tmp_path / "run.ctlog", algorithm="uniform")
    for one, other in itertools.islice(itertools.permutations(range(CANDIDATES), 2), 12):
        view = comparison_view(read(tmp_path / "run.ctlog", one), read(tmp_path / "run.ctlog", other))
        differences = TABLE[one] - TABLE[other]
        assert (view["paired"], view["common"]) == (True, QUESTIONS)
        assert (view["higher"], view["lower"]) == ((differences > 0).sum(), (differences < 0).sum())
        assert view["difference"] == pytest.approx([differences.mean()] * 3)  # all examples were used: it is exact
        largest = sorted(abs(differences), reverse=True)[:20]
        rows = [(int(row["example"]), *row["rewards"]) for row in view["separating"]]
        assert [abs(ours - theirs) for _, ours, theirs in rows] == pytest.approx(largest)
        assert all((TABLE[one, example], TABLE[other, example]) == (ours, theirs) for example, ours, theirs in rows)


def test_a_part_of_the_examples_gives_an_interval(tmp_path):
    scored(tmp_path / "run.ctlog", algorithm="uniform", horizon=CANDIDATES * 10)
    view = comparison_view(read(tmp_path / "run.ctlog", 0), read(tmp_path / "run.ctlog", 1))
    mean, low, high = view["difference"]
    assert view["common"] == 10
    assert low < mean < high
    assert high - mean == pytest.approx(mean - low)


def test_candidates_of_independent_draws_are_not_paired(tmp_path):
    path = tmp_path / "run.ctlog"
    ct.identify([0.2, 0.8], 1, pull=lambda mean, rng: rng.random() < mean, agents=2, horizon=40, checkpoint=path)
    view = comparison_view(read(path, 0), read(path, 1))
    assert (view["paired"], view["common"], view["difference"]) == (False, 0, None)


def noisy(candidate, rng):
    if rng.random() < 0.2:
        raise ValueError("no answer")
    return rng.random() < candidate / CANDIDATES


def normal(candidate, rng):
    return 10 * candidate + rng.normal()


KINDS: dict[str, dict[str, Any]] = {
    "examples": {},
    "sums": {"arms": ct.BernoulliArms(np.linspace(0.1, 0.9, CANDIDATES))},
    "failures as zero": {"pull": noisy, "policy": ct.PullPolicy(retries=0, failures="zero")},
    "no bounds": {"pull": normal, "bounds": None},
    "minimize": {"pull": lambda candidate, rng: 300 * rng.random(), "bounds": (0, 500), "direction": "minimize"},
    "agents of their own": {"arms": ct.HeterogeneousArms(np.random.default_rng(1).random((CANDIDATES, 2)))},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [2, 7])
def test_the_estimate_over_time_ends_with_the_numbers_of_the_result(tmp_path, kind, m):
    path, options = tmp_path / "run.ctlog", dict(KINDS[kind])
    examples = ct.DatasetArms(list(range(CANDIDATES)), list(range(QUESTIONS)), lambda arm, example: TABLE[arm, example])
    arms = options.pop("arms", list(range(CANDIDATES)) if "pull" in options else examples)
    algorithm = "collab-top-noniid" if kind == "agents of their own" else "kzz"
    result = ct.identify(
        arms, m, agents=2, horizon=240, seed=3, algorithm=algorithm, checkpoint=path, progress=False, **options
    )
    run = WatchedRun(path, "run")
    run.update(replay=True)
    shown = view(run)["arms"]
    compared = 0
    for arm, estimate in enumerate(result.estimates):
        if estimate.pulls != result.observed.pulls[arm]:
            continue  # an agent kept some of its rewards to itself
        compared += 1
        pulls, *numbers, _ = candidate_view(read(path, arm), 0)["points"][-1]
        assert pulls == estimate.pulls
        assert numbers == pytest.approx([estimate.mean, *(ends[arm] for ends in result.intervals)], rel=1e-6, abs=1e-8)
        assert [shown[name][arm] for name in ("seen_mean", "seen_low", "seen_high")] == pytest.approx(
            numbers, rel=1e-6, abs=1e-8
        )
    assert compared > CANDIDATES // 2


def test_an_estimate_over_time_becomes_exact_with_the_last_example(tmp_path):
    scored(tmp_path / "run.ctlog", algorithm="uniform")
    points = candidate_view(read(tmp_path / "run.ctlog", 0), 0)["points"]
    assert points[-1][:4] == pytest.approx([QUESTIONS, *[TABLE[0].mean()] * 3])
    widths = [high - low for _, _, low, high, _ in points]
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(widths))


def test_sums_of_rewards_are_counted_without_single_pulls(tmp_path):
    path = tmp_path / "run.ctlog"
    result = ct.identify(ct.BernoulliArms([0.2, 0.8]), 1, agents=2, horizon=400, seed=1, checkpoint=path)
    history = read(path, 1)
    view = candidate_view(history, 0)
    assert (view["pulls"], view["listed"], view["rows"]) == (result.observed.pulls[1], 0, [])
    assert view["points"][-1][1] == pytest.approx(result.observed.means[1])
    assert sum(pulls for _, pulls in view["agents"]) == view["pulls"]


def test_failed_pulls_are_listed_and_do_not_count_in_the_mean(tmp_path):
    calls = itertools.count()

    def score(candidate, rng):
        if next(calls) % 3 == 0:
            raise ValueError("no answer")
        return 1.0

    policy = ct.PullPolicy(retries=0, failures="skip")
    path = tmp_path / "run.ctlog"
    result = ct.identify(["a", "b"], 1, pull=score, agents=1, horizon=30, policy=policy, checkpoint=path)
    view = candidate_view(read(path, 0), 0)
    assert view["failed"] == result.failures["a"] > 0
    assert {row["reward"] for row in view["rows"]} == {None, 1.0}
    assert view["points"][-1][1] == 1.0


@pytest.mark.slow
def test_costs_notes_and_failed_attempts_belong_to_their_candidate(tmp_path):
    calls = itertools.count()

    def score(candidate, rng):
        if next(calls) % 5 == 0:
            raise TimeoutError("no answer")
        return ct.Reward(0.5, cost=0.25, note=f"answer of {candidate} \x1b[2J\u202e")

    path = tmp_path / "run.ctlog"
    result = ct.identify(
        ["a", "b"], 1, pull=score, policy=ct.PullPolicy(retries=2), agents=1, horizon=20, checkpoint=path
    )
    views = [candidate_view(read(path, arm), 0) for arm in (0, 1)]
    assert sum(view["spent"] for view in views) == pytest.approx(result.totals.cost)
    assert sum(view["attempts_failed"] for view in views) == result.totals.attempts_failed > 0
    assert sum(view["retries"] for view in views) == result.totals.retries
    assert views[1]["rows"][0]["note"] == "answer of b \\x1b[2J\\u202e"
    assert views[1]["rows"][0]["cost"] == 0.25
    assert {view["last_error"] for view in views} <= {None, "raised TimeoutError: no answer"}


def test_long_and_many_notes_are_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(pull_history, "LARGEST_NOTE_SHOWN", 10)
    monkeypatch.setattr(pull_history, "MAX_NOTES_KEPT", 3)
    path = tmp_path / "run.ctlog"
    arguments: dict[str, Any] = {"agents": 1, "horizon": 20, "algorithm": "uniform", "checkpoint": path}
    ct.identify(["a", "b"], 1, pull=lambda candidate, rng: ct.Reward(0.5, note="x" * 99), **arguments)
    notes = [row["note"] for row in candidate_view(read(path, 0), 0)["rows"]]
    assert notes == ["x" * 10 + "…"] * 3 + [None] * 7


def test_rewards_are_in_the_unit_of_the_user(tmp_path):
    path = tmp_path / "run.ctlog"
    unit: dict[str, Any] = {"direction": "minimize", "bounds": (0, 500)}
    arguments: dict[str, Any] = {"agents": 1, "horizon": 20, "algorithm": "uniform", "checkpoint": path}
    ct.identify([100, 200], 1, pull=lambda candidate, rng: candidate, paired=True, **unit, **arguments)
    view = candidate_view(read(path, 0), 0)
    assert {row["reward"] for row in view["rows"]} == {100}
    _, mean, low, high, _ = view["points"][-1]
    assert low < mean < high
    assert mean == pytest.approx(100)
    difference = comparison_view(read(path, 0), read(path, 1))["difference"]
    assert difference == pytest.approx([-100, -250, 50])  # ten equal differences: 3 / 10 of the range to each side


def test_examples_are_listed_with_the_worst_rewards_first(tmp_path):
    scored(tmp_path / "run.ctlog", algorithm="uniform")
    examples = candidate_view(read(tmp_path / "run.ctlog", 2), 0)["examples"]
    assert {int(name): mean for name, pulls, mean in examples if pulls == 1} == dict(enumerate(TABLE[2]))
    assert [mean for _, _, mean in examples] == sorted(TABLE[2])


def test_examples_of_costs_have_the_largest_first(tmp_path):
    path = tmp_path / "run.ctlog"
    unit: dict[str, Any] = {"direction": "minimize", "bounds": (0, 60)}
    arms = ct.DatasetArms([1, 2], [10, 30, 20], lambda candidate, cost: candidate * cost, **unit)
    ct.identify(arms, 1, agents=1, horizon=6, algorithm="uniform", checkpoint=path)
    examples = candidate_view(read(path, 1), 0)["examples"]
    assert examples == [("1", 1, 60), ("2", 1, 40), ("0", 1, 20)]


def test_pulls_are_listed_newest_first_page_by_page(tmp_path):
    scored(tmp_path / "run.ctlog", algorithm="uniform")
    history = read(tmp_path / "run.ctlog", 2)
    pages = [candidate_view(history, page) for page in range(3)]
    assert [len(page["rows"]) for page in pages] == [20, 20, 0]
    numbers = [row["number"] for page in pages for row in page["rows"]]
    assert numbers == sorted(numbers, reverse=True)
    assert pages[0]["pages"] == 2


def test_the_latest_pulls_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(pull_history, "MAX_PULLS_KEPT", 7)
    scored(tmp_path / "run.ctlog", algorithm="uniform")
    view = candidate_view(read(tmp_path / "run.ctlog", 2), 0)
    assert (view["listed"], view["pulls"]) == (7, QUESTIONS)
    whole = PullHistory(tmp_path / "run.ctlog", 2)
    assert view["rows"][0]["number"] > view["rows"][-1]["number"]
    assert whole.kept.maxlen == 7


def test_a_log_that_is_replaced_is_read_again(tmp_path):
    path = tmp_path / "run.ctlog"
    scored(path, algorithm="uniform")
    history = read(path, 2)
    scored(tmp_path / "other.ctlog", algorithm="uniform", horizon=CANDIDATES * 5)
    (tmp_path / "other.ctlog").replace(path)
    assert history.update(seconds=60)
    assert history.pulls == 5


def test_a_long_log_is_read_in_pieces(tmp_path, monkeypatch):
    scored(tmp_path / "run.ctlog", algorithm="uniform")
    history = PullHistory(tmp_path / "run.ctlog", 2)
    history._follower._max_bytes = 300
    pieces = 1
    while not history.update(seconds=0):
        pieces += 1
    assert pieces > 3
    assert history.pulls == QUESTIONS


def test_the_histories_of_few_candidates_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(watched_runs, "MAX_HISTORIES", 2)
    scored(tmp_path / "run.ctlog", algorithm="uniform")
    run = WatchedRun(tmp_path / "run.ctlog", "run.ctlog")
    first, second = run.history(0), run.history(1)
    assert run.history(0) is first
    run.history(2)
    assert run.history(0) is first
    assert run.history(1) is not second


@pytest.mark.parametrize(
    "path",
    [
        "candidates/12",
        "candidates/-1",
        "candidates/1e3",
        "candidates/x",
        "candidates/" + "9" * 5000,
        "candidates/²",
        "comparison/0/12",
        "comparison/0/-1",
    ],
)
def test_only_candidates_of_the_run_can_be_asked_for(serve, tmp_path, path):
    scored(tmp_path / "run.ctlog", algorithm="uniform")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get_json(serve(tmp_path) + "api/runs/run.ctlog/" + urllib.parse.quote(path))


def test_requests_for_pulls_are_answered(serve, tmp_path):
    scored(tmp_path / "run.ctlog", algorithm="uniform")
    url = serve(tmp_path) + "api/runs/run.ctlog/"
    assert get_json(url + "candidates/3?page=1")["rows"][0]["example"] is not None
    for page in ("x", "-1", "9" * 5000, "999999999"):
        assert get_json(url + f"candidates/3?page={page}")["pulls"] == QUESTIONS
    assert get_json(url + "comparison/3/3")["difference"] == [0.0, 0.0, 0.0]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get_json(serve(tmp_path) + "api/runs/none.ctlog/candidates/0")


def test_a_damaged_log_is_an_error_in_the_answer(serve, tmp_path):
    path = tmp_path / "run.ctlog"
    records = malformed.plain_records(malformed.real_log(path))
    url = serve(tmp_path)
    malformed.write_plain(path, malformed.changed(records, "Rewards", agent=9))
    with pytest.raises(urllib.error.HTTPError, match="404"):  # the run is unreadable: it has no candidates
        get_json(url + "api/runs/run.ctlog/candidates/0")
    run = WatchedRun(path, "run.ctlog")
    with pytest.raises(ct.FileError, match="does not fit the run"):
        run.history(0).update(seconds=1)
