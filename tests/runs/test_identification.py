"""identify: arguments are checked before anything is pulled, a choice is made where none was, and mirrored runs."""

from __future__ import annotations

import numpy as np
import pytest

import collabtop as ct
from collabtop.testing import ConstantArms

ARMS = ct.BernoulliArms([0.2, 0.9, 0.5, 0.4], labels=["w", "x", "y", "z"])
MIXED = ct.HeterogeneousArms([[0.9, 0.1], [0.6, 0.7], [0.2, 0.2]])


def identify(arms=ARMS, m=1, agents=2, horizon=100, **more):
    return ct.identify(arms, m, agents=agents, horizon=horizon, **more)


class NeverPulled(ct.Arms):
    """Arms that must not be touched."""

    def pull(self, arms, times, draws):
        raise AssertionError("something was pulled")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"m": 0}, "m is 0, but a whole number of at least 1 is needed"),
        ({"m": -1}, "m is -1"),
        ({"m": 5}, "m is 5, but there are only 4 arms"),
        ({"m": 1.5}, "m is 1.5, but a whole number of at least 1 is needed"),
        ({"m": True}, "m is True"),
        ({"m": None}, "m is None"),
        ({"agents": 0}, "agents is 0, but a whole number of at least 1 is needed"),
        ({"agents": None}, "agents is missing"),
        ({"agents": "ten"}, "agents is 'ten', but a whole number of at least 1 is needed"),
        ({"horizon": 0}, "horizon is 0, but a whole number of at least 1 is needed"),
        ({"horizon": 1e6}, "horizon is 1000000.0, but a whole number of at least 1 is needed"),
        ({"horizon": float("nan")}, "horizon is nan"),
        ({"seed": -1}, "seed is -1, but a whole number of at least 0 is needed"),
        ({"seed": "x"}, "seed is 'x'"),
        ({"algorithm": "best"}, "algorithm is 'best', but one of these is needed: .*collab-top-iid"),
        ({"algorithm": 3}, "algorithm is 3, but a name or an algorithm object is needed"),
        ({"algorithm": ct.KZZ}, "but a name or an algorithm object is needed"),
        ({"algorithm": "kzz", "options": {"speed": 1}}, "speed is not an option of kzz"),
        ({"algorithm": ct.KZZ(), "options": {"balanced": True}}, "this algorithm object has its own"),
        ({"options": {"schedule": "full"}}, r"options has \['schedule'\], but algorithm is 'auto'"),
        ({"algorithm": "collab-top-iid", "options": {"schedule": "lazy"}}, "schedule is 'lazy'"),
        ({"algorithm": "sar"}, "agents is 2, but sar runs with 1 agent"),
        ({"algorithm": "sequential-halving", "agents": 1, "m": 2}, "m is 2, but sequential-halving"),
        ({"team": "mars"}, "team is 'mars', but 'local', 'threads', 'processes', 'ray' or a team object is needed"),
        ({"horizon": 3, "algorithm": "uniform"}, "horizon is 3, but 4 arms and 2 agents need at least 4 with uniform"),
    ],
)
def test_bad_arguments_are_errors_that_name_them_before_anything_is_pulled(more, said):
    with pytest.raises(ct.InputError, match=said):
        identify(**{"arms": NeverPulled(4), **more})


@pytest.mark.parametrize("arms", [[0.5, 0.6], np.array([0.5, 0.6]), None, ct.BernoulliArms])
def test_arms_have_to_be_arms(arms):
    with pytest.raises(ct.InputError, match=r"arms is a \w+, but arms are needed"):
        identify(arms=arms)


@pytest.mark.parametrize("algorithm", ["collab-top-iid", "kzz", "kzz-balanced"])
def test_iid_algorithms_refuse_heterogeneous_arms_and_say_why(algorithm):
    with pytest.raises(ct.SettingError, match=rf"{algorithm} divides the arms .*algorithm='auto' chooses"):
        ct.identify(MIXED, 1, horizon=10_000, algorithm=algorithm)


def test_heterogeneous_arms_know_the_number_of_their_agents():
    assert ct.identify(MIXED, 1, horizon=1_000, algorithm="uniform").agents == 2
    with pytest.raises(ct.InputError, match="agents is 3, but these arms are for 2 agents"):
        identify(MIXED, agents=3)


def test_left_out_the_algorithm_is_chosen_by_the_kind_of_arms_and_the_result_says_so():
    iid, mixed = identify(), ct.identify(MIXED, 1, horizon=1_000)
    assert iid.algorithm == "frugal-top"
    assert mixed.algorithm == "frugal-top-noniid"
    assert "all agents see the same arms" in iid.why
    assert "arms differ between agents" in mixed.why
    assert identify(algorithm="kzz").why == "requested"


def test_numbers_may_be_numpys_and_come_back_as_pythons():
    result = identify(m=np.int64(1), agents=np.int32(2), horizon=np.int64(100), seed=np.uint8(3))
    assert result == identify(seed=3)
    plain = [result.time, result.words, result.bits, result.round_trips, result.pulls, *result.top_indices]
    plain += [result.seed, result.n, result.m, result.agents, result.horizon]
    assert {type(number) for number in plain} == {int}


def test_a_seed_that_is_left_out_is_drawn_and_reported():
    first, second = identify(horizon=1_000), identify(horizon=1_000)
    assert first.seed != second.seed
    assert identify(horizon=1_000, seed=first.seed) == first


@pytest.mark.parametrize("algorithm", ["collab-top-iid", "collab-top-noniid", "kzz", "kzz-balanced", "uniform"])
def test_all_arms_wanted_means_no_pulls_no_words_and_any_horizon(algorithm):
    result = ct.identify(NeverPulled(4), 4, agents=3, horizon=1, algorithm=algorithm)
    assert result.top == [0, 1, 2, 3]
    assert (result.pulls, result.words, result.time, result.round_trips, result.rounds) == (0, 0, 0, 0, ())


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("algorithm", ["collab-top-iid", "collab-top-noniid", "kzz", "uniform"])
def test_for_more_than_half_of_the_arms_the_worst_are_looked_for(algorithm, m):
    result = identify(ConstantArms([0.25, 1.0, 0.5, 0.75]), m=m, algorithm=algorithm, seed=1)
    assert set(result.top) == set([1, 3, 2, 0][:m])
    for one in result.estimates:
        if one.mean is not None:  # told the right way round again
            assert one.mean == [0.25, 1.0, 0.5, 0.75][one.arm]
    seen = result.observed
    assert seen.means[seen.pulls > 0] == pytest.approx(np.array([0.25, 1.0, 0.5, 0.75])[seen.pulls > 0])


def test_an_algorithm_that_accepts_too_few_is_found_out():
    class Forgetful(ct.Uniform):
        def run(self, coordinator, problem, rng):
            pass

    with pytest.raises(ct.ProtocolError, match="uniform accepted 0 arms instead of 1"):
        identify(algorithm=Forgetful())


def test_an_algorithm_that_runs_past_the_horizon_is_stopped():
    class Greedy(ct.Uniform):
        def run(self, coordinator, problem, rng):
            super().run(coordinator, ct.Problem(problem.n, problem.m, problem.agents, 2 * problem.horizon), rng)

    with pytest.raises(ct.ProtocolError, match="past the horizon"):
        identify(algorithm=Greedy())
