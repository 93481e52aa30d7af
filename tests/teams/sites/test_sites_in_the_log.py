"""The log of a run over sites has the status of its agents."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pytest

import collabtop as ct
from collabtop.runlog.file import read_log
from collabtop.runlog.format import AgentStatus
from collabtop.testing import ConstantArms

ARMS = ConstantArms([arm / 8 for arm in range(8)])


class Fails(ct.Arms):
    """Arms whose site fails without notice at the second batch."""

    def __init__(self):
        super().__init__(ARMS.n)
        self.batches = 0

    def pull(self, arms, times, draws):
        self.batches += 1
        if self.batches == 2:
            raise RuntimeError("the power is out")
        return ARMS.pull(arms, times, draws)


def join(team, certs, site, arms):
    with suppress(ct.CollabtopError, RuntimeError):  # only the coordinator's log is tested
        ct.join(f"localhost:{team.port}", arms, cert=certs / f"{site}.pem", give_up=1, secret=b"")


def run(certs, log, *, on_lost):
    settings = {"grace": 0.5, "wait": 20, "on_lost": on_lost, "cert": certs / "coordinator.pem"}
    team = ct.SitesTeam([("site0", 2), "site1"], listen="localhost:0", **settings)
    threads = [
        threading.Thread(target=join, args=[team, certs, site, arms])
        for site, arms in (("site0", ARMS), ("site1", Fails()))
    ]
    for thread in threads:
        thread.start()
    try:
        problem: dict[str, Any] = {"agents": 3, "horizon": 600, "algorithm": "collab-top-noniid", "seed": 1}
        return ct.identify(ct.RemoteArms(8), 2, **problem, team=team, checkpoint=log)
    finally:
        for thread in threads:
            thread.join(20)


def states(log, agent):
    return [record.state for record in read_log(log) if isinstance(record, AgentStatus) and agent in record.agents]


def test_the_log_has_all_states_of_a_lost_site(certs, tmp_path):
    result = run(certs, tmp_path / "run.ctlog", on_lost="go-on")
    assert result.lost == (2,)
    assert states(tmp_path / "run.ctlog", 0) == states(tmp_path / "run.ctlog", 1) == ["away", "here"]
    assert states(tmp_path / "run.ctlog", 2) == ["away", "here", "away", "lost"]


@pytest.mark.slow
def test_if_the_run_fails_the_last_state_of_the_site_is_away(certs, tmp_path):
    with pytest.raises(ct.SiteError, match="site site1 has been disconnected"):
        run(certs, tmp_path / "run.ctlog", on_lost="fail")
    assert states(tmp_path / "run.ctlog", 2) == ["away", "here", "away"]
