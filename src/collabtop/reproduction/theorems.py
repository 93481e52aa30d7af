"""The paper's theorems, T1 to T5, as claims about the measurements."""

import math

from collabtop.crossing import Crossing, NotReached
from collabtop.problem import error_bound
from collabtop.reproduction.evidence import IID, PRINTED, Evidence, paper_name
from collabtop.reproduction.experiments import AGENTS
from collabtop.reproduction.growth_verdict import t2
from collabtop.reproduction.theorem_studies import bound_horizon, corollary_holds_from, printed_special_arm_wins_from
from collabtop.reproduction.verdicts import Claim, Draft, Estimate, horizon, normal, quotient, share

_CORRECT = 0.01
"""The largest error of an algorithm that the lower bounds are about."""


def t1(evidence: Evidence) -> Draft:
    """The bound on the error."""
    claims = []
    for point in evidence.bound:
        bound = error_bound(evidence.arms[point.arms], point.m, point.agents, point.horizon)
        estimand = (
            f"{paper_name(point.algorithm, point.schedule)}, {evidence.arms[point.arms].n} easy arms, "
            f"K = {point.agents}, T = {point.horizon:,}: error"
        )
        remark = f"{point.wrong} of {point.runs:,} runs wrong"
        claims.append(
            Claim(
                estimand, share(point.wrong, point.runs), most=min(1.0, bound), bound=True, digits=".4f", remark=remark
            )
        )
    return Draft(
        "T1",
        "P(wrong) is at most 2n log(2n) exp(-TK / (128 H log(2n))); with T = 500 H log^2 n / K the answer is correct "
        "with probability .99",
        tuple(claims),
        "Regime: printed schedules, on arms that are easy enough for the bound to be below 1 at a feasible horizon; "
        "their number is a power of two, for which the printed proof is complete. The tolerance is the bound",
        (
            f"On the paper's instance the bound is below 1 only from T = "
            f"{bound_horizon(evidence.arms[IID], 1, AGENTS, 1):,.3g} on (m = 1, K = {AGENTS})",
            f"T = 500 H log^2 n / K gives probability .99 only for n >= {corollary_holds_from()}",
        ),
    )


def t3(evidence: Evidence) -> Draft:
    """The speed-up."""
    n, h = evidence.arms[IID].n, evidence.complexity(IID, 1)
    claims, notes = [], []
    studied = [crossed for crossed in evidence.crossings if (crossed.arms, crossed.m) == (IID, 1)]
    several = [line for line in dict.fromkeys(c.line for c in studied) if sum(c.line == line for c in studied) > 1]
    for line in several:
        ratios = []
        for crossed in sorted((c for c in studied if c.line == line), key=lambda c: c.agents):
            least = crossed.agents / math.log2(n) ** 2
            remark = crossed.at.reason if isinstance(crossed.at, NotReached) else ""
            estimand = f"{line.name}, K = {crossed.agents}: H/T"
            claims.append(Claim(estimand, _speedup(crossed.at, h), least, crossed.agents, remark=remark))
            ratios += [h / crossed.at.horizon / least] if isinstance(crossed.at, Crossing) else []
        if ratios:
            notes.append(f"{line.name}: H/T is {min(ratios):.1f} to {max(ratios):.1f} times K / log2(n)^2")
    if not claims:
        at = evidence.best_crossing(PRINTED, IID, 1, AGENTS)
        if isinstance(at, Crossing):
            notes.append(f"Rough estimate for {PRINTED.name} at K = {AGENTS}: H/T = {h / at.horizon:.2f}")
        notes.append("The horizons for error .01 at several K are not measured with --quick")
    return Draft(
        "T3",
        "The speed-up is of the order of K / log^2 n; in order of magnitude it is at most K",
        tuple(claims),
        "The speed-up is H/T at the horizon T for error .01 (m = 1). The tolerance is K / log2(n)^2 to K",
        tuple(notes),
    )


def _speedup(at: Crossing | NotReached, h: float) -> Estimate:
    return quotient(normal(h, 0.0), horizon(at))


def t4(evidence: Evidence) -> Draft:
    """The non-IID lower bound."""
    claims = []
    for answers in evidence.disjointness:
        needed = answers.elements * answers.agents
        claims.append(
            Claim(
                f"{answers.line.name}: bits over n K = {needed:,}",
                normal(answers.bits_mean / needed, answers.bits_sd / math.sqrt(answers.runs) / needed),
                least=1.0,
                bound=True,
                premise=(share(answers.wrong, answers.runs), _CORRECT),
                remark=f"{answers.wrong} of {answers.runs:,} answers wrong",
            )
        )
    return Draft(
        "T4",
        "Non-IID: an algorithm that is correct with probability .99 needs Omega(nK) bits (set disjointness)",
        tuple(claims),
        "Judged by the answers to set disjointness on the corrected instance, with a constant of 1. An algorithm that "
        "sends fewer bits contradicts the statement only if its error is shown to be at most .01",
        (
            f"As printed, the special arm beats every other arm from n = {printed_special_arm_wins_from()} on, so the "
            "best arm does not answer the question; here its mean is corrected to 2/3 - 1/(6K)",
        ),
    )


def t5(evidence: Evidence) -> Draft:
    """The IID lower bound."""
    claims = []
    n = evidence.arms[IID].n
    for m in (1, 8):
        label, h = math.log2(math.comb(n, m)), evidence.complexity(IID, m)
        for line in evidence.lines(IID):
            points = evidence.sweep(line, IID, m, agents=AGENTS)
            if not points:
                continue
            least = min(points, key=lambda point: point.bits_mean)
            bits = normal(least.bits_mean, least.bits_sd / math.sqrt(least.message_runs))
            beta = _speedup(evidence.best_crossing(line, IID, m, AGENTS), h)
            claims.append(
                Claim(
                    f"m = {m}, {line.name}: bits over beta + log2 C(n, m)",
                    quotient(bits, _plus(beta, label)),
                    least=1.0,
                    bound=True,
                    digits=",.0f",
                    remark=_bound_text(beta.value, label, least.bits_mean),
                )
            )
    return Draft(
        "T5",
        "IID: a speed-up of beta needs Omega(beta + m) bits",
        tuple(claims),
        "The fewest bits of the sweep are compared with beta + log2 C(n, m), where beta is the speed-up H/T at error "
        ".01, with a constant of 1",
    )


def _plus(estimate: Estimate, number: float) -> Estimate:
    def ends(z: float) -> tuple[float, float]:
        low, high = estimate.ends(z)
        return low + number, high + number

    value = number if math.isnan(estimate.value) else estimate.value + number
    return Estimate(value, ends, estimate.intervals)


def _bound_text(beta: float, label: float, bits: float) -> str:
    speedup = "beta not located" if math.isnan(beta) else f"beta = {beta:.1f}"
    return f"{bits:,.0f} bits, {speedup}, log2 C(n, m) = {label:.1f}"


def theorem_statements(evidence: Evidence) -> list[Draft]:
    """T1 to T5."""
    return [draft(evidence) for draft in (t1, t2, t3, t4, t5)]
