"""Events of a run add up to its result, and its progress is displayed on any stream."""

from __future__ import annotations

import io

import pytest

import collabtop as ct
from collabtop import events
from collabtop.runs.progress import RunState, progress_display

MEANS = [0.2, 0.35, 0.5, 0.65, 0.8]


def score(mean, rng):
    return rng.random() < mean


def run_with_events(arms=None, team="local", pull=score, **more):
    seen = []
    arms = MEANS if arms is None else arms
    pull = pull if arms is MEANS else None
    arguments = {"agents": 3, "horizon": 60, "seed": 2, "team": team, "pull": pull, **more}
    return seen, ct.identify(arms, 2, on_event=seen.append, **arguments)


@pytest.mark.parametrize("team", ["local", "threads"])
@pytest.mark.parametrize("arms", [None, ct.BernoulliArms(MEANS)])
def test_the_events_add_up_to_the_result(arms, team):
    seen, result = run_with_events(arms, team)
    assert isinstance(seen[0], events.RunStarted)
    assert isinstance(seen[-1], events.RunEnded)
    assert (seen[0].n, seen[0].m, seen[0].agents, seen[0].horizon, seen[0].seed) == (5, 2, 3, 60, 2)
    assert sum(event.pulls for event in seen if isinstance(event, events.PullsMade)) == result.pulls
    rounds = [(event.round, event.phase, event.live) for event in seen if isinstance(event, events.RoundBegan)]
    assert rounds == [(summary.round, summary.phase, summary.live) for summary in result.rounds]
    exchanges = [event for event in seen if isinstance(event, events.Exchanged)]
    assert [event.number for event in exchanges] == list(range(1, result.round_trips + 1))
    last = exchanges[-1]
    assert (last.time, last.pulls, last.bits) == (result.time, result.pulls, result.bits)
    assert (list(seen[-1].top), seen[-1].words) == (result.top_indices, result.words)


def test_watching_changes_nothing():
    assert run_with_events()[1] == ct.identify(MEANS, 2, pull=score, agents=3, horizon=60, seed=2)


def test_failed_attempts_are_published_with_candidate_and_reason():
    def flaky(mean, rng):
        if rng.random() < 0.1:
            raise ConnectionError("busy")
        return mean

    seen, result = run_with_events(pull=flaky, policy=ct.PullPolicy(retries=9, wait=0))
    failed = [event for event in seen if isinstance(event, events.PullFailed)]
    assert len(failed) == result.retries > 3
    assert {event.error for event in failed} == {"raised ConnectionError: busy"}
    assert {event.candidate for event in failed} <= set(map(str, MEANS))
    assert all(event.again for event in failed)


def test_resumed_pulls_are_published_as_recalled(tmp_path):
    path = tmp_path / "run.ctlog"
    run_with_events(checkpoint=path)
    seen = []
    result = ct.resume(path, pull=score, on_event=seen.append)
    assert seen[0].known_pulls == result.pulls
    assert all(event.recalled for event in seen if isinstance(event, events.PullsMade))


def test_a_handler_that_raises_ends_the_run():
    def handler(event):
        raise LookupError("enough")

    for team in ("local", "threads"):
        with pytest.raises(LookupError, match="enough"):
            ct.identify(MEANS, 1, pull=score, agents=2, horizon=30, team=team, on_event=handler)


def test_progress_in_a_pipe_is_a_few_plain_lines(capsys):
    result = ct.identify(MEANS, 2, pull=score, agents=3, horizon=60, seed=2, algorithm="kzz", progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "\x1b" not in captured.err
    last = captured.err.splitlines()[-1]
    assert last.startswith(f"round {result.rounds[-1].round}, ")  # the last round, as the result counts them
    assert last.endswith(f"{result.pulls:,} pulls made, done, {result.words:,} words")
    assert len(captured.err.splitlines()) <= 4


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_in_a_terminal_says_round_candidates_pulls_words_and_time(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    stream, seen = Terminal(), []
    with progress_display(seen.append, stream) as handler:
        handler(events.RunStarted("kzz", 8, 1, 2, 50, 1, 0))
        handler(events.RoundBegan(0, "shared", 8))
        handler(events.PullsMade(0, 25, False))
    assert len(seen) == 3
    text = stream.getvalue()
    assert "round 0, 8 candidates open, 25 pulls made, at most 75 left, 0 words" in text
    assert "left" in text


def test_progress_in_a_notebook_is_one_line_written_over(monkeypatch):
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    stream = io.StringIO()
    with progress_display(None, stream) as handler:
        handler(events.RunStarted("kzz", 8, 1, 2, 50, 1, 0))
        handler(events.RunEnded((0,), 50, 100, 16))
    assert stream.getvalue().startswith("\r")
    assert stream.getvalue().count("\n") == 1


def test_the_pace_leaves_out_what_was_recalled():
    state = RunState()
    state.take(events.RunStarted("kzz", 8, 1, 2, 50, 1, 60))
    state.take(events.PullsMade(0, 60, True))
    assert state.seconds_left is None
    state.take(events.PullsMade(0, 10, False))
    assert state.seconds_left > 0
