"""A result: the answer in the user's words, what it cost, and a table that can be read."""

from __future__ import annotations

import json

import numpy as np
import pytest

import collabtop as ct

LABELS = ["w", "x", "y", "z"]


def run(labels=LABELS, m=2, seed=7, algorithm="kzz", **more):
    arms = ct.BernoulliArms([0.2, 0.9, 0.5, 0.4], labels=labels)
    return ct.identify(arms, m, agents=3, horizon=1_000, algorithm=algorithm, seed=seed, **more)


def test_the_answer_is_in_labels_best_first_and_in_numbers_where_there_are_none():
    assert run().top == ["x", "y"]
    assert run().top_indices == [1, 2]
    assert run(labels=None).top == [1, 2]


def test_best_first_is_by_the_means_that_were_measured():
    result = run(m=2, algorithm="uniform")
    means = [result.estimates[arm].mean for arm in result.top_indices]
    assert means == sorted(means, reverse=True)


def test_costs_are_those_of_the_rounds_added_up():
    result = run()
    assert result.time == sum(one.time for one in result.rounds) <= 1_000
    assert result.words == sum(one.words for one in result.rounds) == result.ledger.words
    assert result.bits == sum(one.bits for one in result.rounds) == result.ledger.bits
    assert result.round_trips == sum(one.round_trips for one in result.rounds)
    assert result.pulls == sum(result.pulls_by_arm) == int(result.observed.pulls.sum())


def test_json_holds_everything_and_no_machine_or_clock_in_it():
    result = run()
    told = json.loads(result.to_json())
    assert told == json.loads(run().to_json())
    assert told["top"] == ["x", "y"]
    assert told["algorithm"] == "kzz"
    assert {name: told[name] for name in ("n", "m", "agents", "horizon", "seed")} == {
        "n": 4,
        "m": 2,
        "agents": 3,
        "horizon": 1_000,
        "seed": 7,
    }
    assert sum(entry["words"] for entry in told["ledger"]) == told["words"]
    assert [one["label"] for one in told["estimates"]] == LABELS
    assert {one["verdict"] for one in told["estimates"]} == {"accepted", "rejected"}
    assert "seconds" not in result.to_json()


def test_what_is_not_known_is_null_in_json():
    arms = ct.BernoulliArms(np.random.default_rng(1).uniform(0.1, 0.9, 200))
    result = ct.identify(arms, 1, agents=2, horizon=5_000, algorithm="collab-top-iid", seed=1)
    told = json.loads(result.to_json())
    assert any(one["mean"] is None and one["pulls"] is None for one in told["estimates"])
    assert None in result.pulls_by_arm


def test_results_are_equal_if_all_but_the_place_of_the_agents_is():
    assert run() == run()
    assert run() != run(seed=8)
    assert run() != run(labels=None)
    assert run() != "a result"
    with pytest.raises(TypeError, match="unhashable"):
        hash(run())


def test_print_gives_a_table_that_can_be_read():
    result = run(labels=["Heat", "Fargo", "Gigli", "Alien"])
    text = str(result)
    assert max(map(len, text.splitlines())) <= 100
    assert "\x1b" not in text
    text = " ".join(text.split())
    assert "The best 2 of 4 arms by kzz, 3 agents, seed 7" in text
    for needed in (
        "place",
        "evidence",
        "arm",
        "mean",
        "pulls",
        "Fargo",
        "Gigli",
        f"words {result.words:,}",
        f"time {result.time:,}",
    ):
        assert needed in text
    assert "Heat" not in text


def test_labels_with_square_brackets_are_printed_as_they_are():
    arms = ct.BernoulliArms([0.9, 0.1], labels=["[bold]Heat[/bold]", "x"])
    text = str(ct.identify(arms, 1, agents=1, horizon=100, algorithm="uniform", seed=1))
    assert "[bold]Heat[/bold]" in text


def test_an_answer_without_a_mean_is_printed_too():
    assert "-" in str(ct.identify(ct.BernoulliArms([0.5, 0.6]), 2, agents=1, horizon=1))


def test_repr_is_one_short_line():
    assert repr(run()) == f"<Result of kzz: top ['x', 'y'], time {run().time:,}, words {run().words:,}>"


def test_observed_is_all_that_the_agents_saw():
    result = run(algorithm="uniform")
    assert result.observed.pulls.tolist() == [750] * 4
    assert result.observed.means == pytest.approx([one.mean for one in result.estimates])
    nothing = ct.identify(ct.BernoulliArms([0.5]), 1, agents=1, horizon=1).observed
    assert nothing.pulls.tolist() == [0]
    assert np.isnan(nothing.means).all()
