"""T1 to T5 on made-up evidence: each verdict where it is expected."""

import math

import msgspec
import pytest

import collabtop as ct
from collabtop.crossing import Crossing, NotReached
from collabtop.reproduction.evidence import (
    FULL,
    PRINTED,
    UNIFORM,
    Crossed,
    Disjointness,
)
from collabtop.reproduction.theorem_studies import (
    bound_horizon,
    corollary_bound,
    corollary_holds_from,
    printed_special_arm_wins_from,
)
from collabtop.reproduction.theorems import t1, t3, t4, t5, theorem_statements
from collabtop.reproduction.verdicts import judged
from tests.support.made_up_evidence import made_up_evidence, made_up_rows


@pytest.fixture
def evidence():
    return made_up_evidence


def verdict_of(draft):
    (statement,) = judged([draft])
    return statement


def bound_points(wrong, runs=400, level=0.01):
    horizon = bound_horizon(ct.datasets.equal_gaps(n=16, m=1, gap=0.5), 1, 4, level)
    return tuple(ct.StudyTable(made_up_rows(PRINTED, "easy", 1, 4, horizon, wrong=wrong, runs=runs)).points())


def test_every_theorem_has_a_name_and_a_reason(evidence):
    statements = theorem_statements(evidence())
    assert [statement.name for statement in statements] == ["T1", "T2", "T3", "T4", "T5"]
    assert all(statement.why for statement in statements)


@pytest.mark.parametrize(
    ("wrong", "runs", "verdict"), [(0, 1_600, "not contradicted"), (80, 1_600, "contradicted"), (0, 100, "undecided")]
)
def test_t1_compares_the_interval_with_the_bound(evidence, wrong, runs, verdict):
    statement = verdict_of(t1(evidence(bound=bound_points(wrong, runs))))
    assert statement.verdict == verdict
    assert f"{wrong} of {runs:,} runs wrong" in statement.parts[0].text
    assert "tolerance at most 0.0100" in statement.parts[0].text


def test_t1_states_from_where_the_bound_is_below_1(evidence):
    first, second = t1(evidence()).notes
    assert "7.54e+07" in first
    assert second == "T = 500 H log^2 n / K gives probability .99 only for n >= 8"


def test_the_bound_begins_exactly_at_its_horizon():
    arms = ct.BernoulliArms([0.9, 0.5, 0.25])
    at = bound_horizon(arms, 1, 10, 0.3)
    assert ct.error_bound(arms, 1, 10, at) < 0.3 <= ct.error_bound(arms, 1, 10, at - 1)


def test_the_corollary_and_the_printed_instance_fail_for_small_and_large_n():
    assert [corollary_bound(n) <= 0.01 for n in (2, 7, 8, 100)] == [False, False, True, True]
    assert corollary_holds_from() == 8
    assert printed_special_arm_wins_from() == 5


def speedups(line, share_of):
    h, log = 61_520, math.log2(588) ** 2
    return tuple(
        Crossed(line, 1, k, Crossing(t, t * 0.97, t * 1.03, 0.01, "T", 10_000))
        for k in (1, 10, 100)
        for t in [h / share_of(k, log)]
    )


@pytest.mark.parametrize(
    ("share_of", "verdict"),
    [
        (lambda k, log: 0.3 * k, "supported"),
        (lambda k, log: 0.5 * k / log, "contradicted"),
        (lambda k, log: 1.5 * k, "contradicted"),
        (
            lambda k, log: 0.98 * k,
            "undecided",
        ),  # the interval, 3% to each side and more for several claims, extends beyond K
        (lambda k, log: 1.02 * k, "undecided"),
        (lambda k, log: 1.02 * k / log, "undecided"),
        (lambda k, log: 0.3 * k if k < 100 else 1.5 * k, "contradicted"),
    ],
)
def test_t3_requires_a_speed_up_between_k_over_log_squared_and_k(evidence, share_of, verdict):
    crossings = (*speedups(PRINTED, lambda k, log: 0.2 * k), *speedups(FULL, share_of))
    statement = verdict_of(t3(evidence(crossings=crossings)))
    assert statement.verdict == verdict
    assert [round(part.value, 2) for part in statement.parts[:3]] == pytest.approx([0.2, 2.0, 20.0], rel=0.02)
    assert {part.verdict for part in statement.parts[:3]} == {"supported"}


def test_t3_is_undecided_where_no_horizon_was_found(evidence):
    *most, last = speedups(PRINTED, lambda k, log: 0.2 * k)
    unknown = NotReached("100 runs are too few")
    statement = verdict_of(t3(evidence(crossings=(*most, msgspec.structs.replace(last, at=unknown)))))
    assert statement.verdict == "undecided"
    assert "K = 100: H/T: not located" in statement.parts[-1].text
    assert "100 runs are too few" in statement.parts[-1].text


def test_t3_is_contradicted_where_the_error_stays_up_far_beyond_the_bound(evidence):
    *most, last = speedups(PRINTED, lambda k, log: 0.2 * k)
    late = NotReached("the error is still above 0.01", low=61_520 * 10)
    assert verdict_of(t3(evidence(crossings=(*most, msgspec.structs.replace(last, at=late))))).verdict == "contradicted"


def test_t3_is_undecided_without_horizons_at_several_k(evidence):
    assert verdict_of(t3(evidence())).verdict == "undecided"


@pytest.mark.parametrize(
    ("wrong", "runs", "bits", "verdict"),
    [
        (0, 200, 9_000, "not contradicted"),
        (0, 4_000, 60, "contradicted"),
        (0, 24, 60, "undecided"),  # too few runs to show that the error is at most .01
        (90, 200, 60, "not contradicted"),
    ],
)
def test_t4_requires_n_k_bits_of_algorithms_that_answer_correctly(evidence, wrong, runs, bits, verdict):
    sets = (Disjointness(UNIFORM, runs, wrong, bits, 1.0, 32, 4),)
    statement = verdict_of(t4(evidence(disjointness=sets)))
    assert statement.verdict == verdict
    assert f"{wrong} of {runs:,} answers wrong" in statement.parts[0].text
    assert "from n = 5 on" in statement.notes[-1]


def test_t5_compares_bits_with_the_bound_and_can_only_be_not_contradicted(evidence):
    statement = verdict_of(t5(evidence()))
    assert statement.verdict == "not contradicted"
    assert "log2 C(n, m) = 9.2" in statement.parts[0].text


def test_t5_is_contradicted_where_bits_are_fewer(evidence):
    few = evidence(lambda line, *_: {"bits": 5} if line == PRINTED else {})
    assert verdict_of(t5(few)).verdict == "contradicted"


def test_t5_uses_the_speed_up_from_runs_near_the_horizon_if_there_are_any(evidence):
    near = (Crossed(PRINTED, 1, 10, Crossing(6_152, 6_000, 6_300, 0.01, "T", 10_000)),)
    assert "beta = 10.0, log2 C(n, m) = 9.2" in verdict_of(t5(evidence(crossings=near))).parts[0].text
