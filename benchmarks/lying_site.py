"""How far one liar among ten agents can change the answer, for each lie of a small zoo and each algorithm.

    python benchmarks/lying_site.py [--runs 300] [--only robust-top]

40 arms have means spread evenly over 0.2 to 0.8, and 10 agents look for the best 4. Agent 0 lies. The table shows the
share of runs with a wrong answer, and for robust-top how often the liar was named. The horizon of frugal-top is one at
which its error is about .01 if all agents are honest; robust-top is shown at 1, 2 and 3.5 times that horizon.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import collabtop as ct

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.liars import LIES, Lie, LyingArms, M, is_right

AGENTS, HORIZON = 10, 4_500
RIVALS = ["frugal-top", "confident-top", "kzz", "frugal-top-noniid"]
FACTORS = [1.0, 2.0, 3.5]


def measure(lie: Lie, algorithm: str, horizon: int, runs: int) -> tuple[float, float, float]:
    """The share of wrong answers and of runs that name the liar, and the mean words."""
    wrong, named, words = 0, 0, 0
    limit = {"confidence": 0.95, "max_horizon": horizon} if algorithm == "confident-top" else {"horizon": horizon}
    for seed in range(runs):
        result = ct.identify(LyingArms(lie), M, agents=AGENTS, algorithm=algorithm, seed=seed, **limit)
        wrong += not is_right(result)
        named += 0 in result.suspects
        words += result.words
    return wrong / runs, named / runs, words / runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--only", choices=[*RIVALS, "robust-top"], help="the rows of one algorithm")
    options = parser.parse_args()
    print(f"| algorithm | horizon | words | {' | '.join(LIES)} |")
    print("| --- | --- | --- |" + " --- |" * len(LIES))
    settings = [(algorithm, HORIZON) for algorithm in RIVALS]
    settings += [("robust-top", round(factor * HORIZON)) for factor in FACTORS]
    for algorithm, horizon in settings:
        if options.only not in (None, algorithm):
            continue
        cells, words = [], 0.0
        for name, lie in LIES.items():
            wrong, named, mean_words = measure(lie, algorithm, horizon, options.runs)
            words = mean_words if name == "honest" else words
            cells.append(f"{wrong:.3f}" + (f" (named {named:.0%})" if named else ""))
        print(f"| `{algorithm}` | {horizon:,} | {words:,.0f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
