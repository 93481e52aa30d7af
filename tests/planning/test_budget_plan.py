"""What a budget buys, from a pilot, a stated spread, a gap or means."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import collabtop as ct

QUICK: dict[str, Any] = {"seconds": 20, "jobs": 1, "algorithms": ["frugal-top", "uniform"]}


def pilot_of(means, pulls, seed=1, **more):
    rng = np.random.default_rng(seed)
    return ct.LoggedArms([rng.binomial(1, mean, pulls).tolist() for mean in means], **more)


@pytest.fixture(scope="module")
def means():
    return np.random.default_rng(5).beta(6, 10, 60)


@pytest.fixture(scope="module")
def bought(means):
    return ct.plan(budget=6_000, n=60, m=5, pilot=pilot_of(means, 20), **QUICK)


def test_every_algorithm_has_what_it_buys_within_the_budget_the_best_first(bought):
    assert {row.algorithm for row in bought.rows} == {"frugal-top", "uniform"}
    assert bought.rows[0].regret.mean <= bought.rows[1].regret.mean
    for row in bought.rows:
        assert 5_900 <= row.pulls <= 6_000
        assert row.cost == row.pulls
        assert 0 <= row.exact.mean <= row.close.mean <= 1
        for value in (row.exact, row.close, row.regret):
            assert 0 <= value.low <= value.mean <= value.high
        assert row.resolution > 0
        assert row.seconds is None


def test_the_regret_and_the_probabilities_are_those_of_real_runs(means):
    # Over pilots and candidates drawn anew, what runs lose agrees with what was predicted from the pilots.
    predicted, seen, right, expected = [], [], [], []
    for seed in range(12):
        true = np.random.default_rng([seed, 5]).beta(6, 10, 40)
        made = ct.plan(
            budget=4_000,
            m=4,
            pilot=pilot_of(true, 20, seed),
            algorithms=["uniform"],
            agents=1,
            seconds=20,
            jobs=1,
        )
        (row,) = made.rows
        arms = ct.BernoulliArms(true)
        for run in range(6):
            top = ct.identify(arms, 4, agents=1, horizon=row.horizon, algorithm="uniform", seed=run).top_indices
            seen.append(np.sort(true)[-4:].mean() - true[top].mean())
            right.append(ct.problem.is_best(true, top))
        predicted.append(row.regret.mean)
        expected.append(row.exact.mean)
    assert 0.6 < np.mean(seen) / np.mean(predicted) < 1.6
    assert abs(np.mean(right) - np.mean(expected)) < 0.15


def test_more_money_means_less_regret_and_a_finer_resolution():
    small, large = (
        ct.plan(budget=budget, n=50, m=3, spread=(0.2, 0.6), algorithms=["kzz"], seconds=20, jobs=1).rows[0]
        for budget in (1_000, 20_000)
    )
    assert large.regret.mean < small.regret.mean / 2
    assert large.resolution < small.resolution
    assert large.exact.mean > small.exact.mean


def test_means_and_gaps_are_certain_so_that_the_interval_is_that_of_the_simulation():
    (row,) = ct.plan(budget=2_000, n=20, m=2, gap=0.3, algorithms=["kzz"], seconds=20, jobs=1).rows
    study = ct.Study(
        arms=ct.datasets.equal_gaps(20, 2, 0.3), algorithms="kzz", m=2, agents=1, horizon=row.horizon, runs=400
    )
    assert row.exact.low - 0.05 <= 1 - study.run(jobs=1).points()[0].error <= row.exact.high + 0.05
    assert row.exact.high - row.exact.low < 0.06
    assert row.exact.mean == pytest.approx(row.close.mean)  # the gap is larger than the tolerance
    same = ct.plan(budget=2_000, m=2, means=ct.datasets.equal_gaps(20, 2, 0.3), algorithms=["kzz"], jobs=1).rows
    assert same[0].horizon == row.horizon


def test_rewards_with_little_noise_need_fewer_pulls():
    rng = np.random.default_rng(2)
    centres = rng.uniform(0.3, 0.7, 30)
    quiet = ct.LoggedArms([np.clip(rng.normal(centre, 0.05, 30), 0, 1).tolist() for centre in centres])
    loud = pilot_of(centres, 30)
    regrets = [
        ct.plan(budget=1_500, m=3, pilot=pilot, algorithms=["uniform"], seconds=20, jobs=1).rows[0].regret.mean
        for pilot in (quiet, loud)
    ]
    assert regrets[0] < 0.5 * regrets[1]


def test_a_csv_file_and_a_checkpoint_are_pilots_too(tmp_path, means):
    rows = "".join(f"c{arm},{reward}\n" for arm in range(4) for reward in (0, 1, arm % 2))
    (tmp_path / "pilot.csv").write_text("candidate,reward\n" + rows)
    from_csv = ct.plan(budget=500, m=1, pilot=tmp_path / "pilot.csv", **QUICK)
    assert (from_csv.n, from_csv.agents) == (4, 1)
    assert "12 pulls of 4 candidates" in from_csv.instance
    log = tmp_path / "run.ctlog"
    ct.identify(["a", "b", "c"], 1, agents=2, horizon=30, pull=lambda arm, rng: arm == "b", seed=1, checkpoint=log)
    from_log = ct.plan(budget=500, n=10, m=1, pilot=str(log), **QUICK)
    assert (from_log.n, from_log.agents) == (10, 2)
    assert "of 3 candidates" in from_log.instance


def test_time_and_money_are_in_the_users_unit():
    made = ct.plan(
        budget=10, cost=0.01, n=20, m=2, agents=4, spread=(0.1, 0.9), pull_seconds=3, seconds=20, jobs=1,
        algorithms=["frugal-top"],
    )  # fmt: skip
    (row,) = made.rows
    assert row.cost <= 10
    assert 950 <= row.pulls <= 1_000
    assert row.seconds == 3 * row.time
    assert row.time <= 250
    text = str(made)
    assert "min" in text
    assert "budget of 10" in text


def test_rewards_with_bounds_of_their_own_have_regret_in_their_unit(means):
    plain = pilot_of(means, 20)
    rng = np.random.default_rng(1)
    scaled = ct.LoggedArms([(100 * rng.binomial(1, mean, 20)).tolist() for mean in means], bounds=(0, 100))
    rows = [
        ct.plan(budget=3_000, m=5, pilot=pilot, algorithms=["uniform"], jobs=1).rows[0] for pilot in (plain, scaled)
    ]
    assert rows[1].regret.mean == pytest.approx(100 * rows[0].regret.mean)
    assert rows[1].resolution == pytest.approx(100 * rows[0].resolution)


def test_a_plan_is_shown_in_a_terminal_a_notebook_and_as_json(bought):
    assert "exactly right" in str(bought)
    assert "within 0.02" in str(bought)
    assert json.loads(bought.to_json()) == bought.to_dict()


def cells_of(html):
    """The rows of all tables, each as the texts of its cells."""
    return [re.findall("<t[hd]>(.*?)</t[hd]>", row) for row in re.findall("<tr>(.*?)</tr>", html)]


def test_the_html_of_a_budget_has_all_that_it_buys(bought):
    html = bought._repr_html_()
    assert html.startswith("<p>The best 5 of 60 candidates for a budget of 6,000: a pilot of 1,200 pulls of 60 cand")
    assert "Resolution: the smallest difference that shows in 95% of runs." in html
    head, *rows = cells_of(html)
    assert head == ["algorithm", "exactly right", "within 0.02", "regret", "resolution", "time", "pulls", "cost"]
    assert len(rows) == len(bought.rows)
    for row, shown in zip(bought.rows, rows, strict=True):
        exact, close, regret = row.exact, row.close, row.regret
        assert shown == [
            row.algorithm,
            f"{100 * exact.mean:.0f}% ({100 * exact.low:.0f} to {100 * exact.high:.0f})",
            f"{100 * close.mean:.0f}% ({100 * close.low:.0f} to {100 * close.high:.0f})",
            f"{regret.mean:.3g} ({regret.low:.2g} to {regret.high:.2g})",
            f"{row.resolution:.2g}",
            f"{row.time:,}",
            f"{row.pulls:,}",
            f"{row.pulls:,}",
        ]


def test_the_html_of_a_plan_has_what_was_simulated_and_what_is_proved():
    chosen: dict[str, Any] = {"gap": 0.4, "algorithms": ["frugal-top", "uniform"], "error": [0.2], "jobs": 1}
    plan = ct.plan(8, 1, 2, runs=600, seconds=20, **chosen)
    html = plan._repr_html_()
    assert html.startswith("<p>The best 1 of 8 arms with 2 agents: equal gaps of 0.4, the hardest")
    assert f"<p>gap at the border 0.4   H {plan.complexity:,.4g}   H / K {plan.complexity / 2:,.4g}</p>" in html
    assert "<p>By simulation</p><table>" in html
    simulated, proved = (cells_of(part) for part in html.split("<p>By proof</p>"))
    assert simulated[0] == ["algorithm", "error", "horizon", "95% interval", "words", "bits", "trips", "note"]
    assert proved[0] == ["algorithm", "error", "enough horizon", "most words", "most trips"]
    for row, measured, bound in zip(plan.rows, simulated[1:], proved[1:], strict=True):
        assert measured[:4] == [row.title, "0.2", f"{row.horizon:,}", f"{row.horizon_low:,} to {row.horizon_high:,}"]
        assert measured[4:] == [f"{row.words:,.0f}", f"{row.bits:,.0f}", f"{row.round_trips:,.0f}", row.note]
        enough = "-" if row.bound_horizon is None else f"{row.bound_horizon:,}"
        assert bound == [row.title, "0.2", enough, f"{row.bound_words:,}", f"{row.bound_round_trips:,}"]
    bounds = ct.plan(8, 1, 2, simulate=False, **chosen)._repr_html_()
    assert "By simulation" not in bounds
    assert cells_of(bounds) == proved


def test_the_html_of_a_dry_run_has_every_round():
    forecast = ct.dry_run(["a<b", "c"], m=1, agents=2, budget=100)
    html = forecast._repr_html_()
    assert html.startswith("<p>A dry run of ")
    head, *rows = cells_of(html)
    assert head == ["round", "phase", "open", "pulls each", "so far", "time", "words"]
    expected = [[str(row.round), row.phase, f"{row.live}"] for row in forecast.rounds]
    assert [shown[:3] for shown in rows] == expected
    assert f"cost at most {forecast.most_cost:,.10g}" in html


def test_the_same_seed_gives_the_same_plan(means):
    plans = [ct.plan(budget=900, m=2, pilot=pilot_of(means, 5), seed=4, **QUICK) for _ in range(2)]
    assert plans[0] == plans[1]


def test_an_algorithm_that_is_too_expensive_is_left_out():
    names = {row.algorithm for row in ct.plan(budget=200, n=100, m=1, gap=0.3, jobs=1).rows}
    assert "uniform" in names
    assert "kzz" not in names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give exactly one of pilot, spread, gap and means: none was given"),
        ({"gap": 0.1, "spread": (0, 1)}, "spread and gap were given"),
        ({"budget": 0, "gap": 0.1}, "budget is 0"),
        ({"budget": "much", "gap": 0.1}, "budget is 'much'"),
        ({"budget": 5, "gap": 0.1}, "budget is 5, but 8 candidates"),
        ({"spread": 0.3}, "spread is 0.3, but two numbers are needed"),
        ({"spread": (0.6, 0.2)}, "0 <= low < high <= 1 is needed"),
        ({"spread": (0.2, 0.6), "n": None}, "n is missing: a spread does not tell"),
        ({"spread": (0.2, 0.6), "m": 8}, "m is 8, but at most 7 of 8 arms can be planned for"),
        ({"spread": (0.2, 0.6), "m": None}, "m is missing"),
        ({"gap": 0.1, "tolerance": 1.5}, "tolerance is 1.5, but at least 0 and less than 1 is needed"),
        ({"gap": 0.1, "cost": -1}, "cost"),
        ({"gap": 0.1, "pull_seconds": 0}, "pull_seconds is 0"),
        ({"gap": 0.1, "agents": 0}, "agents is 0"),
        ({"gap": 0.1, "algorithms": ["confident-top"]}, "confident-top has no batched simulation"),
        ({"means": [[0.5, 0.4]] * 8, "agents": 2}, "means differ between agents"),
        ({"pilot": 3}, "pilot is 3, but LoggedArms, a CSV file of rewards or a checkpoint is needed"),
        ({"pilot": ct.LoggedArms([[1, 0]] * 9)}, "n is 8, but the pilot has 9 candidates"),
        ({"pilot": ct.LoggedArms([[1, 0]])}, "pilot has rewards of 1 candidates, but at least 2 are needed"),
        ({"pilot": ct.LoggedArms([[[1], [0]]] * 8)}, "pilot has different rewards for each agent"),
        ({"pilot": ct.LoggedArms([[1, 7]] * 8, bounds=None)}, "pilot has rewards without bounds"),
        ({"pilot": "nowhere.ctlog"}, "nowhere.ctlog"),
        ({"pilot": "nowhere.csv"}, "nowhere.csv"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(arguments, message):
    with pytest.raises(ct.CollabtopError, match=message.replace("(", r"\(").replace(")", r"\)")):
        ct.plan(**{"n": 8, "m": 1, "budget": 1_000, "jobs": 1, **arguments})


@pytest.mark.parametrize("name", ["pilot", "spread", "tolerance", "cost", "pull_seconds"])
def test_what_belongs_to_a_budget_is_refused_without_one(name):
    values: dict[str, Any] = {
        "pilot": "run.ctlog",
        "spread": (0.1, 0.2),
        "tolerance": 0.1,
        "cost": 1,
        "pull_seconds": 1,
    }
    with pytest.raises(ct.InputError, match=f"{name}= only applies with budget="):
        ct.plan(8, 1, 2, gap=0.1, **{name: values[name]})
