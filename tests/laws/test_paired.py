"""Laws of candidates scored on examples: the same examples for all, and none twice, with every algorithm."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collabtop as ct
from tests.laws.test_every_algorithm import EVERY
from tests.support.accepted import accepted_setting, accepts

PAIRED = {name: algorithm for name, algorithm in EVERY.items() if accepts(algorithm, m=1, agents=1, paired=True)}
every_algorithm = pytest.mark.parametrize("algorithm", PAIRED.values(), ids=PAIRED.keys())


@dataclass
class Scored:
    """A scorer that notes which candidate was scored on which example."""

    quality: int
    pairs: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def __call__(self, candidate: int, example: int) -> bool:
        self.pairs[candidate].append(example)
        return (candidate * 31 + example * 17 + self.quality) % 100 < 20 + 60 * candidate / 40

    def sets(self) -> list[frozenset[int]]:
        """The examples of each candidate, fewest first."""
        return sorted((frozenset(examples) for examples in self.pairs.values()), key=len)


@dataclass
class Case:
    """Some candidates and examples, and how much horizon to give beyond the smallest."""

    n: int
    m: int
    agents: int
    examples: int
    spare: int
    seed: int

    def run(self, algorithm: ct.Algorithm, **more: Any) -> tuple[ct.Result, Scored]:
        """Run an algorithm on candidates of this shape."""
        scored = Scored(self.seed)
        m, agents = accepted_setting(algorithm, self.m, self.agents)
        settings: dict[str, Any] = {"m": m, "agents": agents, **more}
        arms = ct.DatasetArms(range(self.n), range(self.examples), scored)
        problem = ct.Problem(self.n, settings["m"], settings["agents"], 1, self.examples, numbered=True)
        horizon = algorithm.smallest_horizon(problem) + self.spare if settings["m"] < self.n else 1
        return ct.identify(arms, algorithm=algorithm, seed=self.seed, horizon=horizon, **settings), scored


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n = draw(st.integers(2, 40))
    return Case(
        n=n,
        m=draw(st.integers(1, n)),
        agents=draw(st.integers(1, 9)),
        examples=draw(st.integers(1, 60)),
        spare=draw(st.integers(0, 400)),
        seed=draw(st.integers(0, 1_000)),
    )


@every_algorithm
@given(case=cases())
@settings(max_examples=20)
def test_pull_number_t_of_every_candidate_uses_the_same_example(algorithm, case):
    _, scored = case.run(algorithm)
    sets = scored.sets()
    # With the same order for all, the examples of a candidate are among those of every candidate with more pulls.
    assert all(fewer <= more for fewer, more in pairwise(sets))


@every_algorithm
@given(case=cases())
@settings(max_examples=20)
def test_no_candidate_is_scored_twice_on_an_example(algorithm, case):
    result, scored = case.run(algorithm)
    assert all(len(examples) == len(set(examples)) for examples in scored.pairs.values())
    assert sum(map(len, scored.pairs.values())) == result.pulls
    assert result.time <= result.horizon


@every_algorithm
@given(case=cases())
@settings(max_examples=5)
def test_every_team_scores_the_same_pairs(algorithm, case):
    result, scored = case.run(algorithm)
    again, elsewhere = case.run(algorithm, team="threads")
    assert again == result
    assert elsewhere.sets() == scored.sets()


@every_algorithm
def test_with_time_for_all_examples_every_candidate_at_the_border_is_exact(algorithm):
    case = Case(n=12, m=3, agents=2, examples=9, spare=2_000, seed=1)
    result, _ = case.run(algorithm)
    table = np.array([[Scored(1)(candidate, example) for example in range(9)] for candidate in range(12)])
    if result.algorithm.startswith("collab-top-iid"):  # the paper's schedule leaves half of the horizon unused
        return
    chosen = sorted(table.mean(axis=1)[result.top_indices])
    assert chosen == sorted(table.mean(axis=1))[-result.m :]
