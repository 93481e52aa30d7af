"""Logs of evaluations as users have them: prompts of 120 characters, scored on questions."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import collabtop as ct

_SENTENCE = "Answer in one short sentence, think step by step, be careful with dates, units, names and numbers"
_WORDS = _SENTENCE.split()


def long_label(number: int) -> str:
    """A label of 120 characters."""
    words = np.random.default_rng(number).choice(_WORDS, 40)
    return f"prompt {number}: {' '.join(words)}"[:119].rstrip().ljust(120, ".")


def evaluate_prompts(path: Path, *, candidates: int = 200, questions: int = 300, horizon: int = 4_000) -> ct.Result:
    """A finished run of prompts with long labels, with costs and notes."""
    rng = np.random.default_rng(4)
    skill, ease = rng.beta(6, 3, candidates), rng.random(questions)

    def score(candidate: int, question: int) -> ct.Reward:
        right = 0.7 * ease[question] + 0.3 * np.random.default_rng((candidate, question)).random() < skill[candidate]
        return ct.Reward(float(right), cost=0.002, note=f"the answer of {candidate} to question {question}")

    labels = [long_label(number) for number in range(candidates)]
    arms = ct.DatasetArms(list(range(candidates)), list(range(questions)), score, labels=labels)
    return ct.identify(arms, 5, agents=1, horizon=horizon, seed=2, checkpoint=path)


def many_candidates(path: Path, candidates: int = 10_000) -> ct.Result:
    """A finished run of very many candidates with long labels."""
    labels = [long_label(number) for number in range(candidates)]
    arms = ct.BernoulliArms(np.linspace(0.1, 0.9, candidates), labels=labels)
    return ct.identify(arms, 10, agents=20, horizon=20_000, seed=1, algorithm="kzz", checkpoint=path)
