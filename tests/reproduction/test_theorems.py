"""T1 to T5 on made-up evidence: each verdict where it is expected."""

import math

import msgspec
import pytest

import collabtop as ct
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
from collabtop.stats import Crossing
from tests.support.made_up_evidence import made_up_evidence, made_up_rows


@pytest.fixture
def evidence():
    return made_up_evidence


def bound_points(wrong, runs=400, level=0.01):
    horizon = bound_horizon(ct.datasets.equal_gaps(n=16, m=1, gap=0.5), 1, 4, level)
    return tuple(ct.StudyTable(made_up_rows(PRINTED, "easy", 1, 4, horizon, wrong=wrong, runs=runs)).points())


def test_every_theorem_has_a_name_and_a_reason(evidence):
    statements = theorem_statements(evidence())
    assert [statement.name for statement in statements] == ["T1", "T2", "T3", "T4", "T5"]
    assert all(statement.why for statement in statements)


@pytest.mark.parametrize(
    ("wrong", "runs", "verdict"), [(0, 400, "holds"), (20, 400, "does not hold"), (0, 50, "undecided")]
)
def test_t1_compares_the_interval_with_the_bound(evidence, wrong, runs, verdict):
    statement = t1(evidence(bound=bound_points(wrong, runs)))
    assert statement.verdict == verdict
    assert f"{wrong} of {runs} runs wrong" in statement.found[-1]
    assert "bound 0.0100" in statement.found[-1]


def test_t1_states_from_where_the_bound_is_below_1(evidence):
    first, second = t1(evidence()).found[:2]
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
        Crossed(line, 1, k, Crossing(t, t * 0.95, t * 1.05, 0.01, "T", 10_000))
        for k in (1, 10, 100)
        for t in [h / share_of(k, log)]
    )


@pytest.mark.parametrize(
    ("share_of", "verdict"),
    [
        (lambda k, log: 0.3 * k, "holds"),
        (lambda k, log: 0.5 * k / log, "does not hold"),
        (lambda k, log: 1.5 * k, "does not hold"),
        (lambda k, log: 0.98 * k, "undecided"),  # the interval, 5% to each side, extends beyond K
        (lambda k, log: 1.02 * k, "undecided"),
        (lambda k, log: 1.02 * k / log, "undecided"),
        (lambda k, log: 0.3 * k if k < 100 else 1.5 * k, "does not hold"),
    ],
)
def test_t3_requires_a_speed_up_between_k_over_log_squared_and_k(evidence, share_of, verdict):
    statement = t3(evidence(crossings=(*speedups(PRINTED, lambda k, log: 0.2 * k), *speedups(FULL, share_of))))
    assert statement.verdict == verdict
    assert statement.found[0].startswith(
        "CollabTopIID, printed schedule: H/T = 0.20 (0.19 to 0.21) at K = 1, 2.00 (1.90 to 2.11) at K = 10, 20.00 ("
    )
    assert statement.found[1].endswith(f"({verdict})")


def test_t3_is_undecided_where_the_deep_study_found_no_horizon(evidence):
    *most, last = speedups(PRINTED, lambda k, log: 0.2 * k)
    statement = t3(evidence(crossings=(*most, msgspec.structs.replace(last, at=None))))
    assert statement.verdict == "undecided"
    assert "not found at K = 100" in statement.found[0]
    none = tuple(msgspec.structs.replace(crossed, at=None) for crossed in (*most, last))
    assert t3(evidence(crossings=none)).verdict == "undecided"


def test_t3_is_undecided_without_the_deep_study(evidence):
    assert t3(evidence()).verdict == "undecided"


@pytest.mark.parametrize(
    ("wrong", "bits", "verdict"), [(0, 9_000, "holds"), (0, 60, "does not hold"), (90, 60, "holds")]
)
def test_t4_requires_n_k_bits_of_algorithms_that_answer_correctly(evidence, wrong, bits, verdict):
    sets = (Disjointness(UNIFORM, 200, wrong, bits, 32, 4),)
    statement = t4(evidence(disjointness=sets))
    assert statement.verdict == verdict
    assert f"{wrong} of 200 answers wrong" in statement.found[0]
    assert "from n = 5 on" in statement.found[-1]


def test_t5_compares_bits_with_the_bound(evidence):
    statement = t5(evidence())
    assert statement.verdict == "holds"
    assert "times the bound 0.8 + 9.2" in statement.found[0]  # H / 80,000 and log2 of 588


def test_t5_does_not_hold_where_bits_are_fewer(evidence):
    assert t5(evidence(lambda line, *_: {"bits": 5} if line == PRINTED else {})).verdict == "does not hold"


def test_t5_uses_the_speed_up_of_the_deep_study_if_there_is_one(evidence):
    findings = t5(
        evidence(crossings=(Crossed(PRINTED, 1, 10, Crossing(6_152, 6_000, 6_300, 0.01, "T", 10_000)),))
    ).found
    assert "times the bound 10.0 + 9.2" in findings[0]
    assert "deep study" in findings[0]
