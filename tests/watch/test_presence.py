"""Agents that go away, come back or are lost for good: recorded in the log for display, without effect on the run."""

from __future__ import annotations

import collabtop as ct
from collabtop.runlog.file import read_log
from collabtop.runlog.format import AgentStatus, Exchange, Finished, Header
from collabtop.watch.views import summary, view
from collabtop.watch.watched_runs import WatchedRun
from tests.support.partial_log import half, logged, rewritten


class Losing(ct.LocalTeam):
    """Agent 1 is lost for good from the second exchange on."""

    tolerates_loss = True

    def deliver(self, requests):
        lost = {1} if requests[0].number > 1 else set()
        return super().deliver([request for request in requests if request.agent not in lost])


def watched(path):
    run = WatchedRun(path, path.name)
    run.update(replay=True)
    return run


def exchanges_in(path):
    return [record for record in read_log(path) if isinstance(record, Exchange)]


def states(path):
    return view(watched(path))["agents"]["state"]


def test_agents_that_are_away_are_distinguished_from_those_that_work(half):
    assert states(half(name="a.ctlog")) == ["working"] * 4
    away = AgentStatus([2, 3], "away", 1.9e9)
    assert states(half(away, name="b.ctlog")) == ["working", "working", "away", "away"]
    back = AgentStatus([2], "here", 1.9e9 + 1)
    assert states(half(away, back, name="c.ctlog"))[2:] == ["working", "away"]


def test_a_lost_agent_stays_lost(half):
    path = half(AgentStatus([1], "lost", 1.9e9), AgentStatus([1], "here", 1.9e9 + 1))
    assert states(path)[1] == "lost"
    assert summary(watched(path))["lost"] == 1


def test_when_a_run_over_sites_stops_only_agents_that_were_away_are_lost(half):
    path = half(AgentStatus([2], "away", 1.9e9))
    half.end()
    assert states(path) == ["idle", "idle", "lost", "idle"]


def test_no_agent_is_away_once_the_run_is_finished(half):
    records = (AgentStatus([2], "away", 1.9e9), AgentStatus([3], "lost", 1.9e9), Finished([10, 11]))
    assert states(half(*records)) == ["idle", "idle", "idle", "lost"]


def test_a_run_that_continued_without_an_agent_is_replayed_exactly(tmp_path):
    path = tmp_path / "run.ctlog"
    result = logged(path, team=Losing())
    assert result.lost == (1,)
    run = watched(path)
    replayed = run.result()
    assert replayed == result
    assert (replayed.ledger, replayed.lost, replayed.warnings) == (result.ledger, result.lost, result.warnings)
    assert view(run)["agents"]["state"] == ["idle", "lost", "idle", "idle"]  # its reply is missing in the log


def test_a_different_run_at_the_same_path_does_not_inherit_lost_agents(tmp_path):
    path = tmp_path / "run.ctlog"
    logged(path, team=Losing())
    run = watched(path)
    result = logged(tmp_path / "other.ctlog")
    (tmp_path / "other.ctlog").replace(path)
    run._last_read = 0.0
    run.update(replay=True)
    assert run.replay._team.tolerates_loss is False
    assert run.result() == result
    assert view(run)["agents"]["state"] == ["idle"] * 4


def test_the_status_of_agents_changes_nothing_in_a_resumed_run(tmp_path):
    whole, path = tmp_path / "whole.ctlog", tmp_path / "with-status.ctlog"
    result = logged(whole)
    status = AgentStatus([0, 1], "away", 1.9e9)

    def change(records):
        with_status = [item for record in records for item in (record, status)]
        return with_status[: len(with_status) // 2]

    rewritten(whole, path, change).close()
    resumed = logged(path)
    assert (resumed, resumed.ledger) == (result, result.ledger)
    assert exchanges_in(path) == exchanges_in(whole)
    assert isinstance(read_log(path)[0], Header)
