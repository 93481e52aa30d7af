"""Rows of runs that never were."""

from collabtop.studies.table import Row, options_text


def made_up_rows(line, arms, m, agents, horizon, *, wrong, runs=100, words=1_000, bits=None):
    """Rows of runs that never were: so many wrong, words that differ by 1 from run to run."""
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
