"""The best 5 of 60 scikit-learn pipelines, on the digits that ship with scikit-learn.

    python examples/pipelines.py [--out picture.png]

One pull fits a pipeline on 150 random digits and scores it on 300 others. `ct.replicates` gives pull number t of every
pipeline the same number t, hence the same split, so pipelines are compared on the same data. Trying all 60 equally
often would spend as many fits on the worst as on the best; the search spends them on the pipelines near the border.
The fits run in one process per core, with one thread each for linear algebra.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import collabtop as ct

SCALERS = {"raw": None, "standard": StandardScaler, "min-max": MinMaxScaler}
COMPONENTS = (None, 10, 20, 30)
MODELS = {
    "ridge": RidgeClassifier,
    "neighbour": lambda: KNeighborsClassifier(1),
    "5 neighbours": lambda: KNeighborsClassifier(5),
    "tree": lambda: DecisionTreeClassifier(max_depth=8, random_state=0),
    "bayes": GaussianNB,
}
FEATURES, CLASSES = load_digits(return_X_y=True)

# Candidates are plain data, so that a checkpoint can store them.
CANDIDATES = [list(parts) for parts in itertools.product(SCALERS, COMPONENTS, MODELS)]


def label(candidate: list[Any]) -> str:
    scaler, components, model = candidate
    return f"{scaler}, {'all' if components is None else components} columns, {model}"


@ct.replicates
def accuracy(candidate: list[Any], split: int) -> float:
    scaler, components, model = candidate
    steps = [SCALERS[scaler]()] if SCALERS[scaler] else []
    steps += [PCA(components, svd_solver="full")] if components else []
    rows = np.random.default_rng(split).permutation(len(CLASSES))
    train, test = rows[:150], rows[150:450]
    pipeline = make_pipeline(*steps, MODELS[model]())
    return float(pipeline.fit(FEATURES[train], CLASSES[train]).score(FEATURES[test], CLASSES[test]))


def search(seed: int = 3) -> ct.Result:
    arms = ct.FunctionArms(CANDIDATES, accuracy, labels=[label(candidate) for candidate in CANDIDATES])
    return ct.identify(arms, m=5, budget=600, seed=seed, team="processes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="save a figure of the run to this file")
    out = parser.parse_args().out
    result = search()
    print(result.table())
    print(f"{result.pulls} fits")
    if out:
        result.plot().savefig(out, dpi=100)


if __name__ == "__main__":
    main()
