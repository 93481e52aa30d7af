"""Checkpoints: a run that goes on comes to the same answer and ledger, and pays for nothing twice."""

from __future__ import annotations

import numpy as np
import pytest

import collabtop as ct
from collabtop.runlog.file import RunLog, open_log, read_log
from collabtop.runlog.format import Exchange, Rewards, StudyHeader
from tests.support.accepted import accepted_setting
from tests.support.resumable import MEANS, Counted, identify


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.ctlog"


@pytest.mark.parametrize("team", ["local", "threads"])
@pytest.mark.parametrize("algorithm", ct.available_algorithms())
def test_a_finished_run_is_told_again_without_a_pull(algorithm, team, path, tmp_path):
    pull, m = Counted(tmp_path / "calls"), 1
    _, agents = accepted_setting(algorithm, m, 3)
    asked = {"agents": agents, "horizon": 60, "seed": 5, "team": team, "algorithm": algorithm}
    plain = ct.identify(MEANS, m, pull=pull, **asked)
    with_log = ct.identify(MEANS, m, pull=pull, checkpoint=path, **asked)
    calls = len(pull.calls())
    assert with_log == plain
    again = ct.resume(path, pull=pull)
    assert (again, again.ledger) == (plain, plain.ledger)
    assert again.observed.pulls.tolist() == plain.observed.pulls.tolist()
    assert ct.identify(MEANS, m, pull=pull, checkpoint=path, **asked) == plain
    assert len(pull.calls()) == calls


@pytest.mark.parametrize("team", ["local", "threads"])
def test_cut_off_after_any_number_of_bytes_the_run_goes_on_and_pays_only_for_what_is_missing(team, path, tmp_path):
    pull = Counted(tmp_path / "calls")
    whole = identify(pull, path)
    data, pulls = path.read_bytes(), whole.pulls
    for length in np.linspace(0, len(data), 25).astype(int):
        path.write_bytes(data[:length])
        records = read_log(path)
        if not records:
            continue
        known, before = sum(len(it.rewards) // 8 for it in records if isinstance(it, Rewards)), len(pull.calls())
        resumed = ct.resume(path, pull=pull, team=team)
        assert (resumed, resumed.ledger) == (whole, whole.ledger)
        assert len(pull.calls()) - before == pulls - known


@pytest.mark.parametrize("team", ["local", "threads"])
def test_what_was_paid_for_before_a_failure_is_kept(team, path, tmp_path):
    pull = Counted(tmp_path / "calls")
    calls = []

    def breaks(mean, rng):
        calls.append(mean)
        if len(calls) == 50:
            raise ConnectionError("out of credit")
        return pull(mean, rng)

    with pytest.raises(ct.PullError, match="out of credit"):
        identify(breaks, path, team=team)
    paid = len(pull.calls())
    result = ct.resume(path, pull=pull, team=team)
    assert result == identify(Counted(tmp_path / "other"))
    assert len(pull.calls()) == result.pulls
    assert paid >= 49


@pytest.mark.parametrize(("failures", "other"), [("skip", "zero"), ("zero", "raise")])
def test_skipped_and_zeroed_pulls_are_remembered_and_stay_what_they_were(failures, other, path):
    def flaky(mean, rng):
        return mean if rng.random() < 0.8 else None

    def never(mean, rng):
        raise AssertionError("something was pulled")

    whole = identify(flaky, path, policy=ct.PullPolicy(failures=failures))
    for policy in (None, ct.PullPolicy(failures=failures)):
        again = ct.resume(path, pull=never, policy=policy)
        assert (again, again.failures) == (whole, whole.failures)
    assert sum(again.failures.values()) > 3
    with pytest.raises(
        ct.FileError, match=f"handled with failures='{failures}', so the run cannot continue with failures='{other}'"
    ):
        ct.resume(path, pull=flaky, policy=ct.PullPolicy(failures=other))


@pytest.mark.parametrize("team", ["local", "threads"])
@pytest.mark.parametrize("replace", [True, False])
def test_examples_go_on_where_they_were(team, replace, path):
    seen = []

    def score(candidate, example):
        seen.append(example)
        return example / 20

    arms = ct.DatasetArms([1, 2, 3], list(range(20)), score, replace=replace)
    whole = ct.identify(arms, 1, agents=2, horizon=60, seed=1, checkpoint=path)
    data = path.read_bytes()
    for share in (0.3, 0.7):
        path.write_bytes(data[: int(len(data) * share)])
        assert ct.resume(path, arms=arms, team=team) == whole
    with pytest.raises(ct.FileError, match="its candidates are different"):
        ct.resume(path, arms=ct.DatasetArms([1, 2, 3], list(range(1, 21)), score, replace=replace))


class Meters(ct.Arms):
    """Somebody's own arms that give sums, draw from the common generator, and cost money."""

    pulled = 0

    def pull(self, arms, times, draws):
        self.pulled += int(np.broadcast_to(times, arms.shape).sum())
        return draws.bulk.binomial(times, (arms + 1) / (self.n + 1)).astype(float)


def test_arms_that_give_sums_are_not_pulled_again_and_their_generator_goes_on(path):
    whole = ct.identify(Meters(9), 2, agents=3, horizon=200, seed=1, checkpoint=path)
    data = path.read_bytes()
    for share in (0.4, 0.6, 0.8, 1.0):
        path.write_bytes(data[: int(len(data) * share)])
        arms = Meters(9)
        assert ct.resume(path, arms=arms) == whole
        assert arms.pulled < whole.pulls
    assert arms.pulled == 0


def test_simulated_arms_can_be_resumed_too(path):
    arms = ct.BernoulliArms(np.linspace(0.1, 0.9, 30))
    whole = ct.identify(arms, 2, agents=3, horizon=2_000, seed=1, checkpoint=path)
    path.write_bytes(path.read_bytes()[:-400])
    assert ct.resume(path, arms=arms) == whole
    with pytest.raises(ct.FileError, match="its candidates are different"):
        ct.resume(path, arms=ct.BernoulliArms(np.linspace(0.1, 0.8, 30)))


def score(mean, rng):
    return rng.random() < mean


@pytest.mark.parametrize(
    ("candidates", "more", "said"),
    [
        (MEANS, {"m": 3}, "m is 2 there and 3 here"),
        (MEANS, {"agents": 4}, "agents is 3 there and 4 here"),
        (MEANS, {"horizon": 41}, "horizon is 40 there and 41 here"),
        (MEANS, {"seed": 6}, "seed is 5 there and 6 here"),
        (MEANS, {"algorithm": "kzz"}, "algorithm is '.*' there and 'kzz' here"),
        (MEANS[:5], {}, "the number of candidates is 6 there and 5 here"),
        (MEANS[::-1], {}, "its candidates are different"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused_and_left_alone(candidates, more, said, path):
    identify(score, path)
    data = path.read_bytes()
    asked = {"m": 2, "agents": 3, "horizon": 40, "seed": 5, **more}
    with pytest.raises(ct.FileError, match=said):
        ct.identify(candidates, pull=score, checkpoint=path, **asked)
    assert path.read_bytes() == data


def test_the_options_of_the_algorithm_belong_to_the_run(path):
    asked = {"pull": score, "m": 1, "agents": 2, "horizon": 400, "algorithm": "collab-top-iid", "checkpoint": path}
    ct.identify(MEANS, options={"schedule": "full"}, **asked)
    with pytest.raises(ct.FileError, match=r"the algorithm.s options is .*full.* there and .*paper"):
        ct.identify(MEANS, options={"schedule": "paper"}, **asked)


def test_a_seed_that_is_left_out_is_that_of_the_checkpoint(path):
    first = identify(score, path, seed=None)
    assert identify(score, path, seed=None) == first


def test_candidates_that_are_no_plain_data_have_to_be_given_again(path):
    class Model:
        def __init__(self, mean):
            self.mean = mean

    def pull(model, rng):
        return rng.random() < model.mean

    models = [Model(mean) for mean in MEANS]
    first = ct.identify(models, 1, pull=pull, agents=2, horizon=40, checkpoint=path)
    with pytest.raises(ct.InputError, match=r"candidates is missing: those of checkpoint .* are not plain data"):
        ct.resume(path, pull=pull)
    assert ct.resume(path, pull=pull, candidates=models) == first
    with pytest.raises(ct.FileError, match="the number of candidates is 6 there and 5 here"):
        ct.resume(path, pull=pull, candidates=models[:5])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "pull is missing"),
        ({"pull": score, "arms": ct.BernoulliArms([0.5])}, "do not apply with arms="),
        ({"pull": score, "candidates": "abc"}, "candidates is one string"),
        ({"pull": score, "algorithm": ct.KZZ()}, "algorithm is '.*' there and 'kzz' here"),
        ({"pull": score, "team": "mars"}, "team is 'mars'"),
    ],
)
def test_what_resume_lacks_is_said(more, said, path):
    identify(score, path)
    with pytest.raises(ct.InputError, match=said):
        ct.resume(path, **more)


def test_resume_needs_a_checkpoint(tmp_path):
    with pytest.raises(ct.FileError, match="no such file"):
        ct.resume(tmp_path / "none", pull=score)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(ct.FileError, match="holds no run yet"):
        ct.resume(tmp_path / "empty", pull=score)


def test_an_exchange_that_comes_out_differently_is_noticed(path):
    identify(score, path)
    records = read_log(path)
    path.unlink()
    log = RunLog(path)
    for record in records:
        if isinstance(record, Exchange) and record.number == 1:
            record = Exchange(1, record.messages, record.requests, [(0, 1, 0)])
        log.append(record)
    log.close()
    with pytest.raises(ct.FileError, match="does not fit this run: exchange 1 differs from the logged one"):
        ct.resume(path, pull=score)


def test_options_that_are_numpy_numbers_are_kept_in_a_checkpoint(tmp_path):
    run = {"agents": 2, "confidence": np.float64(0.9), "seed": 1, "checkpoint": tmp_path / "run.ctlog"}
    arms = ct.BernoulliArms([0.9, 0.1])
    assert ct.identify(arms, 1, **run) == ct.identify(arms, 1, **run)


def test_the_journal_of_a_study_is_no_checkpoint(tmp_path):
    arms = ct.BernoulliArms([0.9, 0.1])
    log = open_log(tmp_path / "journal", StudyHeader("mine"), lambda record: None)
    log.close()
    with pytest.raises(ct.FileError, match="belongs to a different run: it is not the log of a run"):
        ct.identify(arms, 1, agents=2, horizon=20, checkpoint=tmp_path / "journal")


@pytest.mark.parametrize("algorithm", ["kzz", 5])
def test_resume_takes_an_algorithm_object_only(tmp_path, algorithm):
    arms = ct.BernoulliArms([0.9, 0.1])
    ct.identify(arms, 1, agents=2, horizon=20, seed=1, checkpoint=tmp_path / "run.ctlog")
    with pytest.raises(ct.InputError, match=r"algorithm is .*, but an algorithm object is needed"):
        ct.resume(tmp_path / "run.ctlog", arms=arms, algorithm=algorithm)
