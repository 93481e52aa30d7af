"""collabtop and other tools on one task: find the best of 60 scikit-learn pipelines with about the same number of fits.

    python benchmarks/comparison.py [--runs 200]          (needs scikit-learn and optuna)

Every pipeline of `examples/pipelines.py` is fitted 200 times on random parts of the data. A tool's "fit" is a draw
from that table, so all tools have the same task and the best pipeline is known. Regret is the difference in accuracy
between the best pipeline and the chosen one, in percentage points. scikit-learn's halving search uses the number of
fits as its resource. Optuna's successive-halving pruner processes the candidates sequentially, as in a study. What else
a tool can do (new candidates during the search, growing data sets) is not measured.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import collabtop as ct

sys.path.insert(0, str(Path(__file__).parents[1]))
from examples import pipelines

TABLE_FITS, BUDGET = 200, 300
Table = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    table = fit_all()
    means = table.mean(axis=1)
    print(f"60 pipelines, best mean {means.max():.4f}, next {np.sort(means)[-2]:.4f}; {runs} runs of each tool\n")
    print("| tool | fits, mean | regret, mean | picked one of the best 5 |")
    print("| --- | --- | --- | --- |")
    for name, choose in TOOLS.items():
        chosen, fits = zip(*(choose(table, seed) for seed in range(runs)), strict=True)
        regret = 100 * (means.max() - means[list(chosen)])
        among = np.isin(chosen, np.argsort(-means)[:5]).mean()
        error = regret.std() / runs**0.5
        print(f"| {name} | {np.mean(fits):.0f} | {regret.mean():.2f} +- {1.96 * error:.2f} | {among:.0%} |", flush=True)


def fit_all() -> Table:
    rng = np.random.default_rng(0)
    return np.array(
        [[pipelines.accuracy(pipeline, rng) for _ in range(TABLE_FITS)] for pipeline in pipelines.CANDIDATES]
    )


def collabtop(table: Table, seed: int, agents: int = 4) -> tuple[int, int]:
    arms = ct.FunctionArms(list(range(len(table))), lambda arm, rng: float(rng.choice(table[arm])))
    result = ct.identify(arms, m=1, agents=agents, budget=BUDGET, seed=seed)
    return result.top_indices[0], result.pulls


def equal(table: Table, seed: int) -> tuple[int, int]:
    each = BUDGET // len(table)
    draws = np.random.default_rng(seed).choice(table, each, axis=1)
    return int(draws.mean(axis=1).argmax()), each * len(table)


def scikit_learn(table: Table, seed: int) -> tuple[int, int]:
    from sklearn.base import BaseEstimator
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV

    rng, fits = np.random.default_rng(seed), [0]

    class Candidate(BaseEstimator):  # type: ignore[misc]
        """A pipeline whose score is the mean of `fits` fits, the resource of the halving search."""

        def __init__(self, arm: int = 0, fits: int = 1) -> None:
            self.arm, self.fits = arm, fits

        def fit(self, features: Table, classes: Table) -> Candidate:
            return self

        def score(self, features: Table, classes: Table) -> float:
            fits[0] += self.fits
            return float(rng.choice(table[self.arm], self.fits).mean())

    search = HalvingGridSearchCV(
        Candidate(),
        {"arm": list(range(len(table)))},
        resource="fits",
        min_resources=1,
        max_resources=27,
        factor=3,
        cv=[(np.arange(2), np.arange(2))],
        refit=False,
        return_train_score=False,  # True would double the fits
        random_state=seed,
    )
    search.fit(np.zeros((4, 1)), np.array([0, 1, 0, 1]))
    return int(search.best_params_["arm"]), fits[0]


def optuna_pruner(table: Table, seed: int) -> tuple[int, int]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rng, fits = np.random.default_rng(seed), [0]

    def objective(trial: optuna.Trial) -> float:
        arm = trial.suggest_int("arm", 0, len(table) - 1)
        total = 0.0
        for step in range(1, 28):
            fits[0] += 1
            total += float(rng.choice(table[arm]))
            trial.report(total / step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return total / 27

    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.GridSampler({"arm": list(range(len(table)))}, seed=seed),
        pruner=optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3),
    )
    study.optimize(objective, n_trials=len(table))
    return int(study.best_params["arm"]), fits[0]


TOOLS = {
    "every pipeline equally often": equal,
    "scikit-learn `HalvingGridSearchCV`": scikit_learn,
    "Optuna `SuccessiveHalvingPruner`": optuna_pruner,
    "collabtop, 4 agents": collabtop,
}


if __name__ == "__main__":
    main()
