"""Logged rewards as arms: a finite sample, shuffled, replayed or drawn from, IID or by agent, in Python and CSV."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import collabtop as ct
from collabtop.arms import Draws
from collabtop.testing import check_arms

REWARDS = [[0.0, 1.0, 0.5, 0.25], [1.0, 0.75]]


def pulled(arms, arm, times, agent=0, draws=None):
    return arms.pull(np.array([arm]), np.array([times]), draws or Draws(3, agent)).tolist()[0]


def test_the_contract_of_arms_is_kept():
    check_arms(ct.LoggedArms([[0.5] * 99] * 3))
    check_arms(ct.LoggedArms([[0.5] * 99] * 3, replay=True))
    check_arms(ct.LoggedArms(REWARDS, replace=True))


def test_draws_with_replacement_have_the_mean_of_the_log():
    arms = ct.LoggedArms(REWARDS, replace=True)
    assert pulled(arms, 0, 20_000) / 20_000 == pytest.approx(np.mean(REWARDS[0]), abs=0.02)


def test_replayed_rewards_come_once_each_in_the_order_of_the_log():
    arms, draws = ct.LoggedArms(REWARDS, replay=True), Draws(1, 0)
    assert [pulled(arms, 0, times, draws=draws) for times in (1, 2)] == [0.0, 1.5]
    with pytest.raises(ct.PullError, match="candidate '0' has 4 logged rewards, but 5 pulls were requested"):
        pulled(arms, 0, 2, draws=draws)


@pytest.mark.parametrize("team", ["local", "threads"])
@pytest.mark.parametrize("algorithm", ["frugal-top", "kzz", "collab-top-iid", "uniform", "confident-top"])
def test_a_run_uses_each_row_at_most_once_whichever_agent_pulls(algorithm, team):
    # Powers of two: a sum of rewards shows which of them it contains, and a row that was used twice would carry.
    rows = 2.0 ** -np.arange(1, 49)
    arms = ct.LoggedArms([rows, rows[::-1], rows])
    limit: dict[str, Any] = {"confidence": 0.9} if algorithm == "confident-top" else {"horizon": 40}
    result = ct.identify(arms, 1, agents=2, algorithm=algorithm, seed=3, team=team, **limit)
    for pulls, mean in zip(result.observed.pulls, result.observed.means, strict=True):
        assert bin(round(pulls * mean * 2**48)).count("1") == pulls


def test_a_whole_run_can_be_replayed_and_resumed(tmp_path):
    rng = np.random.default_rng(1)
    rewards = [(rng.random(600) < mean).astype(float) for mean in (0.2, 0.5, 0.8)]
    for arms in (ct.LoggedArms(rewards, replay=True), ct.LoggedArms(rewards)):
        asked: dict[str, Any] = {"agents": 2, "horizon": 150, "seed": 1, "algorithm": "kzz"}
        path = tmp_path / f"{arms.lowers_horizon}.ctlog"
        result = ct.identify(arms, 1, checkpoint=path, **asked)
        assert result.top == [2]
        path.write_bytes(path.read_bytes()[:-200])
        assert ct.resume(path, arms=arms, team="threads") == result


def test_a_horizon_that_needs_more_rows_than_the_log_has_is_refused():
    arms = ct.LoggedArms([[0, 1] * 30, [1, 1] * 40], labels=["old", "new"])
    with pytest.raises(
        ct.InputError, match=r"uniform may then need 100 rows of a candidate, and 'old' has 60"
    ) as error:
        ct.identify(arms, 1, agents=2, horizon=100, algorithm="uniform")
    assert error.value.argument == "horizon"
    assert "use a horizon of at most 61" in str(error.value)
    assert ct.identify(arms, 1, agents=2, horizon=61, algorithm="uniform", seed=1).pulls == 120


def test_a_log_that_is_too_short_for_every_horizon_is_refused():
    arms = ct.LoggedArms([[0.5], [0.25], [0.5], [0.5]])
    with pytest.raises(ct.InputError, match=r"fewer than the .* of its smallest horizon"):
        ct.identify(arms, 1, agents=2, horizon=100, algorithm="kzz")


def test_a_replay_takes_the_largest_horizon_that_the_log_pays_for_and_names_it(tmp_path):
    arms = ct.LoggedArms([[0, 1] * 30, [1, 1] * 40], labels=["old", "new"], replay=True)
    asked: dict[str, Any] = {"agents": 2, "horizon": 100, "algorithm": "uniform", "seed": 1}
    result = ct.identify(arms, 1, checkpoint=tmp_path / "run.ctlog", **asked)
    assert (result.horizon, result.pulls) == (61, 120)
    assert "the run took the largest horizon that the log pays for, 61" in result.warnings[0]
    assert ct.resume(tmp_path / "run.ctlog", arms=arms).warnings == result.warnings


def click_log(replace=False):
    """10,000 rows of two pages with 38 clicks: 23 of 5,000 and 15 of 5,000, a difference that may well be chance."""
    return ct.LoggedArms([[1] * 23 + [0] * 4_977, [1] * 15 + [0] * 4_985], replace=replace)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["confident-top", "kl-lucb"])
def test_a_log_of_38_clicks_is_never_sure(algorithm):
    result = ct.identify(click_log(), 1, agents=1, confidence=0.95, algorithm=algorithm, seed=1)
    assert result.sure is False
    assert result.observed.pulls.max() <= 5_000
    assert result.exact == []
    assert "not sure: 2 of 2 arms are still open" in result.warnings[0]


def test_repeated_rows_tell_nothing_new():
    with pytest.raises(ct.SettingError, match="a confidence comes from distinct rewards, and there are 5,000"):
        ct.identify(click_log(replace=True), 1, agents=1, confidence=0.95)
    runs = [
        ct.identify(click_log(replace), 1, agents=1, horizon=horizon, algorithm="uniform", seed=1)
        for replace, horizon in ((False, 10_000), (True, 1_000_000))
    ]
    once, often = (run.standings[0].high - run.standings[0].low for run in runs)
    assert often == pytest.approx(once, rel=0.3)
    assert [run.standings[0].thin for run in runs] == [True, True]


def test_rewards_by_agent_are_non_iid():
    arms = ct.LoggedArms([[[0.0], [1.0]], [[0.5], [0.75]]])
    assert (arms.agents, arms.iid) == (2, False)
    assert [pulled(arms, 0, 1, agent) for agent in (0, 1)] == [0.0, 1.0]
    with pytest.raises(ct.PullError, match="1 logged rewards of agent 1, but 2 pulls were requested"):
        pulled(arms, 0, 2, 1)
    with pytest.raises(ct.PullError, match="the rewards are for 2 agents, but agent 2 asked for one"):
        pulled(arms, 0, 1, 2)


@pytest.mark.parametrize(
    ("rewards", "more", "message"),
    [
        ([], {}, "n is 0"),
        ([[]], {}, r"rewards\[0\] is empty, but each candidate needs at least 1 reward"),
        ([[0.5], [1.5]], {}, r"rewards\[1\]\[0\] is 1.5"),
        ([["x"]], {}, r"rewards\[0\] is .* but numbers are needed"),
        ([[[0.5], [0.5]], [[0.5]]], {}, "more agents for some candidates than for others"),
        ([[0.5]], {"replay": True, "replace": True}, "replace is True, but replayed rows are used once"),
    ],
)
def test_bad_rewards_are_named(rewards, more, message):
    with pytest.raises(ct.InputError, match=message):
        ct.LoggedArms(rewards, **more)


def read(tmp_path, text, **more):
    path = tmp_path / "rewards.csv"
    path.write_text(text, encoding="utf-8")
    return ct.read_rewards(path, **more)


def test_a_file_of_rewards_is_read(tmp_path):
    arms = read(tmp_path, "Reward,Candidate\n0.5,a\n1,b\n\n0,a\n")
    assert (arms.labels, arms.n, arms.iid) == (("a", "b"), 2, True)
    assert (pulled(arms, 1, 1), arms.sample_size) == (1.0, 1)


def test_a_column_of_agents_makes_it_non_iid(tmp_path):
    arms = read(tmp_path, "candidate,reward,agent\na,0,10\na,1,9\nb,0.5,9\nb,0.25,10\n")
    assert arms.agents == 2  # agents 9 and 10, in that order
    assert [pulled(arms, 0, 1, agent) for agent in (0, 1)] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file has no rewards"),
        ("candidate,reward\n", "the file has no rewards"),
        ("a,b\n1,2\n", "line 1: no column 'candidate'"),
        ("candidate,points\na,1\n", "line 1: no column 'reward'"),
        ("candidate,reward\na,1\nb\n", "line 3: 1 columns, but line 1 has 2"),
        ("candidate,reward\na,1.5\n", r"line 2: found 1.5, but a reward lies in \[0, 1\]"),
        ("candidate,reward\na,nan\n", "line 2: found nan"),
        ("candidate,reward\na,good\n", "line 2: found 'good'"),
        ("candidate,reward,agent\na,1,x\na,1,y\nb,1,x\n", "candidate 'b' has no reward of agent 'y'"),
    ],
)
def test_a_bad_file_is_named_with_the_line(tmp_path, text, message):
    with pytest.raises(ct.FileError, match=message):
        read(tmp_path, text)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ct.FileError, match="no such file"):
        ct.read_rewards(tmp_path / "none.csv")


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_any_line_ends_are_accepted_and_a_byte_that_is_not_utf_8_is_named_with_its_line(tmp_path, newline):
    path = tmp_path / "rewards.csv"
    path.write_bytes(newline.join([b"\xef\xbb\xbfcandidate,reward", b"a,1", b"b,0"]))
    assert ct.read_rewards(path).labels == ("a", "b")
    path.write_bytes(b"candidate,reward\na\xff,1\n")
    with pytest.raises(ct.FileError, match="line 2: byte 0xff is not UTF-8 text"):
        ct.read_rewards(path)
