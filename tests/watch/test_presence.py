"""Agents that go away, come back or are lost for good: in the log for those who watch, and nothing to the run."""

from __future__ import annotations

import collabtop as ct
from collabtop.runlog.file import read_log
from collabtop.runlog.format import AgentStatus, Exchange, Finished, Header
from collabtop.watch.runs import WatchedRun
from collabtop.watch.views import summary, view
from tests.support.partial_log import half, logged, rewritten


class Losing(ct.LocalTeam):
    """Agent 1 gives no answer from the second exchange on, and never will."""

    tolerates_loss = True

    def deliver(self, requests):
        gone = {1} if requests[0].number > 1 else set()
        return super().deliver([request for request in requests if request.agent not in gone])


def watched(path):
    run = WatchedRun(path, path.name)
    run.read_on(closer=True)
    return run


def states(path):
    return view(watched(path))["agents"]["state"]


def test_agents_that_are_away_are_told_from_those_at_work(half):
    assert states(half(name="a.ctlog")) == ["working"] * 4
    away = AgentStatus([2, 3], "away", 1.9e9)
    assert states(half(away, name="b.ctlog")) == ["working", "working", "away", "away"]
    back = AgentStatus([2], "here", 1.9e9 + 1)
    assert states(half(away, back, name="c.ctlog"))[2:] == ["working", "away"]


def test_a_lost_agent_stays_lost(half):
    path = half(AgentStatus([1], "lost", 1.9e9), AgentStatus([1], "here", 1.9e9 + 1))
    assert states(path)[1] == "lost"
    assert summary(watched(path))["lost"] == 1


def test_when_a_run_over_sites_stops_only_those_that_were_away_are_lost(half):
    path = half(AgentStatus([2], "away", 1.9e9))
    half.end()
    assert states(path) == ["idle", "idle", "lost", "idle"]


def test_when_a_run_is_finished_nobody_is_away_any_more(half):
    notes = (AgentStatus([2], "away", 1.9e9), AgentStatus([3], "lost", 1.9e9), Finished([10, 11]))
    assert states(half(*notes)) == ["idle", "idle", "idle", "lost"]


def test_a_run_that_went_on_without_an_agent_is_told_as_it_was(tmp_path):
    path = tmp_path / "run.ctlog"
    result = logged(path, team=Losing())
    assert result.lost == (1,)
    run = watched(path)
    again = run.result()
    assert again == result
    assert (again.ledger, again.lost, again.warnings) == (result.ledger, result.lost, result.warnings)
    assert view(run)["agents"]["state"] == ["idle", "lost", "idle", "idle"]  # its log says so by what is missing


def test_another_run_under_the_same_name_is_told_as_if_nobody_had_been_lost_before(tmp_path):
    path = tmp_path / "run.ctlog"
    logged(path, team=Losing())
    run = watched(path)
    result = logged(tmp_path / "other.ctlog")
    (tmp_path / "other.ctlog").replace(path)
    run._read_at = 0.0
    run.read_on(closer=True)
    assert run.replay._team.tolerates_loss is False
    assert run.result() == result
    assert view(run)["agents"]["state"] == ["idle"] * 4


def test_notes_on_agents_change_nothing_in_a_run_that_goes_on(tmp_path):
    whole, path = tmp_path / "whole.ctlog", tmp_path / "noted.ctlog"
    result = logged(whole)
    note = AgentStatus([0, 1], "away", 1.9e9)

    def change(records):
        noted = [it for record in records for it in (record, note)]
        return noted[: len(noted) // 2]

    rewritten(whole, path, change).close()
    again = logged(path)
    assert (again, again.ledger) == (result, result.ledger)
    assert [it for it in read_log(path) if isinstance(it, Exchange)] == [
        it for it in read_log(whole) if isinstance(it, Exchange)
    ]
    assert isinstance(read_log(path)[0], Header)
