"""T2 on made-up words: what holds, what does not hold, and what is undecided."""

import math

import pytest

import collabtop as ct
from collabtop.reproduction.evidence import PRINTED, PRINTED_NON_IID, Growth, LocalRuns, RoundCost
from collabtop.reproduction.growth_verdict import Cost, bounded_by, growth_exponents, t2
from tests.support.made_up_evidence import made_up_evidence, made_up_rows


@pytest.fixture
def evidence():
    return made_up_evidence


def unchanged(n, k, m):
    """The factor for words that agree with the paper."""
    return 1.0


def growth(*, total=unchanged, step=unchanged, shared_at=None, local=()):
    """Words of 3 (K log^2 n + m) and 2 K n log n; steps of 4, 6 and 5 K log n, the last times `step`."""
    rows, rounds, sizes = [], [], {}
    for power in (12, 14, 16, 18, 20):
        n, name = 2**power, f"n = 2^{power}"
        sizes[name] = n
        for k, m in ((k, m) for k in (2, 10, 50) for m in (1, 64)):
            words = round(3 * (k * power**2 + m) * total(n, k, m))
            rows += made_up_rows(PRINTED, name, m, k, 10**6, wrong=0, runs=2, words=words)
            unit, first = k * power, "shared" if shared_at == n else "local"
            rounds.append(RoundCost(n, k, m, 10**6, 0, 0, first, n, 6 * unit, 4 * unit))
            rounds.append(RoundCost(n, k, m, 10**6, 0, 1, "shared", 64, round(5 * unit * step(n, k, m)), 0))
            rounds.append(RoundCost(n, k, m, 10**6, 0, 2, "shared", 4, 4, 0))  # cheap: must not hide an expensive one
            rows += made_up_rows(PRINTED_NON_IID, name, m, k, 10**6, wrong=0, runs=2, words=2 * k * n * power)
    return Growth(tuple(ct.StudyTable(rows).points()), sizes, tuple(rounds), local)


def test_t2_holds_with_its_constants(evidence):
    statement = t2(evidence(growth=growth(local=(LocalRuns(588, 10, 50, 50), LocalRuns(588, 50, 50, 0)))))
    assert statement.verdict == "holds"
    text = "\n".join(statement.found)
    assert "CollabTopIID: 3.00 (K log2(n)^2 + m) fitted" in text
    assert "CollabTopNIID: 2.00 K n log2(n) fitted" in text
    assert "LocalElim: 6.00 K log2(n) fitted" in text
    assert "CollabSearch, both calls of a round: 4.00 K log2(n) fitted" in text
    assert "GlobalElim: 5.00 K log2(n) fitted" in text
    assert "Runs of CollabTopIID with a local phase at n = 588: 100% at K = 10, 0% at K = 50" in text


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [
        (lambda n, k, m: n**0.2, "does not hold"),
        (lambda n, k, m: math.log2(n), "does not hold"),
        (lambda n, k, m: k, "does not hold"),
        (lambda n, k, m: k / math.log2(n), "does not hold"),
        (lambda n, k, m: math.log2(1 + k), "does not hold"),
        (lambda n, k, m: math.log2(1 + m), "does not hold"),
        (lambda n, k, m: 1 + k / 50, "does not hold"),  # visible only at the largest K
        (lambda n, k, m: math.log2(k) / math.log2(n), "undecided"),  # at most 1 while K <= n
        (lambda n, k, m: 1 - 1 / k, "holds"),  # approaches a constant
        (lambda n, k, m: 1 / math.log2(n), "holds"),
    ],
)
def test_t2_is_judged_by_how_the_constant_grows_along_each_axis(evidence, factor, verdict):
    assert t2(evidence(growth=growth(total=factor))).verdict == verdict
    statement = t2(evidence(growth=growth(step=factor)))
    assert statement.verdict == verdict
    assert next(line for line in statement.found if line.startswith("GlobalElim")).endswith(f"({verdict})")


def test_growth_within_sampling_noise_is_undecided():
    costs = [
        Cost(2**power, k, 1, 100, (1 + 0.5 * ((power + k) % 4)) * k, k)
        for power in (12, 14, 16, 18, 20) for k in (2, 9, 51)
    ]  # fmt: skip
    along_n = growth_exponents(costs)[0]
    assert along_n.low < 0.5 < along_n.high
    assert bounded_by(costs, "K")[1] == "undecided"


def test_fewer_words_at_a_longer_horizon_do_not_count_as_growth():
    costs = [
        Cost(2**power, k, m, horizon, k * (3 if horizon == k * 2**power else 2), k)
        for power in (12, 16, 20) for k in (2, 10, 50) for m in (1, 64)
        for horizon in (k * 2**power, 100 * k * 2**power)
    ]  # fmt: skip
    assert bounded_by(costs, "K")[1] == "holds"


def test_t2_does_not_hold_where_a_large_round_is_out_of_balance(evidence):
    statement = t2(evidence(growth=growth(shared_at=2**20)))
    assert any(
        line.startswith("The partition was out of balance in 6 of ") and line.endswith(" (does not hold)")
        for line in statement.found
    )
    assert statement.verdict == "does not hold"


def test_t2_is_undecided_without_the_deep_study(evidence):
    assert t2(evidence()).verdict == "undecided"
    assert "--deep" in t2(evidence()).why


def test_one_size_does_not_show_how_a_cost_grows():
    one_n = [Cost(8, k, 1, 100, 3.0 * k, k) for k in (2, 10, 50)]
    assert bounded_by(one_n, "K")[1] == "undecided"
    assert bounded_by(one_n[:1], "K") == (
        "3.00 K fitted, 3.00 K at most; too few sizes to measure the growth",
        "undecided",
    )
    assert bounded_by([], "K") == ("no measurements", "undecided")
