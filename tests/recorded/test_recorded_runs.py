"""Forty runs recorded before the packages were rearranged: the same seed still gives the same run, on every team.

`python tests/recorded/test_recorded_runs.py` records them again, which is right only after a change that is meant to
change results.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collabtop as ct
from collabtop.testing import WireTeam

FILE = Path(__file__).with_name("runs.json")


def _case(algorithm: str, n: int, m: int, agents: int, horizon: int, seed: int, **more: Any) -> dict[str, Any]:
    return {"algorithm": algorithm, "n": n, "m": m, "agents": agents, "horizon": horizon, "seed": seed, **more}


FULL = {"options": {"schedule": "full"}}
CASES: list[dict[str, Any]] = [
    *(
        _case("frugal-top", n, m, agents, 60 * n, n + m)
        for n, m, agents in [(3, 1, 1), (40, 1, 5), (64, 8, 4), (9, 7, 2)]
    ),
    *(_case("frugal-top", 200, m, 10, 2_000, m) for m in (1, 20)),
    *(_case("frugal-top-noniid", n, m, agents, 60 * n, n, by_agent=True) for n, m, agents in [(16, 1, 3), (30, 25, 4)]),
    _case("frugal-top-noniid", 40, 4, 6, 4_000, 3),
    *(
        _case("collab-top-iid", n, m, agents, 80 * n, n)
        for n, m, agents in [(100, 1, 4), (128, 5, 3), (30, 20, 2), (5, 2, 9)]
    ),
    *(
        _case("collab-top-iid", n, m, agents, 40 * n, n, **FULL)
        for n, m, agents in [(100, 1, 4), (200, 6, 10), (8, 3, 1)]
    ),
    *(_case("collab-top-noniid", n, m, agents, 90 * n, n, by_agent=True) for n, m, agents in [(20, 1, 3), (33, 20, 5)]),
    _case("collab-top-noniid", 24, 3, 4, 2_000, 8, **FULL),
    *(_case("kzz", n, m, agents, 50 * n, n) for n, m, agents in [(60, 1, 5), (90, 8, 10), (12, 9, 3), (2, 1, 1)]),
    *(_case("kzz-balanced", n, m, agents, 50 * n, n) for n, m, agents in [(60, 1, 5), (90, 8, 10), (12, 9, 3)]),
    *(_case("uniform", n, m, agents, 20 * n, n) for n, m, agents in [(50, 1, 4), (10, 8, 3), (7, 7, 2)]),
    _case("uniform", 15, 2, 4, 300, 1, by_agent=True),
    *(_case("sar", n, m, 1, 40 * n, n) for n, m in [(20, 1), (31, 25)]),
    *(_case("sequential-halving", n, 1, 1, 60 * n, n) for n in (16, 45)),
    *(_case("kl-lucb", n, m, 1, 3_000, n) for n, m in [(5, 1), (8, 6)]),
    *(_case("confident-top", n, m, agents, 20_000, n) for n, m, agents in [(12, 1, 4), (20, 15, 3)]),
    *(
        _case("confident-top-noniid", n, m, agents, 20_000, n, by_agent=True)
        for n, m, agents in [(10, 1, 3), (12, 9, 2)]
    ),
]
# A function of the user's own takes another way through the arms than simulated ones.
CASES.append(_case("frugal-top", 12, 2, 3, 90, 5, function=True))


def score(mean: float, rng: np.random.Generator) -> bool:
    """One pull of a coin."""
    return bool(rng.random() < mean)


def arms_of(case: dict[str, Any]) -> ct.Arms:
    """The arms of a case: some tie, since half of the means are tenths."""
    rng = np.random.default_rng(case["seed"])
    shape = (case["n"], case["agents"]) if case.get("by_agent") else (case["n"],)
    means = np.where(rng.random(shape) < 0.5, rng.integers(1, 10, shape) / 10, rng.uniform(0.1, 0.9, shape))
    if case.get("function"):
        return ct.FunctionArms(means.tolist(), score)
    return ct.HeterogeneousArms(means) if case.get("by_agent") else ct.BernoulliArms(means)


def run(case: dict[str, Any], team: str | ct.Team = "local", **more: Any) -> ct.Result:
    """Run a case on a team."""
    arms, limit = arms_of(case), "horizon"
    settings: dict[str, Any] = {name: case[name] for name in ("agents", "algorithm", "seed")}
    if case["algorithm"] in ("kl-lucb", "confident-top", "confident-top-noniid"):
        settings["confidence"], limit = 0.95, "max_horizon"
    settings |= {limit: case["horizon"], "options": case.get("options"), "team": team}
    return ct.identify(arms, case["m"], **(settings | more))


def outcome(result: ct.Result) -> dict[str, Any]:
    """What must not change: the answer, the costs, and a digest of all estimates, rounds and ledger entries."""
    whole = result.to_dict()
    for estimate in whole["estimates"]:
        estimate["mean"] = None if estimate["mean"] is None else round(estimate["mean"], 9)
    text = json.dumps([whole["estimates"], whole["rounds"], whole["ledger"]], sort_keys=True)
    counts = ("top_indices", "time", "pulls", "words", "bits", "round_trips")
    return {name: whole[name] for name in counts} | {"digest": hashlib.sha256(text.encode()).hexdigest()[:16]}


def recorded() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Every case with what came out when it was recorded."""
    return [(one["case"], one["outcome"]) for one in json.loads(FILE.read_text(encoding="utf-8"))]


def name(case: dict[str, Any]) -> str:
    """A case as a test's name."""
    return f"{case['algorithm']} n={case['n']} m={case['m']} K={case['agents']} {case.get('options', '')}".strip()


each_case = pytest.mark.parametrize(
    ("case", "expected"), recorded() if FILE.exists() else [], ids=lambda value: name(value) if "n" in value else ""
)


def test_the_recorded_cases_are_those_of_this_file() -> None:
    assert [case for case, _ in recorded()] == CASES


@each_case
def test_the_run_is_the_recorded_one(case: dict[str, Any], expected: dict[str, Any]) -> None:
    assert outcome(run(case)) == expected


@each_case
def test_so_it_is_on_threads(case: dict[str, Any], expected: dict[str, Any]) -> None:
    assert outcome(run(case, "threads")) == expected


@each_case
def test_so_it_is_when_every_message_goes_through_bytes(case: dict[str, Any], expected: dict[str, Any]) -> None:
    assert outcome(run(case, WireTeam())) == expected


@each_case
def test_so_it_is_with_a_checkpoint_and_when_that_is_run_again(
    case: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    assert outcome(run(case, checkpoint=tmp_path / "run.ctlog")) == expected
    assert outcome(run(case, checkpoint=tmp_path / "run.ctlog")) == expected


def main() -> None:
    """Record all cases."""
    runs = [{"case": case, "outcome": outcome(run(case))} for case in CASES]
    FILE.write_text("[\n" + ",\n".join(json.dumps(one) for one in runs) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
