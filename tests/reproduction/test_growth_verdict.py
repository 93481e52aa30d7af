"""T2 on made-up words: what holds, what does not hold, and what is undecided."""

import math

import pytest

import collabtop as ct
from collabtop.reproduction.evidence import PRINTED, PRINTED_NON_IID, Growth, LocalRuns, RoundCost
from collabtop.reproduction.growth_verdict import Cost, constants, growth_claims, growth_exponents, student, t2
from collabtop.reproduction.verdicts import all_of, judge, judged
from tests.support.made_up_evidence import made_up_evidence, made_up_rows


@pytest.fixture
def evidence():
    return made_up_evidence


def unchanged(n, k, m):
    """The factor for words that agree with the paper."""
    return 1.0


def growth(*, total=unchanged, step=unchanged, shared_at=None, local=(), runs=4):
    """Words of 3 (K log^2 n + m) and 2 K n log n; steps of 4, 6 and 3 K log n, the last times `step`."""
    rows, rounds, sizes = [], [], {}
    for power in (12, 14, 16, 18, 20):
        n, name = 2**power, f"n = 2^{power}"
        sizes[name] = n
        for k, m in ((k, m) for k in (2, 10, 50) for m in (1, 64)):
            words = round(3 * (k * power**2 + m) * total(n, k, m))
            rows += made_up_rows(PRINTED, name, m, k, 10**6, wrong=0, runs=2, words=words)
            unit, first = k * power, "shared" if shared_at == n else "local"
            for seed in range(runs):
                steps = ((first, n, 6 * unit, 4 * unit), *(
                    ("shared", 2 * words, round(words * step(n, k, m)), 0) for words in (5 * unit, unit)
                ))  # fmt: skip
                rounds += [RoundCost(n, k, m, 10**6, seed, number, *cost) for number, cost in enumerate(steps)]
            rows += made_up_rows(PRINTED_NON_IID, name, m, k, 10**6, wrong=0, runs=2, words=2 * k * n * power)
    return Growth(tuple(ct.StudyTable(rows).points()), sizes, tuple(rounds), local)


def verdict_of(evidence):
    (statement,) = judged([t2(evidence)])
    return statement


def growth_verdict(costs):
    return all_of(judge(claim, 3.5).verdict for claim in growth_claims("cost", costs))


def test_t2_is_supported_with_its_constants(evidence):
    statement = verdict_of(evidence(growth=growth(local=(LocalRuns(588, 10, 50, 50), LocalRuns(588, 50, 50, 0)))))
    assert {part.verdict for part in statement.parts[:-1]} == {"supported"}
    text = "\n".join(statement.notes)
    assert "CollabTopIID: 3.00 (K log2(n)^2 + m) fitted" in text
    assert "CollabTopNIID: 2.00 K n log2(n) fitted" in text
    assert "LocalElim: 6.00 K log2(n) fitted" in text
    assert "CollabSearch, both calls of a round: 4.00 K log2(n) fitted" in text
    assert "GlobalElim: 3.00 K log2(n) fitted" in text
    assert "GlobalElim 5.0" in text  # the most expensive round
    assert "Runs of CollabTopIID with a local phase at n = 588: 100% at K = 10, 0% at K = 50" in text


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [
        (lambda n, k, m: n**0.2, "contradicted"),
        (lambda n, k, m: math.log2(n), "contradicted"),
        (lambda n, k, m: k, "contradicted"),
        (lambda n, k, m: k / math.log2(n), "contradicted"),
        (lambda n, k, m: math.log2(1 + k), "contradicted"),
        (lambda n, k, m: math.log2(1 + m), "contradicted"),
        (lambda n, k, m: 1 + k / 50, "contradicted"),  # visible only at the largest K
        (lambda n, k, m: math.log2(k) / math.log2(n), "supported"),  # at most 1 while K <= n
        (lambda n, k, m: 1 - 1 / k, "supported"),  # approaches a constant
        (lambda n, k, m: 1 / math.log2(n), "supported"),
    ],
)
def test_t2_is_judged_by_how_the_constant_grows_along_each_axis(evidence, factor, verdict):
    def growth_of(name, **changes):
        parts = verdict_of(evidence(growth=growth(**changes))).parts
        return all_of(part.verdict for part in parts if part.estimand.startswith(f"{name}: growth exponent"))

    assert growth_of("CollabTopIID", total=factor) == verdict
    assert growth_of("GlobalElim", step=factor) == verdict
    assert growth_of("LocalElim", step=factor) == "supported"


def test_growth_within_sampling_noise_is_undecided():
    costs = [
        Cost(2**power, k, 1, 100, (1 + 0.5 * ((power + k) % 4)) * k, k)
        for power in (12, 14, 16, 18, 20) for k in (2, 9, 51)
    ]  # fmt: skip
    along_n = growth_exponents(costs)[0]
    low, high = along_n.ends(2)
    assert low < 0.5 < high
    assert growth_verdict(costs) == "undecided"


def test_fewer_words_at_a_longer_horizon_do_not_count_as_growth():
    costs = [
        Cost(2**power, k, m, horizon, k * (3 if horizon == k * 2**power else 2), k)
        for power in (12, 16, 20) for k in (2, 10, 50) for m in (1, 64)
        for horizon in (k * 2**power, 100 * k * 2**power)
    ]  # fmt: skip
    assert growth_verdict(costs) == "supported"


def test_t2_is_contradicted_where_large_rounds_are_out_of_balance(evidence):
    statement = verdict_of(evidence(growth=growth(shared_at=2**20)))
    part = statement.parts[-1]
    assert "(24 of " in part.text
    assert part.verdict in ("contradicted", "undecided")
    assert part.low > 0.01


@pytest.mark.parametrize("phase", ["local", "shared"])
def test_t2_is_contradicted_where_cheap_rounds_hide_an_expensive_one(evidence, phase):
    # The first round of a step costs K log2(n)^2 words, and as many rounds as hide it in the mean cost next to nothing.
    usual = growth()
    rounds = [
        RoundCost(cost.n, cost.agents, cost.m, cost.horizon, cost.seed, number, phase, 2 * cost.agents, words, words)
        for cost in usual.rounds
        if cost.round == 0
        for power in [round(math.log2(cost.n))]
        for number in range(power)
        for words in [cost.agents * power**2 if number == 0 else cost.agents]
    ]
    others = [cost for cost in usual.rounds if cost.phase != phase]
    statement = verdict_of(evidence(growth=Growth(usual.points, usual.sizes, (*others, *rounds), ())))
    name = {"local": "LocalElim", "shared": "GlobalElim"}[phase]
    by_growth = [part.verdict for part in statement.parts if "growth exponent" in part.estimand]
    contradicted = [part.estimand for part in statement.parts if part.verdict == "contradicted"]
    assert set(by_growth) == {"supported"}
    assert contradicted == [f"{name}: runs with a round of more words than the printed pseudo-code can take"]
    assert statement.verdict == "contradicted"


def test_the_partition_is_expected_to_be_balanced_from_100_k_log2_n_arms_on(evidence):
    # 100 K log2 n = 2,400 and 100 K ln n = 1,664 for n = 2^12 and K = 2: only 4,096 arms are enough for both.
    rounds = tuple(RoundCost(2**12, 2, 1, 10**6, seed, 0, "shared", 2_000, 10, 0) for seed in range(50))
    part = verdict_of(evidence(growth=Growth((), {}, rounds, ()))).parts[-1]
    assert part.text.endswith("no round began with so many arms: undecided")


def test_t2_is_undecided_without_the_growth_study(evidence):
    statement = verdict_of(evidence())
    assert statement.verdict == "undecided"
    assert "--quick" in statement.notes[0]


def test_one_size_does_not_show_how_a_cost_grows():
    one_n = [Cost(2**10, k, 1, 100, 3.0 * k, k) for k in (10, 50, 200)]
    assert growth_verdict(one_n) == "undecided"
    assert constants(one_n[:1], "K") == "3.00 K fitted, 3.00 K at most"
    assert (constants([], "K"), growth_verdict([])) == ("no measurements", "undecided")


@pytest.mark.parametrize(("z", "freedom", "quantile"), [(1.96, 5, 2.571), (1.96, 30, 2.042), (3.2905, 10, 4.587)])
def test_student_quantiles_match_the_tables(z, freedom, quantile):
    assert student(z, freedom) == pytest.approx(quantile, rel=0.02)
