"""Runs over sites are identical to those of the local team, and the team keeps the laws of teams."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import collabtop as ct
from collabtop.events import RoundBegan, RunEnded
from collabtop.runlog.file import read_log
from collabtop.runlog.format import Finished
from collabtop.teams.sites.connections import Session
from collabtop.teams.sites.frames import Done
from collabtop.testing import check_team
from tests.support.end_of_run import MEANS, RUN, site1_disconnected_at_the_end
from tests.support.thread_sites import ThreadSites


@pytest.mark.slow
def test_fifty_sites_finish_a_run(certs):
    arms = ct.BernoulliArms(np.random.default_rng(1).uniform(0.2, 0.8, 600))
    run: dict[str, Any] = {"m": 5, "agents": 50, "horizon": 2_000, "algorithm": "frugal-top", "seed": 1}
    result = ct.identify(arms, **run, team=ThreadSites(certs))
    expected = ct.identify(arms, **run)
    assert result == expected
    assert result.ledger == expected.ledger


FEW = ["frugal-top", "collab-top-iid", "frugal-top-noniid"]


@pytest.mark.parametrize("algorithms", [FEW, pytest.param(None, marks=pytest.mark.long)], ids=["few", "all"])
def test_the_team_keeps_the_laws(certs, algorithms):
    check_team(lambda: ThreadSites(certs), algorithms=algorithms)


def test_a_free_port_is_bound_when_it_is_read_and_released_at_the_end(certs):
    def team(port):
        return ct.SitesTeam(["site0"], listen=f"localhost:{port}", cert=certs / "coordinator.pem", wait=0.1)

    def run(team):
        ct.identify(ct.RemoteArms(3), 1, agents=1, horizon=30, seed=1, team=team)

    first = team(0)
    second = team(first.port)
    assert first.port == second.port > 0
    with pytest.raises(ct.InputError, match="that address cannot be used: is the port in use"):
        run(second)
    first.close()
    with pytest.raises(ct.SiteError, match="did not connect"):
        run(second)


def test_a_run_that_is_rejected_for_its_algorithm_releases_the_port(certs, left_behind):
    team = ct.SitesTeam(["site0"], listen="localhost:0", cert=certs / "coordinator.pem", on_lost="go-on")
    assert team.port
    assert left_behind() == ["collabtop coordinator"]
    with pytest.raises(ct.SettingError, match="kzz cannot continue"):
        ct.identify(ct.RemoteArms(64), 1, agents=1, horizon=9_000, algorithm="kzz", team=team)
    assert left_behind() == []


def test_with_releases_the_port_even_if_an_argument_is_rejected(certs, left_behind):
    settings = {"cert": certs / "coordinator.pem", "wait": 0.1}
    with ct.SitesTeam(["site0"], listen="localhost:0", **settings) as team:
        assert team.port
        with pytest.raises(ct.InputError, match="m is 4"):
            ct.identify(ct.RemoteArms(3), 4, agents=1, horizon=30, team=team)
        assert left_behind() == ["collabtop coordinator"]
    assert left_behind() == []
    again = ct.SitesTeam(["site0"], listen=f"localhost:{team.port}", **settings)
    with pytest.raises(ct.SiteError, match="did not connect"):
        ct.identify(ct.RemoteArms(3), 1, agents=1, horizon=30, seed=1, team=again)


def test_a_site_that_is_disconnected_at_the_end_is_notified_when_it_reconnects(certs):
    with site1_disconnected_at_the_end(certs, heal_after=0.5) as (team, joined):
        result = ct.identify(ct.RemoteArms(2), **RUN, team=team)
        assert [site.result(60).answers for site in joined] == [1, 1]
    assert result == ct.identify(ct.BernoulliArms(MEANS), **RUN)


@pytest.mark.slow
def test_ctrl_c_in_the_last_wait_for_a_site_keeps_the_answer_and_releases_the_port(certs, tmp_path, left_behind):
    log, records = tmp_path / "run.ctlog", []

    def interrupt(event):
        if isinstance(event, RunEnded):
            records.extend(read_log(log))
            threading.Timer(0.5, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()

    with site1_disconnected_at_the_end(certs, give_up=1) as (team, joined):
        with pytest.raises(KeyboardInterrupt):
            ct.identify(ct.RemoteArms(2), **RUN, team=team, checkpoint=log, on_event=interrupt)
        assert joined[0].result(60).answers == 1
        with pytest.raises(ct.SiteError, match="no coordinator"):
            joined[1].result(60)
    expected = ct.identify(ct.BernoulliArms(MEANS), **RUN)
    assert records[-1] == read_log(log)[-1] == Finished(expected.top_indices)
    assert left_behind() == []
    again = ct.SitesTeam(["site0", "site1"], listen=f"localhost:{team.port}", cert=certs / "coordinator.pem")
    assert ct.identify(ct.RemoteArms(2), **RUN, team=again, checkpoint=log) == expected


def test_all_sites_are_notified_of_the_end_at_the_same_time(certs, monkeypatch):
    closing, most, close = [], [], Session.close

    async def slowly(session, frame=None):
        if isinstance(frame, Done):
            closing.append(session)
            await asyncio.sleep(0.2)  # like a congested link
            most.append(len(closing))
        await close(session, frame)

    monkeypatch.setattr(Session, "close", slowly)
    arms = ct.BernoulliArms(MEANS)
    ct.identify(arms, 1, agents=5, horizon=60, algorithm="uniform", seed=1, team=ThreadSites(certs))
    assert most == [5] * 5


def test_with_weights_remote_sites_give_the_run_of_the_local_team(certs):
    arms = ct.HeterogeneousArms([[0.9, 0.8, 0.1], [0.4, 0.4, 0.7], [0.1, 0.2, 0.1]], weights=[1, 1, 4])
    for algorithm in ("frugal-top-noniid", "fed-elim"):
        asked: dict[str, Any] = {"m": 1, "horizon": 8_000, "seed": 1, "algorithm": algorithm}
        remote = ct.identify(arms, team=ThreadSites(certs, joins={"secret": b""}), **asked)
        local = ct.identify(arms, **asked)
        assert (remote, remote.ledger) == (local, local.ledger)
        assert remote.top == [1]


def waits(mean, rng):
    time.sleep(0.005)
    return rng.random() < mean


@pytest.mark.slow
@pytest.mark.parametrize("ends_by", ["stop", "timeout"])
def test_a_stopped_run_ends_with_what_is_known_and_can_be_resumed(ends_by, certs, tmp_path, left_behind):
    path, arms = tmp_path / "run.ctlog", ct.FunctionArms([0.2, 0.4, 0.6, 0.8], waits)
    asked: dict[str, Any] = {"agents": 2, "horizon": 400, "seed": 3, "algorithm": "kzz"}
    (tmp_path / "journals").mkdir()
    team = ThreadSites(certs, journals=tmp_path / "journals")
    if ends_by == "timeout":
        result = ct.identify(arms, 1, team=team, checkpoint=path, timeout=0.5, **asked)
    else:
        with ct.start(arms, 1, team=team, checkpoint=path, **asked) as run:
            next(event for event in run if isinstance(event, RoundBegan))
            run.stop()
            result = run.result()
    assert (result.complete, len(result.top)) == (False, 1)
    assert left_behind() == []
    again = ct.resume(path, arms=arms, team=ThreadSites(certs, journals=tmp_path / "journals"))
    assert again == ct.identify(arms, 1, team="threads", **asked)


def test_a_run_over_sites_cannot_be_extended(certs, tmp_path):
    path, arms = tmp_path / "run.ctlog", ct.BernoulliArms([0.2, 0.9])
    ct.identify(arms, 1, agents=2, horizon=60, seed=1, checkpoint=path)
    with pytest.raises(ct.SettingError, match="team has agents in other processes, which cannot use earlier rewards"):
        ct.extend(path, horizon=120, arms=arms, team=ThreadSites(certs))
