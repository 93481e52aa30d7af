"""The rules of verdicts: what decides a claim, and that more runs only ever bring the verdict nearer to the truth."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabtop.crossing import fit_crossing
from collabtop.reproduction.statements import bend, fall, spread
from collabtop.reproduction.verdicts import (
    Claim,
    Draft,
    all_of,
    any_of,
    factor,
    horizon_ratio,
    judge,
    judged,
    normal,
    quotient,
    share,
)
from collabtop.stats import simultaneous_z
from collabtop.studies.table import PointSummary

Z = simultaneous_z(100)
finite = st.floats(-1e6, 1e6)


@given(value=finite, deviation=st.floats(0, 1e6), least=finite, width=st.floats(0, 1e6), bound=st.booleans())
def test_a_claim_is_supported_only_inside_and_contradicted_only_outside(value, deviation, least, width, bound):
    part = judge(Claim("x", normal(value, deviation), least, least + width, bound=bound), Z)
    inside, outside = part.low >= least and part.high <= least + width, part.high < least or part.low > least + width
    expected = ("not contradicted" if bound else "supported") if inside else "contradicted" if outside else "undecided"
    assert part.verdict == expected


@given(value=finite, deviation=st.floats(1e-3, 1e6), least=finite, width=st.floats(0, 1e6), more=st.floats(1, 100))
def test_a_narrower_interval_around_the_same_value_never_reverses_a_verdict(value, deviation, least, width, more):
    few, many = (judge(Claim("x", normal(value, d), least, least + width), Z) for d in (deviation, deviation / more))
    assert few.verdict in ("undecided", many.verdict)


def test_a_claim_that_was_not_measured_is_undecided_and_says_why():
    part = judge(Claim("x", None, most=1, remark="too few sizes"), Z)
    assert (part.verdict, part.text) == ("undecided", "x: too few sizes: undecided")


def test_a_claim_with_a_premise_is_contradicted_only_if_the_premise_is_shown():
    def verdict(wrong, runs):
        return judge(
            Claim("bits", normal(0.5, 0.01), least=1, bound=True, premise=(share(wrong, runs), 0.01)), Z
        ).verdict

    assert verdict(0, 10_000) == "contradicted"
    assert verdict(0, 12) == "undecided"
    assert verdict(5_000, 10_000) == "not contradicted"


def test_the_intervals_are_wider_the_more_statements_a_report_has():
    one = Draft("A", "says", (Claim("x", normal(1, 0.4), least=0),), "why")
    assert judged([one])[0].verdict == "supported"
    assert judged([one] * 60)[0].verdict == "undecided"


def test_a_claim_that_decides_a_statement_alone_has_to_show_more_the_more_claims_there_are():
    def verdicts(tolerance, *, any_claim):
        claim = Claim("x", normal(1, 0.4), **tolerance)
        return [judged([Draft("A", "says", (claim,) * n, "why", any_claim=any_claim)])[0].verdict for n in (1, 60)]

    inside, outside = {"least": 0}, {"most": 0}  # 2.5 standard deviations away
    assert verdicts(inside, any_claim=False) == ["supported", "supported"]
    assert verdicts(outside, any_claim=False) == ["contradicted", "undecided"]
    assert verdicts(inside, any_claim=True) == ["supported", "undecided"]
    assert verdicts(outside, any_claim=True) == ["contradicted", "contradicted"]


@pytest.mark.parametrize("any_claim", [False, True])
@pytest.mark.parametrize("holds", [False, True])
def test_a_verdict_of_a_report_is_wrong_with_probability_of_at_most_one_in_twenty(any_claim, holds):
    """The hardest case: all claims are true, or all false, but only just.

    300 reports of ten statements with five claims: at a rate of .05, more than 28 wrong ones have probability .0006.
    """
    rng, wrong, right = np.random.default_rng(1), 0, "supported" if holds else "contradicted"
    edge = 1e-9 if holds else -1e-9
    for values in rng.standard_normal((300, 10, 5)):
        drafts = [
            Draft("A", "says", tuple(Claim("x", normal(v, 1), least=-edge) for v in row), "why", any_claim=any_claim)
            for row in values
        ]
        wrong += any(statement.verdict not in (right, "undecided") for statement in judged(drafts))
    assert wrong <= 28


def test_every_interval_that_a_claim_is_composed_of_counts():
    ratio = quotient(quotient(share(1, 10), share(5, 10)), share(9, 10))
    assert ratio.intervals == 3
    drafts = [Draft("A", "says", (Claim("x", ratio),), "why")]
    low, high = ratio.ends(simultaneous_z(3))
    assert (judged(drafts)[0].parts[0].low, judged(drafts)[0].parts[0].high) == (low, high)


def test_the_first_count_of_words_decides_and_the_headline_shows_all():
    claims = (
        Claim("ratio", factor(7.0, 0.01), 16, 25, count="every number counted"),
        Claim("ratio", factor(19.6, 0.01), 16, 25, count="without any replies"),
    )
    (statement,) = judged([Draft("C4", "says", claims, "why")])
    assert statement.verdict == "contradicted"
    assert statement.headline == "every number counted: 7.0 (contradicted); without any replies: 19.6 (supported)"


def test_verdicts_combine_over_claims():
    assert all_of([]) == any_of([]) == "undecided"
    assert all_of(["not contradicted", "not contradicted"]) == "not contradicted"
    assert any_of(["contradicted", "contradicted"]) == "contradicted"


RUNS = (12, 100, 1_000, 6_000, 40_000)
SHAPE = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 16.0])


def points(chances, rng, runs):
    """Points at horizons of 1,000 times the shape, with binomial counts of wrong answers."""
    wrong = rng.binomial(runs, chances)
    return [
        PointSummary("arms", "kzz", "{}", 1, 10, round(1_000 * x), runs, int(w), w / runs, 0, 0, runs, *[1.0] * 8)
        for x, w in zip(SHAPE, wrong, strict=True)
    ]


def falling(power):
    """An error of .5 at the second point that falls like 1/T^power; exponentially for an infinite one."""
    chances = 0.5**SHAPE if math.isinf(power) else 0.5 * SHAPE**-power
    return lambda rng, runs: Claim("C1", fall(points(np.minimum(chances, 0.95), rng, runs)), most=25)


def apart(ratio, times=1):
    def claim(rng, runs):
        many = times * runs
        fits = [
            fit_crossing(hs, rng.binomial(many, 0.01 ** (np.array(hs) / at)).tolist(), [many] * 4)
            for at in (20_000 * ratio, 20_000)
            for hs in [[round(at * x) for x in (0.5, 0.7, 1, 1.4)]]
        ]
        return Claim("C2", horizon_ratio(*fits), 1.25, 1.35)

    return claim


def below(ratio):
    def claim(rng, runs):
        ours, uniform = rng.binomial(runs, [0.5 * ratio, 0.5])
        return Claim("C7", quotient(share(int(ours), runs), share(int(uniform), runs)), most=0.5)

    return claim


def words(means, agents, rng, runs):
    sample = rng.normal(means, 0.3 * np.array(means) / math.sqrt(runs))
    return [
        PointSummary("arms", "kzz", "{}", 1, k, 100, runs, 0, 0, 0, 0, runs, mean, 0.3 * true, *[1.0] * 6)
        for k, mean, true in zip(agents, sample, means, strict=True)
    ]


def linear(power):
    agents = (2, 4, 8, 16, 32)
    return lambda rng, runs: Claim("C5", bend(words([100 * k**power for k in agents], agents, rng, runs)), 0.8, 1.25)


def flat(factor_over_t):
    means = np.geomspace(1_000, 1_000 * factor_over_t, 5).tolist()
    return lambda rng, runs: Claim("C5", spread(words(means, (10,) * 5, rng, runs)), most=1.25)


def bounded(chance):
    return lambda rng, runs: Claim("T1", share(int(rng.binomial(runs, chance)), runs), most=0.1, bound=True)


CASES = {
    "C1, exponential": (falling(math.inf), True),
    "C1, like 1/T": (falling(1.0), False),
    "C2, 1.3": (apart(1.3, times=20), True),
    "C2, 2.5": (apart(2.5), False),
    "C7, a fifth": (below(0.2), True),
    "C7, nine tenths": (below(0.9), False),
    "C5, linear": (linear(1.0), True),
    "C5, bent": (linear(0.7), False),
    "C5, flat": (flat(1.0), True),
    "C5, growing": (flat(1.8), False),
    "T1, below the bound": (bounded(0.02), True),
    "T1, above the bound": (bounded(0.2), False),
}


# With 40 repetitions, a rate that truly stays the same falls by more than .3 with probability below .5%.
@pytest.mark.parametrize("case", CASES)
def test_more_runs_bring_the_verdict_nearer_to_the_truth(case):
    claim, true = CASES[case]
    rng = np.random.default_rng(7)
    right = {"supported", "not contradicted"} if true else {"contradicted"}
    rates, mistakes = [], 0
    for runs in RUNS:
        verdicts = [judge(claim(rng, runs), Z).verdict for _ in range(40)]
        rates.append(sum(verdict in right for verdict in verdicts) / 40)
        mistakes += sum(verdict not in right and verdict != "undecided" for verdict in verdicts)
    assert mistakes == 0  # a simultaneous interval of 100 misses in one of 2,000 cases
    assert all(later >= earlier - 0.3 for earlier, later in pairwise(rates)), rates
    assert rates[-1] > 0.9, rates
    assert rates[0] < 0.5, rates
