"""Laws of rewards in the user's unit: the answer does not depend on how a reward is written down."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collabtop as ct
from collabtop.algorithms.registry import algorithms_where


def fits(algorithm, agents, m):
    try:
        ct.make_algorithm(algorithm).check(ct.Problem(n=5, m=m, agents=agents, horizon=150))
    except ct.SettingError:
        return False
    return True


ALGORITHMS = algorithms_where(needs_bounds=False)


def reward(candidate, rng):
    return candidate / 8 + rng.random() / 2


def run(pull, algorithm, seed, m, **options):
    agents = 3 if fits(algorithm, agents=3, m=1) else 1
    m = m if fits(algorithm, agents, m) else 1
    return ct.identify(range(5), m, pull=pull, agents=agents, horizon=150, algorithm=algorithm, seed=seed, **options)


def without_unit(result):
    plain = result.to_dict()
    for key in ("direction", "bounds", "estimates", "warnings"):
        del plain[key]
    for row in plain["answer"]:
        del row["mean"], row["low"], row["high"]
    return plain


def means(result):
    return [estimate.mean for estimate in result.estimates]


def ends(result, factor=1.0):
    """The ends of the intervals of the answer times a factor, the smaller one of each first."""
    known = [(row.low, row.high) for row in result.standings if row.low is not None]
    return [end for row in known for end in sorted(factor * end for end in row)]


directions = st.sampled_from(["maximize", "minimize"])
cases = {"algorithm": st.sampled_from(ALGORITHMS), "seed": st.integers(0, 2**32), "m": st.integers(1, 5)}


@settings(max_examples=15, deadline=None)
@given(**cases, bounds=st.sampled_from([None, (0, 1.5), (-4, 2)]))
def test_minimizing_rewards_is_maximizing_their_opposites(algorithm, seed, m, bounds):
    opposite_bounds = None if bounds is None else (-bounds[1], -bounds[0])
    small = run(reward, algorithm, seed, m, direction="minimize", bounds=bounds)
    large = run(lambda c, rng: -reward(c, rng), algorithm, seed, m, bounds=opposite_bounds)
    assert without_unit(small) == without_unit(large)
    assert means(small) == [None if mean is None else pytest.approx(-mean) for mean in means(large)]
    assert ends(small) == pytest.approx(ends(large, factor=-1.0))


@settings(max_examples=15, deadline=None)
@given(
    **cases,
    bounds=st.sampled_from([(0, 1.5), (-4, 2), (-1e6, 1e6)]),
    direction=st.sampled_from(["maximize", "minimize"]),
)
def test_bounds_do_what_rescaling_by_hand_does(algorithm, seed, m, bounds, direction):
    low, high = bounds

    def rescaled(candidate, rng):
        value = reward(candidate, rng)
        return (high - value if direction == "minimize" else value - low) / (high - low)

    own = run(reward, algorithm, seed, m, direction=direction, bounds=bounds)
    by_hand = run(rescaled, algorithm, seed, m)
    assert without_unit(own) == without_unit(by_hand)


@settings(max_examples=15, deadline=None)
@given(**cases, exponent=st.integers(-40, 40))
def test_without_bounds_the_scale_of_rewards_does_not_matter(algorithm, seed, m, exponent):
    # A power of 2, so that no rounding differs.
    result = run(reward, algorithm, seed, m, bounds=None)
    scaled = run(lambda c, rng: reward(c, rng) * 2.0**exponent, algorithm, seed, m, bounds=None)
    assert without_unit(scaled) == without_unit(result)
    assert ends(scaled) == pytest.approx(ends(result, 2.0**exponent))
    assert means(scaled) == [None if mean is None else pytest.approx(mean * 2.0**exponent) for mean in means(result)]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(**cases, value=st.sampled_from([0.0, 1.0, -7.5, 1e9]))
def test_equal_rewards_without_bounds_are_ordered_at_random(algorithm, seed, m, value):
    answers = {tuple(sorted(run(lambda c, rng: value, algorithm, seed + i, m, bounds=None).top)) for i in range(12)}
    assert len(answers) > 1 or m == 5


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("bounds", [None, (0, 1e7)])
def test_a_small_difference_of_large_rewards_counts(algorithm, bounds):
    # 5 parts in 10 million: far above rounding errors, far below the rewards themselves.
    result = run(lambda c, rng: 1e6 + c * 0.5, algorithm, 3, 2, direction="minimize", bounds=bounds)
    assert set(result.top) <= {"0", "1"}


@pytest.mark.parametrize(
    "team", ["threads", *(pytest.param(team, marks=pytest.mark.slow) for team in ("processes", "ray"))]
)
@pytest.mark.parametrize("bounds", [None, (0, 9)])
def test_the_same_run_on_every_team(team, bounds):
    unit = {"direction": "minimize", "bounds": bounds}
    for algorithm in ("frugal-top", "frugal-top-noniid", "collab-top-iid"):
        assert run(reward, algorithm, 5, 2, team=team, **unit) == run(reward, algorithm, 5, 2, **unit)
