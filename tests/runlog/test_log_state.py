"""The log alone is enough for pulls, means, words and the answer of a run."""

from __future__ import annotations

from typing import Any

import pytest

import collabtop as ct
from collabtop.runlog.file import read_log
from collabtop.runlog.log_state import LogState


def score(mean, rng):
    if rng.random() < 0.1:
        raise ConnectionError("busy")
    return rng.random() < mean


@pytest.mark.parametrize("team", ["local", "threads"])
def test_the_log_alone_has_pulls_means_words_and_failures(tmp_path, team):
    path = tmp_path / "run.ctlog"
    policy = ct.PullPolicy(retries=0, failures="skip")
    arguments: dict[str, Any] = {"agents": 3, "horizon": 60, "seed": 2, "team": team, "policy": policy}
    result = ct.identify([0.2, 0.5, 0.8], 1, pull=score, **arguments, checkpoint=path)
    state = LogState(read_log(path))
    assert state.seen_pulls.tolist() == result.observed.pulls.tolist()
    assert state.means.tolist() == pytest.approx(result.observed.means.tolist())
    failures = zip(map(str, [0.2, 0.5, 0.8]), state.failed.tolist(), strict=True)
    assert {label: count for label, count in failures if count} == result.failures != {}
    assert (state.words, state.bits, state.round_trips) == (result.words, result.bits, result.round_trips)
    assert {kind: totals.words for (kind, way), totals in state.messages.items() if way == "up"} == {
        kind: words for kind, words in result.ledger.words_by("kind").items() if kind in ("Means", "Hand")
    }
    assert state.top == result.top_indices
    assert state.latest >= state.started > 1.7e9
