"""C1 to C7 on made-up rows: each verdict where it is expected, and every number from the rows."""

import msgspec
import pytest

from collabtop.reproduction.evidence import (
    FULL,
    KZZ,
    PRINTED,
    PRINTED_NON_IID,
    UNIFORM,
    Crossed,
    Growth,
    LocalRuns,
    WordsByKind,
)
from collabtop.reproduction.experiments import IID, NON_IID
from collabtop.reproduction.statements import c1, c2, c3, c4, c5, c6, c7, experiment_statements, straight_line
from collabtop.stats import Crossing
from tests.support.made_up_evidence import made_up_evidence


@pytest.fixture
def evidence():
    return made_up_evidence


def only(*lines, **changes):
    """Change all points of the given lines."""
    return lambda line, *_: changes if line in lines else {}


def at_horizon(line, horizon, **changes):
    return lambda other, _arms, _m, _agents, t: changes if (other, t) == (line, horizon) else {}


def crossed(m, **horizons):
    lines = {"kzz": KZZ, "printed": PRINTED, "full": FULL}
    return tuple(
        Crossed(lines[name], m, 10, Crossing(at, at * 0.97, at / 0.97, 0.01, "T", 10_000))
        for name, at in horizons.items()
    )


def test_every_statement_has_a_name_a_verdict_and_a_reason(evidence):
    statements = experiment_statements(evidence())
    assert [statement.name for statement in statements] == ["C1", "C2", "C3", "C4", "C5", "C6", "C7"]
    assert all(statement.why and statement.found for statement in statements)


def test_c1_holds_where_all_errors_fall_to_zero(evidence):
    assert c1(evidence()).verdict == "holds"
    assert (
        "m = 1, over T at K = 10, KZZ: error 0.60 at T = 5,000 and 0.00 at T = 80,000 (holds)" in c1(evidence()).found
    )


def test_c1_does_not_hold_where_one_error_stays(evidence):
    assert c1(evidence(at_horizon(KZZ, 80_000, wrong=8))).verdict == "does not hold"


def test_c1_is_undecided_where_runs_are_too_few_to_see_a_fall(evidence):
    assert c1(evidence(runs=4)).verdict == "undecided"


def test_c1_does_not_hold_where_m_8_stays_wrong_at_the_papers_horizon_though_it_falls_at_a_longer_one(evidence):
    def late(line, _arms, m, _agents, horizon):
        return {"wrong": 27} if (line, m, horizon) == (KZZ, 8, 30_000) else {}

    statement = c1(evidence(late))
    assert statement.verdict == "does not hold"
    stays = "m = 8, over K at T = 30,000, KZZ: error 0.27 at K = 2 and 0.27 at K = 30 (does not hold)"
    assert stays in statement.found
    assert "m = 8, over K at T = 30,000: 2 of 3; m = 8, over K at T = 600,000: 3 of 3" in statement.why


def test_c1_is_undecided_where_a_sweep_is_missing(evidence):
    whole = evidence()
    points = tuple(point for point in whole.points if (point.m, point.horizon) != (8, 30_000))
    assert c1(msgspec.structs.replace(whole, points=points)).verdict == "undecided"


@pytest.mark.parametrize(
    ("horizons", "verdict"),
    [
        ({"kzz": 20_000, "printed": 60_000, "full": 26_000}, "holds"),
        ({"kzz": 20_000, "printed": 60_000, "full": 50_000}, "does not hold"),
        ({"kzz": 20_000, "printed": 26_000, "full": 50_000}, "holds"),
        ({"kzz": 20_000, "printed": 60_000, "full": 20_900}, "undecided"),
    ],
)
def test_c2_is_decided_by_the_deep_study(evidence, horizons, verdict):
    statement = c2(evidence(crossings=crossed(1, **horizons)))
    assert statement.verdict == verdict
    assert f"KZZ: error .01 at T = {horizons['kzz']:,}" in statement.found[0]


def test_c2_gives_the_verdict_by_schedule(evidence):
    why = c2(evidence(crossings=crossed(1, kzz=20_000, printed=60_000, full=26_000))).why
    assert "By schedule: printed schedule: does not hold; full schedule: holds." in why


def test_c2_is_undecided_where_the_deep_study_found_no_horizon_and_names_the_algorithm(evidence):
    *others, full = crossed(1, kzz=20_000, printed=60_000, full=26_000)
    statement = c2(evidence(crossings=(*others, msgspec.structs.replace(full, at=None))))
    assert statement.verdict == "undecided"
    assert statement.why == "The deep study found no horizon for CollabTopIID, full schedule"


@pytest.mark.parametrize(("full", "verdict"), [(310_000, "holds"), (600_000, "does not hold"), (371_000, "undecided")])
def test_c3_is_decided_by_the_deep_study(evidence, full, verdict):
    crossings = crossed(8, kzz=300_000, printed=900_000, full=full)
    assert c3(evidence(crossings=crossings)).verdict == verdict


def test_c2_and_c3_are_undecided_without_it_and_state_the_number_of_runs(evidence):
    for judge in (c2, c3):
        statement = judge(evidence())
        assert statement.verdict == "undecided"
        assert statement.why.startswith("100 runs per point cannot decide this")
        assert "--deep" in statement.why


@pytest.mark.parametrize(("words", "verdict"), [(20_000, "holds"), (7_000, "does not hold"), (25_012, "undecided")])
def test_c4_compares_words(evidence, words, verdict):
    statement = c4(evidence(only(KZZ, words=words)))
    assert statement.verdict == verdict
    assert f"{words / 1_000:.1f} times" in statement.found[0]


def test_c4_shows_other_accountings_and_is_not_decided_by_them(evidence):
    ledgers = {
        "collab-top-iid": WordsByKind(20, {"Deal": 640, "Values": 300, "Hand": 300, "Pull": 560}),
        "kzz": WordsByKind(20, {"Pull": 5_800, "Means": 11_740}),
    }
    statement = c4(evidence(only(KZZ, words=7_000), words_by_kind=ledgers))
    assert statement.found[-1] == (
        "Other accountings, from the ledgers of 20 runs per algorithm: KZZ with its first list sends 23,420 words, "
        "which is 15.6 times the 1,500 words of CollabTopIID without sizes, counts and search replies, "
        "and 19.5 times the 1,200 words of CollabTopIID without any replies"
    )
    assert statement.verdict == "does not hold"


def test_c5_holds_where_words_are_flat_over_t_and_straight_over_k(evidence):
    assert c5(evidence()).verdict == "holds"


def test_c5_states_where_the_local_phase_runs_only_if_it_was_measured(evidence):
    local = (LocalRuns(588, 10, 50, 50), LocalRuns(588, 50, 50, 0))
    assert "local phase" not in c5(evidence()).why
    measured = c5(evidence(growth=Growth((), {}, (), local)))
    assert "local phase at n = 588: 100% at K = 10, 0% at K = 50" in measured.why


def test_c5_does_not_hold_where_words_grow_with_t(evidence):
    statement = c5(evidence(at_horizon(PRINTED, 80_000, words=2_000)))
    assert statement.verdict == "does not hold"
    assert "words vary by a factor of 2.00 over T = 5,000 to 80,000 (does not hold)" in statement.found[0]


def test_c5_does_not_hold_where_words_bend_over_k(evidence):
    bent = {2: 4, 6: 36, 10: 100, 30: 900}
    statement = c5(evidence(lambda line, *rest: {"words": 10 * bent[rest[2]]} if line == KZZ else {}))
    assert statement.verdict == "does not hold"


def test_c5_is_undecided_where_the_limit_is_within_sampling_noise(evidence):
    # A third of a bend of 30%: 10% off the line, with words that differ by half from run to run.
    bent = evidence(lambda line, _arms, _m, k, _t: {"words": 100 * k + (90 if k == 10 else 0)} if line == KZZ else {})
    kzz = [p for p in bent.points if p.algorithm == "kzz"]
    noisy = tuple(msgspec.structs.replace(p, words_sd=p.words_mean / 2) if p in kzz else p for p in bent.points)
    assert c5(msgspec.structs.replace(bent, points=noisy)).verdict == "undecided"


def test_c5_is_undecided_without_points(evidence):
    assert c5(msgspec.structs.replace(evidence(), points=())).verdict == "undecided"


@pytest.mark.parametrize(("words", "verdict"), [(4_000, "holds"), (3_000, "does not hold"), (5_002, "undecided")])
def test_c6_compares_words_by_our_rule_and_shows_the_authors(evidence, words, verdict):
    statement = c6(evidence(only(PRINTED_NON_IID, words=words)))
    assert statement.verdict == verdict
    assert f"{words:,} words, {words / 1_000:.2f} times the 1,000 of" in statement.found[0].replace("1,001", "1,000")
    assert f"{(words + 5_470) / 1_000:.2f} times" in statement.found[0]


def test_c7_holds_where_the_error_is_far_below(evidence):
    assert c7(evidence()).verdict == "holds"


def test_c7_does_not_hold_where_it_is_no_better_or_worse(evidence):
    assert c7(evidence(only(PRINTED_NON_IID, wrong=70))).verdict == "does not hold"
    assert c7(evidence(only(UNIFORM, wrong=0))).verdict in ("does not hold", "undecided")
    worse = evidence(lambda line, *_: {"wrong": 90 if line == PRINTED_NON_IID else 30})
    assert c7(worse).verdict == "does not hold"


def test_c7_is_undecided_with_few_runs(evidence):
    assert c7(evidence(runs=3)).verdict == "undecided"


def test_a_horizon_that_one_algorithm_refused_is_left_out(evidence):
    whole = evidence()
    points = tuple(p for p in whole.points if not (p.algorithm == "uniform" and p.horizon == 20_000))
    assert c7(msgspec.structs.replace(whole, points=points)).verdict == "holds"


def test_a_straight_line_gives_the_deviation_of_its_worst_point():
    base, slope, off = straight_line([0, 1, 2], [0, 1, 2])
    assert (base, slope, off) == pytest.approx((0, 1, 0))
    assert straight_line([0, 1, 2], [0, 4, 0])[2] == pytest.approx(8 / 3 / 4)


def test_sweeps_are_in_order_and_keep_settings_apart(evidence):
    measured = evidence()
    assert [point.horizon for point in measured.sweep(KZZ, IID, 1, agents=10)] == [5_000, 30_000, 80_000]
    assert [point.agents for point in measured.sweep(KZZ, IID, 1, horizon=30_000)] == [2, 6, 10, 30]
    assert [line.name for line in measured.lines(NON_IID)][-1] == "Uniform"
