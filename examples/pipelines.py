"""The best 5 of 60 scikit-learn pipelines, on the breast cancer data that ships with scikit-learn.

    python examples/pipelines.py [--out picture.png]

One pull fits a pipeline on a random part of the data and scores it on a different part. Trying all 60 equally often
would spend as many fits on the worst as on the best; the search spends them on the pipelines near the border.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import collabtop as ct

SCALERS = {"raw": None, "standard": StandardScaler, "min-max": MinMaxScaler}
COMPONENTS = (None, 2, 5, 10)
MODELS = {
    "logistic": lambda: LogisticRegression(solver="liblinear"),
    "neighbours": lambda: KNeighborsClassifier(5),
    "bayes": GaussianNB,
    "stump": lambda: DecisionTreeClassifier(max_depth=1),
    "tree": lambda: DecisionTreeClassifier(max_depth=5, random_state=0),
}
FEATURES, CLASSES = load_breast_cancer(return_X_y=True)

# Candidates are plain data, so that a checkpoint can store them.
CANDIDATES = [list(parts) for parts in itertools.product(SCALERS, COMPONENTS, MODELS)]


def label(candidate: list[Any]) -> str:
    scaler, components, model = candidate
    return f"{scaler}, {'all' if components is None else components} columns, {model}"


def accuracy(candidate: list[Any], rng: np.random.Generator) -> float:
    scaler, components, model = candidate
    steps = [SCALERS[scaler]()] if SCALERS[scaler] else []
    steps += [PCA(components, svd_solver="full")] if components else []
    rows = rng.permutation(len(CLASSES))[:200]
    train, test = rows[:100], rows[100:]
    pipeline = make_pipeline(*steps, MODELS[model]())
    return float(pipeline.fit(FEATURES[train], CLASSES[train]).score(FEATURES[test], CLASSES[test]))


def search(seed: int = 3) -> ct.Result:
    arms = ct.FunctionArms(CANDIDATES, accuracy, labels=[label(candidate) for candidate in CANDIDATES])
    return ct.identify(arms, m=5, agents=4, budget=900, seed=seed, team="threads")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="save a figure of the run to this file")
    out = parser.parse_args().out
    result = search()
    print(result.table())
    print(f"{result.pulls} fits; {result.words} words between 4 agents and the coordinator")
    if out:
        result.plot().savefig(out, dpi=100)


if __name__ == "__main__":
    main()
