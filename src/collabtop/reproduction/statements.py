"""The statements of the paper's experimental section, C1 to C7, as claims about the measured points."""

import math
from collections.abc import Sequence

import numpy as np

from collabtop.crossing import Crossing, NotReached
from collabtop.reproduction.evidence import (
    FULL,
    IID,
    KZZ,
    NON_IID,
    PRINTED,
    PRINTED_NON_IID,
    UNIFORM,
    Axis,
    Evidence,
    Line,
    WordsByKind,
    fit_points,
)
from collabtop.reproduction.experiments import AGENTS, first_middle_last, fixed_horizon
from collabtop.reproduction.growth_verdict import local_phase
from collabtop.reproduction.verdicts import (
    ABOUT,
    EQUAL,
    Claim,
    Draft,
    Estimate,
    horizon_ratio,
    mean_words,
    normal,
    quotient,
    share,
)
from collabtop.studies.table import PointSummary

_COUNTS = ("Held", "Accepted", "Values", "Window")
_REPLIES = (*_COUNTS, "Hand", "Means")
_SLOWEST = 25.0
"""The largest factor in T or K from error .5 to .01 that counts as quick: half of what an error like 1/T would need."""
_STRAIGHT = 1.25
_SENSIBLE = 0.5
_FAR = 0.5
_OUR_COUNT = "every number counted"


def c1(evidence: Evidence, m: int) -> Draft:
    """Error falls quickly to zero as T grows and as K grows."""
    fixed = fixed_horizon(evidence.arms[IID], m)
    axes: dict[Axis, str] = {"horizon": f"over T at K = {AGENTS}", "agents": f"over K at T = {fixed:,}"}
    claims = []
    for axis, sweep in axes.items():
        for line in (PRINTED, FULL, KZZ):
            points = _sweep(evidence, line, m, axis, fixed)
            symbol = "T" if axis == "horizon" else "K"
            estimand = f"{sweep}, {line.name}: factor in {symbol} from error .5 to .01"
            claims.append(Claim(estimand, fall(points, axis), most=_SLOWEST, digits=".1f"))
    return Draft(
        f"C1 (m = {m})",
        f"m = {m}: the error of CollabTopIID and KZZ falls quickly to zero as T grows and as K grows",
        tuple(claims),
        "Quickly: T, or K, grows by at most a factor of 25 while the error falls from .5 to .01; an error that falls "
        "like 1/T would need 50. If the error is below .5 at the start of the sweep already, the factor is counted "
        "from there. The paper does not state its sweeps; these extend from error .5 of the first algorithm to error "
        ".01 of the last, by a pilot study",
    )


def _sweep(evidence: Evidence, line: Line, m: int, axis: Axis, fixed: int) -> list[PointSummary]:
    if axis == "horizon":
        return evidence.sweep(line, IID, m, agents=AGENTS)
    return evidence.sweep(line, IID, m, horizon=fixed)


def fall(points: Sequence[PointSummary], axis: Axis = "horizon") -> Estimate | None:
    """By which factor T, or K, grows while the error falls from .5 to .01; None without points."""
    if len(points) < 2:
        return None
    first = getattr(points[0], axis)
    start, end = fit_points(points, 0.5, axis=axis), fit_points(points, axis=axis)
    if points[0].error_high < 0.5:  # at the start already
        start = Crossing(first, first, first, 0.5, "", points[0].runs)
    return horizon_ratio(end, start)


def c2(evidence: Evidence) -> Draft:
    """KZZ reaches error .01 with a horizon 1.3 times shorter at m = 1."""
    says = "m = 1: KZZ reaches error .01 with a horizon 1.3 times shorter than CollabTopIID's"
    return _horizons(evidence, "C2", says, 1, (1.25, 1.35), "A ratio agrees with 1.3 if it rounds to it")


def c3(evidence: Evidence) -> Draft:
    """Both need the same horizon for error .01 at m = 8."""
    says = "m = 8: KZZ and CollabTopIID need the same horizon for error .01"
    agrees = f"Horizons are the same if they differ by at most a factor of {EQUAL}"
    return _horizons(evidence, "C3", says, 8, (1 / EQUAL, EQUAL), agrees)


def _horizons(evidence: Evidence, name: str, says: str, m: int, tolerance: tuple[float, float], agrees: str) -> Draft:
    crossings = {line: evidence.best_crossing(line, IID, m, AGENTS) for line in (KZZ, PRINTED, FULL)}
    claims = [
        Claim(
            f"{line.name}: horizon for error .01 over that of KZZ",
            horizon_ratio(crossings[line], crossings[KZZ]),
            *tolerance,
        )
        for line in (PRINTED, FULL)
    ]
    studied = [c.line for c in evidence.crossings if (c.arms, c.m, c.agents) == (IID, m, AGENTS)]
    others = {line: evidence.best_crossing(line, IID, m, AGENTS) for line in studied if line not in crossings}
    runs = "runs near them" if studied else "the panels; without --quick, many more runs are made near them"
    return Draft(
        name,
        says,
        tuple(claims),
        f"{agrees}. The paper does not state that it ran the schedule it prints, so either schedule can support the "
        f"statement. Horizons come from {runs}",
        tuple(_crossing_text(line, at) for line, at in (crossings | others).items()),
        any_claim=True,
    )


def _crossing_text(line: Line, at: Crossing | NotReached) -> str:
    if isinstance(at, NotReached):
        return f"{line.name}: no horizon for error .01: {at.reason}"
    return (
        f"{line.name}: error .01 at T = {at.horizon:,.0f} (95% interval {at.low:,.0f} to {at.high:,.0f}; "
        f"{at.runs:,} runs, log error linear in {at.form})"
    )


def c4(evidence: Evidence) -> Draft:
    """KZZ's words are about 20 times those of CollabTopIID."""
    horizon = fixed_horizon(evidence.arms[IID], 1)
    claims = []
    for line in (PRINTED, FULL):
        theirs, ours = (evidence.sweep(each, IID, 1, agents=AGENTS, horizon=horizon) for each in (KZZ, line))
        ratio = quotient(mean_words(theirs[0]), mean_words(ours[0])) if theirs and ours else None
        claims.append(_about(f"words of KZZ over those of {line.name}", ratio, 20, _OUR_COUNT))
    claims += _other_counts(evidence)
    return Draft(
        "C4",
        f"The words of KZZ are about 20 times those of CollabTopIID (m = 1, K = {AGENTS}, T = {horizon:,})",
        tuple(claims),
        "The verdict is by the count of this package: every number that depends on data, in both directions. The "
        "authors also count KZZ's first list of arms, which every agent knows, and leave out some of the replies and "
        "counts of CollabTopIID. The paper does not state which, so two readings are judged as well, for the printed "
        f"schedule, from the ledgers of a few runs. About: within a factor of {ABOUT}",
    )


def _about(estimand: str, ratio: Estimate | None, target: float, count: str) -> Claim:
    return Claim(estimand, ratio, target / ABOUT, target * ABOUT, count=count)


def _other_counts(evidence: Evidence) -> list[Claim]:
    """The ratio by two counts that leave out some messages; the paper does not state what it leaves out."""
    ours, theirs = (evidence.words_by_kind.get(line.algorithm) for line in (PRINTED, KZZ))
    claims = []
    for omitted, kinds in (("sizes, counts and search replies", _COUNTS), ("any replies", _REPLIES)):
        ratio = None
        if ours is not None and theirs is not None:
            first_list = evidence.arms[IID].n * AGENTS
            ratio = quotient(_words(theirs, (), first_list), _words(ours, kinds))
        estimand = f"words of KZZ with its first list over those of {PRINTED.name} without {omitted}"
        claims.append(_about(estimand, ratio, 20, f"without {omitted}"))
    return claims


def _words(ledgers: WordsByKind, omitted: Sequence[str], more: float = 0.0) -> Estimate:
    """Mean words per run without some kinds of messages, with `more` words added."""
    totals = [sum(words for kind, words in run.items() if kind not in omitted) for run in ledgers.runs]
    deviation = float(np.std(totals, ddof=1)) / math.sqrt(len(totals)) if len(totals) > 1 else math.inf
    return normal(float(np.mean(totals)) + more, deviation)


def c5(evidence: Evidence, m: int) -> Draft:
    """Words do not depend on T and grow linearly in K."""
    fixed = fixed_horizon(evidence.arms[IID], m)
    claims = []
    for line in (PRINTED, FULL, KZZ):
        over_t = [point for point in _sweep(evidence, line, m, "horizon", fixed) if point.error <= _SENSIBLE]
        over_k = _words_over_agents(evidence, line, m, fixed)
        ends = f"T = {over_t[0].horizon:,} to {over_t[-1].horizon:,}" if over_t else "T"
        claims.append(Claim(f"{line.name}: most words over fewest, {ends}", spread(over_t), most=_STRAIGHT))
        ends = f"K = {over_k[0].agents} to {over_k[-1].agents}" if over_k else "K"
        estimand = f"{line.name}: words per additional agent, second half of {ends} over the first half"
        claims.append(Claim(estimand, bend(over_k), 1 / _STRAIGHT, _STRAIGHT))
    return Draft(
        f"C5 (m = {m})",
        f"m = {m}: words do not depend on T and grow linearly in K",
        tuple(claims),
        f"Flat over T: the largest mean is at most {_STRAIGHT} times the smallest, over the horizons at which the "
        f"error is at most {_SENSIBLE}. Linear in K: the words per additional agent in the second half of the sweep "
        f"and in the first agree within a factor of {_STRAIGHT}"
        + "".join(f". Regime: {line[0].lower()}{line[1:]}" for line in local_phase(evidence.growth)),
    )


def _words_over_agents(evidence: Evidence, line: Line, m: int, fixed: int) -> list[PointSummary]:
    """The sweep over K; where a point has more runs with messages, it is replaced by the one with these."""
    more = {
        point.agents: point
        for point in evidence.words_over_agents
        if (point.algorithm, point.schedule, point.m) == (line.algorithm, line.schedule, m)
    }
    return [more.get(point.agents, point) for point in _sweep(evidence, line, m, "agents", fixed)]


def spread(points: Sequence[PointSummary]) -> Estimate | None:
    """The largest mean words of the points, divided by the smallest."""
    if len(points) < 2:
        return None
    means = [mean_words(point) for point in points]

    def ends(z: float) -> tuple[float, float]:
        lows, highs = zip(*(mean.ends(z) for mean in means), strict=True)
        return max(1.0, max(lows) / min(highs)), max(highs) / min(lows) if min(lows) > 0 else math.inf

    values = [mean.value for mean in means]
    return Estimate(max(values) / min(values), ends, len(points))


def bend(points: Sequence[PointSummary]) -> Estimate | None:
    """Words per additional agent in the second half of a sweep over K, divided by those in the first half.

    The halves meet at the middle point of the sweep, in terms of its number.
    """
    if len(points) < 3:
        return None
    first, middle, last = first_middle_last(points)
    variances = [p.words_sd**2 / p.message_runs for p in (first, middle, last)]
    near, far = middle.agents - first.agents, last.agents - middle.agents
    lower, upper = (middle.words_mean - first.words_mean) / near, (last.words_mean - middle.words_mean) / far
    if lower <= 0:
        return None
    ratio = upper / lower
    # The middle point enters both slopes, with opposite signs.
    gradient = (ratio / near / lower, -(1 / far + ratio / near) / lower, 1 / far / lower)
    return normal(ratio, math.sqrt(sum(g * g * v for g, v in zip(gradient, variances, strict=True))))


def c6(evidence: Evidence, m: int) -> Draft:
    """Words of CollabTopNIID are about 4 times those of Uniform."""
    pairs = _with_uniform(evidence, m)
    claims = []
    for count, lists in ((_OUR_COUNT, 0), ("first list counted", 1)):
        ratio = None
        if pairs:
            ours, uniform = pairs[-1]
            more = lists * evidence.arms[NON_IID].n * ours.agents
            ratio = quotient(mean_words(ours, more), mean_words(uniform))
        claims.append(_about("words of CollabTopNIID over those of Uniform", ratio, 4, count))
    return Draft(
        f"C6 (m = {m})",
        f"m = {m}: the words of CollabTopNIID are about 4 times those of Uniform",
        tuple(claims),
        "The verdict is by the count of this package, without the first list: every agent knows that all arms are live "
        f"in round 0. The authors count this list. Printed schedule. About: within a factor of {ABOUT}",
    )


def c7(evidence: Evidence, m: int) -> Draft:
    """Error of CollabTopNIID is far below Uniform's."""
    pairs = _with_uniform(evidence, m)
    ratio, where = None, ""
    if pairs:
        ours, uniform = min(pairs, key=lambda pair: abs(pair[1].error - 0.5))
        ratio = quotient(share(ours.wrong, ours.runs), share(uniform.wrong, uniform.runs))
        where = f" at T = {ours.horizon:,}"
    errors = (f"{ours.error:.3f} and {uniform.error:.3f} at T = {ours.horizon:,}" for ours, uniform in pairs)
    return Draft(
        f"C7 (m = {m})",
        f"m = {m}: the error of CollabTopNIID is far below Uniform's",
        (Claim(f"error of CollabTopNIID over that of Uniform{where}", ratio, most=_FAR),),
        "Far below: at most half, at the horizon of the sweep at which Uniform's error is nearest to .5. Printed "
        "schedule",
        (f"Error of CollabTopNIID and of Uniform: {', '.join(errors) or 'not measured'}",),
    )


def _with_uniform(evidence: Evidence, m: int) -> list[tuple[PointSummary, PointSummary]]:
    """The points of CollabTopNIID, each with that of Uniform at the same horizon."""
    others = {point.horizon: point for point in evidence.sweep(UNIFORM, NON_IID, m)}
    ours = evidence.sweep(PRINTED_NON_IID, NON_IID, m)
    return [(point, others[point.horizon]) for point in ours if point.horizon in others]


def experiment_statements(evidence: Evidence) -> list[Draft]:
    """C1 to C7; those about both m = 1 and m = 8 once for each."""
    c1s, c5s, c6s, c7s = ([judge(evidence, m) for m in (1, 8)] for judge in (c1, c5, c6, c7))
    return [*c1s, c2(evidence), c3(evidence), c4(evidence), *c5s, *c6s, *c7s]
