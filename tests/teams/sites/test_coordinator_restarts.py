"""A coordinator that is restarted honours `grace` from any state of the run, and keeps the losses it has announced."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

import collabtop as ct
from collabtop.events import SiteChanged
from collabtop.runlog.file import RunLog, read_log
from collabtop.runlog.format import AgentStatus, Exchange, Finished
from collabtop.testing import ConstantArms
from tests.support.partial_log import rewritten
from tests.support.thread_sites import ThreadSites

ARMS = ConstantArms([arm / 16 for arm in range(16)])
RUN: dict[str, Any] = {"m": 2, "agents": 4, "horizon": 2_000, "algorithm": "collab-top-iid", "seed": 1}


class Joins(ThreadSites):
    """Sites over real connections, of which only some join."""

    def __init__(self, certs, *, present, **settings):
        super().__init__(certs, **settings)
        self.present = present

    def _join(self, name, arms, **more):
        if name in self.present:
            super()._join(name, arms, **more)


ALL = ("site0", "site1", "site2", "site3")


@pytest.fixture
def killed(certs, tmp_path):
    """The log of a coordinator that was killed in its first exchange, which the sites have not received yet."""
    whole, log = tmp_path / "whole.ctlog", tmp_path / "run.ctlog"
    ct.identify(ARMS, **RUN, checkpoint=whole, team=ThreadSites(certs))

    def before_the_first_exchange(records):
        return records[: next(index for index, record in enumerate(records) if isinstance(record, Exchange))]

    rewritten(whole, log, before_the_first_exchange).close()
    return log


def outcome_of(team, log, seconds=20):
    """The result or the error of a run, which must end within so many seconds."""
    outcome: list[Any] = []

    def run():
        try:
            outcome.append(ct.identify(ARMS, **RUN, checkpoint=log, team=team))
        except ct.SiteError as error:
            outcome.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert outcome, f"the run has not ended within {seconds} s"
    return outcome[0]


@pytest.mark.slow
def test_a_site_that_is_gone_for_good_fails_a_run_that_is_restarted_in_its_first_exchange(certs, killed):
    began = time.monotonic()
    error = outcome_of(Joins(certs, present=ALL[:3], wait=None, grace=1), killed)
    assert str(error) == "1 of 4 sites did not connect within 1 s: site3"
    assert time.monotonic() - began < 15


def test_a_run_that_is_restarted_in_its_first_exchange_continues_without_a_site_that_is_gone_for_good(certs, killed):
    events: list[Any] = []
    team = Joins(certs, present=ALL[:3], wait=None, grace=1, on_lost="go-on", on_event=events.append)
    result = outcome_of(team, killed)
    assert result.lost == (3,)
    assert [event.site for event in events if isinstance(event, SiteChanged) and event.state == "lost"] == ["site3"]
    assert isinstance(read_log(killed)[-1], Finished)


def test_a_loss_that_was_announced_in_an_exchange_without_an_end_is_kept(certs, killed):
    log = RunLog(killed)
    log.note_status([3], "lost")
    log.close()
    team = Joins(certs, present=ALL, wait=None, grace=30, on_lost="go-on")  # the lost site is back
    began = time.monotonic()
    result = outcome_of(team, killed)
    assert result.lost == (3,)
    assert time.monotonic() - began < 15, "it was not waited for"
    assert ["this site was lost" in str(error) for error in team.errors] == [True]


@pytest.mark.slow
def test_until_all_sites_were_connected_at_the_same_time_wait_counts_and_not_grace(certs, killed, tmp_path):
    def one_after_the_other(records):
        kept = [record for record in records if not isinstance(record, AgentStatus)]
        states = [AgentStatus([agent], state, 1.0) for agent in range(4) for state in ("here", "away")]
        return [*kept, *states]

    log = tmp_path / "waiting.ctlog"
    rewritten(killed, log, one_after_the_other).close()
    error = outcome_of(Joins(certs, present=ALL[:3], wait=2, grace=0.1), log)
    assert str(error) == "1 of 4 sites did not connect within 2 s: site3"
