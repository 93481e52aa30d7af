"""Made-up rows of a study, and evidence built from them."""

import collabtop as ct
from collabtop.reproduction.evidence import FULL, FULL_NON_IID, KZZ, PRINTED, PRINTED_NON_IID, UNIFORM, Evidence
from collabtop.reproduction.experiments import IID, NON_IID
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


def made_up_evidence(change=lambda *_: {}, runs=100, **rest):
    """Evidence in which every statement holds unless rows are changed.

    `change(line, arms, m, agents, horizon)` returns the arguments of `made_up_rows` to change at a point.
    """
    rows = []
    for line, words in ((PRINTED, 100), (FULL, 100), (KZZ, 2_000)):
        for m, fixed in ((1, 30_000), (8, 600_000)):
            sweep = [(10, horizon, wrong) for horizon, wrong in zip(_horizons(m), (0.6, 0.2, 0.0), strict=True)]
            for t in {fixed, 30_000}:
                sweep += [(agents, t, wrong) for agents, wrong in ((2, 0.6), (6, 0.2), (30, 0.0))]
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


def _horizons(m):
    return (5_000, 30_000, 80_000) if m == 1 else (60_000, 600_000, 2_000_000)
