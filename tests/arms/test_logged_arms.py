"""Logged rewards as arms: drawn with replacement or replayed, IID or by agent, from Python and from CSV."""

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
    check_arms(ct.LoggedArms(REWARDS))
    check_arms(ct.LoggedArms([[0.5] * 9] * 3, replay=True, dealt_to=2))


def test_draws_have_the_mean_of_the_log():
    assert pulled(ct.LoggedArms(REWARDS), 0, 20_000) / 20_000 == pytest.approx(np.mean(REWARDS[0]), abs=0.02)


def test_replayed_rewards_come_once_each_and_are_dealt_to_the_agents_in_turn():
    arms = ct.LoggedArms(REWARDS, replay=True, dealt_to=2)
    first, second = Draws(1, 0), Draws(1, 1)
    assert [pulled(arms, 0, 1, draws=first) for _ in range(2)] == [0.0, 0.5]
    assert pulled(arms, 0, 2, draws=second) == 1.25
    with pytest.raises(
        ct.PullError, match="candidate '0' has 2 logged rewards for agent 0, but 3 pulls were requested"
    ):
        pulled(arms, 0, 1, draws=first)


def test_a_whole_run_can_be_replayed_and_resumed(tmp_path):
    rng = np.random.default_rng(1)
    rewards = [(rng.random(600) < mean).astype(float) for mean in (0.2, 0.5, 0.8)]
    arms = ct.LoggedArms(rewards, replay=True, dealt_to=2)
    asked: dict[str, Any] = {"agents": 2, "horizon": 150, "seed": 1, "algorithm": "kzz"}
    path = tmp_path / "run.ctlog"
    result = ct.identify(arms, 1, checkpoint=path, **asked)
    assert result.top == [2]
    path.write_bytes(path.read_bytes()[:-200])
    assert ct.resume(path, arms=arms, team="threads") == result


def test_rewards_by_agent_are_non_iid():
    arms = ct.LoggedArms([[[0.0], [1.0]], [[0.5], [0.75]]])
    assert (arms.agents, arms.iid) == (2, False)
    assert [pulled(arms, 0, 3, agent) for agent in (0, 1)] == [0.0, 3.0]


@pytest.mark.parametrize(
    ("rewards", "more", "message"),
    [
        ([], {}, "n is 0"),
        ([[]], {}, r"rewards\[0\] is empty, but each candidate needs at least 1 reward"),
        ([[0.5], [1.5]], {}, r"rewards\[1\]\[0\] is 1.5"),
        ([["x"]], {}, r"rewards\[0\] is .* but numbers are needed"),
        ([[[0.5], [0.5]], [[0.5]]], {}, "more agents for some candidates than for others"),
        ([[0.5]], {"replay": True}, "dealt_to is missing"),
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
    assert pulled(arms, 1, 4) == 4.0


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
