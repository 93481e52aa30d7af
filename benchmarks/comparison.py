"""collabtop and other tools on one task: the best of 60 scikit-learn pipelines, with about 180 fits.

    python benchmarks/comparison.py [--runs 100] [--slow 30]   (needs optuna, nevergrad, mabwiser, river and ray[tune])

The pipelines of `examples/pipelines.py` are fitted on 50 random splits of the digits, the same splits for all, and on
30 further splits. A tool's "fit" is an entry of the first table. Regret is measured on the further splits, which no
tool sees: how much less accurate the chosen pipeline is than the best, in percentage points. Each tool is used as its
documentation suggests. Tools that have no notion of a split get a different random one at every fit. Time is CPU time
per search in this process, without the fits; the median over the runs. Words are what crosses between agents and
coordinator.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import collabtop as ct

sys.path.insert(0, str(Path(__file__).parents[1]))
from examples import pipelines

SPLITS, HELD_OUT, BUDGET = 50, 30, 180
MOST = 9  # fits of one pipeline by the tools that need a maximum: 60 x 1, 20 x 3 and 6 x 9 are about the budget
Table = NDArray[np.float64]


class Search:
    """One search: the fits that a tool asked for, and what it chose."""

    def __init__(self, table: Table, seed: int) -> None:
        self.n, self.seed, self.rng = len(table), seed, np.random.default_rng(seed)
        self.order = self.rng.permutation(SPLITS)
        self.fits = self.words = 0
        self._table = table

    def fit(self, pipeline: int, number: int) -> float:
        """Fit a pipeline on the split of this number, the same for all pipelines."""
        self.fits += 1
        return float(self._table[pipeline, self.order[number % SPLITS]])

    def random_fit(self, pipeline: int) -> float:
        """Fit a pipeline on a random split."""
        return self.fit(pipeline, int(self.rng.integers(SPLITS)))


def fit_all() -> Table:
    """The accuracy of every pipeline on every split."""
    splits = range(SPLITS + HELD_OUT)
    with threadpool_limits(1):
        return np.array(
            [[pipelines.accuracy(candidate, split) for split in splits] for candidate in pipelines.CANDIDATES]
        )


# -- the tools: each returns the number of the pipeline that it chose


def uniform(search: Search) -> int:
    each = BUDGET // search.n
    scores = np.array([[search.fit(arm, number) for number in range(each)] for arm in range(search.n)])
    return int(scores.mean(axis=1).argmax())


def six_lines(search: Search) -> int:
    live, sums, done, rounds = np.arange(search.n), np.zeros(search.n), 0, int(np.ceil(np.log2(search.n)))
    for r in range(rounds):
        new = max(1, (BUDGET - search.fits) // ((rounds - r) * len(live)))
        sums[live] += [sum([search.fit(arm, done + number) for number in range(new)]) for arm in live.tolist()]
        done, live = done + new, live[np.argsort(-sums[live])[: -(-len(live) // 2)]]
    return int(live[0])


def collabtop(search: Search, agents: int = 1) -> int:
    @ct.replicates
    def accuracy(arm: int, split: int) -> float:
        return search.fit(arm, split)

    result = ct.identify(range(search.n), m=1, pull=accuracy, agents=agents, budget=BUDGET, seed=search.seed)
    search.words = result.words
    return result.top_indices[0]


def collabtop_team(search: Search) -> int:
    return collabtop(search, agents=4)


def scikit_learn(search: Search) -> int:
    from sklearn.base import BaseEstimator
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV

    class Candidate(BaseEstimator):  # type: ignore[misc]
        """A pipeline whose score is the mean over `fits` splits, the resource of the halving search."""

        def __init__(self, arm: int = 0, fits: int = 1) -> None:
            self.arm, self.fits = arm, fits

        def fit(self, features: Table, classes: Table) -> Candidate:
            return self

        def score(self, features: Table, classes: Table) -> float:
            return float(np.mean([search.fit(self.arm, number) for number in range(self.fits)]))

    halving = HalvingGridSearchCV(
        Candidate(),
        {"arm": list(range(search.n))},
        resource="fits",
        min_resources=1,
        max_resources=MOST,
        factor=3,
        cv=[(np.arange(2), np.arange(2))],
        refit=False,
        return_train_score=False,  # True would double the fits
        random_state=search.seed,
    )
    halving.fit(np.zeros((4, 1)), np.array([0, 1, 0, 1]))
    return int(halving.best_params_["arm"])


def optuna_successive_halving(search: Search) -> int:
    import optuna

    return optuna_study(search, optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3))


def optuna_wilcoxon(search: Search) -> int:
    import optuna

    return optuna_study(search, optuna.pruners.WilcoxonPruner(p_threshold=0.1))


def optuna_study(search: Search, pruner: Any) -> int:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial: optuna.Trial) -> float:
        arm = trial.suggest_int("arm", 0, search.n - 1)
        scores: list[float] = []
        for number in range(MOST):
            scores.append(search.fit(arm, number))
            trial.report(scores[-1] if "Wilcoxon" in type(pruner).__name__ else float(np.mean(scores)), number + 1)
            if trial.should_prune():
                break  # the score so far counts, as the documentation of WilcoxonPruner suggests
        trial.set_user_attr("pruned", len(scores) < MOST)
        return float(np.mean(scores))

    sampler = optuna.samplers.GridSampler({"arm": list(range(search.n))}, seed=search.seed)
    study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    study.optimize(objective, n_trials=search.n)
    complete = [trial for trial in study.trials if not trial.user_attrs["pruned"]] or study.trials
    return int(max(complete, key=lambda trial: trial.value or 0.0).params["arm"])


def nevergrad(search: Search) -> int:
    import nevergrad as ng

    parametrization = ng.p.Choice(list(range(search.n)))
    parametrization.random_state.seed(search.seed)
    optimizer = ng.optimizers.registry["NoisyBandit"](parametrization, budget=BUDGET)
    return int(optimizer.minimize(lambda arm: 1 - search.random_fit(arm)).value)


def mabwiser(search: Search) -> int:
    from mabwiser.mab import MAB, LearningPolicy

    bandit = MAB(list(range(search.n)), LearningPolicy.UCB1(alpha=0.1), seed=search.seed)
    scores: list[list[float]] = [[search.random_fit(arm)] for arm in range(search.n)]
    bandit.fit(list(range(search.n)), [arm_scores[0] for arm_scores in scores])
    while search.fits < BUDGET:
        arm = bandit.predict()
        scores[arm].append(search.random_fit(arm))
        bandit.partial_fit([arm], [scores[arm][-1]])
    return int(np.argmax([np.mean(arm_scores) for arm_scores in scores]))


def river(search: Search) -> int:
    from river import bandit, stats

    policy = bandit.UCB(delta=0.1, reward_obj=stats.Mean(), burn_in=1, seed=search.seed)
    arms = list(range(search.n))
    while search.fits < BUDGET:
        arm = policy.pull(arms)
        policy.update(arm, search.random_fit(arm))
    return int(max(arms, key=lambda arm: policy._rewards[arm].get()))


def ray_tune(search: Search) -> int:
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler

    table, order = search._table, search.order

    def trainable(config: dict[str, Any]) -> None:
        scores: list[float] = []
        for number in range(MOST):
            scores.append(float(table[config["arm"], order[number]]))
            tune.report({"mean": float(np.mean(scores))})

    with tempfile.TemporaryDirectory() as folder:
        tuner = tune.Tuner(
            trainable,
            param_space={"arm": tune.grid_search(list(range(search.n)))},
            tune_config=tune.TuneConfig(
                metric="mean",
                mode="max",
                scheduler=ASHAScheduler(max_t=MOST, grace_period=1, reduction_factor=3),
                reuse_actors=True,  # a process per trial would take a minute to start them all
            ),
            run_config=tune.RunConfig(storage_path=folder, verbose=0),
        )
        results = list(tuner.fit())
    search.fits = sum(result.metrics["training_iteration"] for result in results)
    longest = max(result.metrics["training_iteration"] for result in results)
    finished = [result for result in results if result.metrics["training_iteration"] == longest]
    return int(max(finished, key=lambda result: result.metrics["mean"]).config["arm"])


TOOLS: dict[str, Callable[[Search], int]] = {
    "every pipeline equally often": uniform,
    "six lines of NumPy: halving on the same splits": six_lines,
    "scikit-learn `HalvingGridSearchCV`": scikit_learn,
    "Optuna `SuccessiveHalvingPruner`": optuna_successive_halving,
    "Optuna `WilcoxonPruner`": optuna_wilcoxon,
    "nevergrad `NoisyBandit`": nevergrad,
    "MABWiser `UCB1`": mabwiser,
    "river `bandit.UCB`": river,
    "Ray Tune `ASHAScheduler`": ray_tune,
    "collabtop, 1 agent": collabtop,
    "collabtop, 4 agents": collabtop_team,
}


SLOW = (ray_tune,)


def measure(tool: Callable[[Search], int], table: Table, runs: int) -> tuple[Table, Table, Table, Table]:
    """The chosen pipelines, fits, CPU seconds and words of so many searches."""
    rows = []
    for seed in range(runs):
        search, began = Search(table[:, :SPLITS], seed), process_time()
        chosen = tool(search)
        rows.append((chosen, search.fits, process_time() - began, search.words))
    chosen, fits, seconds, words = np.array(rows).T
    return chosen.astype(int), fits, seconds, words


def print_pipelines(runs: int, slow_runs: int) -> None:
    table = fit_all()
    values = table[:, SPLITS:].mean(axis=1)
    print(f"60 pipelines; accuracy of the best {values.max():.4f}, of the next {np.sort(values)[-2]:.4f}\n")
    print("| tool | runs | fits, mean | regret, mean | picked one of the best 5 | CPU ms | words |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, tool in TOOLS.items():
        print_row(name, tool, table, slow_runs if tool in SLOW else runs)


def print_row(name: str, tool: Callable[[Search], int], table: Table, runs: int) -> None:
    values = table[:, SPLITS:].mean(axis=1)
    chosen, fits, seconds, words = measure(tool, table, runs)
    regret = 100 * (values.max() - values[chosen])
    half = 1.96 * regret.std(ddof=1) / runs**0.5
    among = np.isin(chosen, np.argsort(-values)[:5]).mean()
    sent = f"{words.mean():,.0f}" if words.any() else "-"
    cells = f"{runs} | {fits.mean():.0f} | {regret.mean():.2f} +- {half:.2f} | {among:.0%}"
    print(f"| {name} | {cells} | {1_000 * np.median(seconds):,.1f} | {sent} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="runs of each tool")
    parser.add_argument("--slow", type=int, default=30, help="runs of Ray Tune, which takes seconds per search")
    given = parser.parse_args()
    print_pipelines(given.runs, given.slow)


if __name__ == "__main__":
    main()
