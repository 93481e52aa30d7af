"""Made-up rows of a study, and evidence built from them."""

import collabtop as ct
from collabtop.reproduction.evidence import (
    FULL,
    FULL_NON_IID,
    IID,
    KZZ,
    NON_IID,
    PRINTED,
    PRINTED_NON_IID,
    UNIFORM,
    Evidence,
    Line,
)
from collabtop.reproduction.experiments import fixed_horizon
from collabtop.studies.table import Row, options_text

ARMS = {
    IID: ct.datasets.movielens_like(),
    NON_IID: ct.datasets.movielens_like_groups(),
    "easy": ct.datasets.equal_gaps(n=16, m=1, gap=0.5),
}


def made_up_rows(line, arms, m, agents, horizon, *, wrong, runs=100, words=1_000, bits=None):
    """Made-up rows with the given number of wrong runs; words alternate between two neighbouring values."""
    options = options_text({} if line.schedule is None else {"schedule": line.schedule})
    return [
        Row(
            arms=arms,
            algorithm=line.algorithm,
            options=options,
            m=m,
            agents=agents,
            horizon=horizon,
            run=run,
            seed=run,
            correct=run >= wrong,
            time=horizon,
            words=words + run % 2,
            bits=64 * words if bits is None else bits,
            round_trips=9,
            pulls=horizon,
        )
        for run in range(runs)
    ]


def made_up_evidence(change=lambda *_: {}, runs=1_000, **rest):
    """Evidence in which every statement is supported unless rows are changed.

    `change(line, arms, m, agents, horizon)` returns the arguments of `made_up_rows` to change at a point. The error
    halves with every further step of a length that is the horizon of error .5.
    """
    rows = []
    for line, words in ((PRINTED, 100), (FULL, 100), (KZZ, 2_000)):
        for m in (1, 8):
            fixed = fixed_horizon(ARMS[IID], m)
            sweep = [(10, round(fixed * share / 4), 0.5**share) for share in (0.5, 1, 2, 4, 8)]
            sweep += [(agents, fixed, 0.5 ** (agents / 2.5)) for agents in (2, 4, 8, 16, 32)]
            for agents, horizon, wrong in sweep:
                given = {"wrong": round(wrong * runs), "runs": runs, "words": words * agents}
                given |= change(line, IID, m, agents, horizon)
                rows += made_up_rows(line, IID, m, agents, horizon, **given)
    for line, words, errors in (
        (PRINTED_NON_IID, 4_000, (0.1, 0.0)),
        (FULL_NON_IID, 4_000, (0.1, 0.0)),
        (UNIFORM, 1_000, (0.8, 0.5)),
    ):
        for m in (1, 8):
            for horizon, wrong in zip((20_000, 50_000), errors, strict=True):
                given = {"wrong": round(wrong * runs), "runs": runs, "words": words}
                given |= change(line, NON_IID, m, 10, horizon)
                rows += made_up_rows(line, NON_IID, m, 10, horizon, **given)
    return Evidence(points=tuple(ct.StudyTable(rows).points()), arms=ARMS, **rest)


def made_up_baselines(runs=100, share=1.0):
    """Points of the literature's other algorithms; `share` of the runs are wrong at short horizons, none at long."""
    rows = []
    for m, names in ((1, ("batched-sar", "tzz", "hkk", "nsar")), (8, ("batched-sar", "nsar"))):
        for name in names:
            agents, fixed = (1, 10) if name == "nsar" else (10, 1)
            for horizon, wrong in ((10_000, 0.2), (20_000, 0.05), (40_000, 0.0)):
                given = {"wrong": round(wrong * share * runs), "runs": runs, "words": 300}
                rows += made_up_rows(Line(name), IID, m, agents, fixed * horizon, **given)
    return tuple(ct.StudyTable(rows).points())
