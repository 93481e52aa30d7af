"""What the log of a run over sites says of sites that come, go and are lost, for those who watch."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

import collabtop as ct
from collabtop.runlog.file import read_log
from collabtop.runlog.format import AgentStatus
from collabtop.testing import ConstantArms

ARMS = ConstantArms([place / 8 for place in range(8)])


class Fails(ct.Arms):
    """Arms whose second batch ends the site without a word."""

    def __init__(self):
        super().__init__(ARMS.n)
        self.batches = 0

    def pull(self, arms, times, draws):
        self.batches += 1
        if self.batches == 2:
            raise RuntimeError("the power is out")
        return ARMS.pull(arms, times, draws)


def join(team, certs, site, arms):
    with suppress(ct.CollabtopError, RuntimeError):  # it is the coordinator's view that is looked at
        ct.join(f"localhost:{team.port}", arms, cert=certs / f"{site}.pem", give_up=1)


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
        asked = {"agents": 3, "horizon": 600, "algorithm": "collab-top-noniid", "seed": 1}
        return ct.identify(ct.RemoteArms(8), 2, **asked, team=team, checkpoint=log)
    finally:
        for thread in threads:
            thread.join(20)


def notes(log, agent):
    return [it.state for it in read_log(log) if isinstance(it, AgentStatus) and agent in it.agents]


def test_a_site_that_is_lost_is_in_the_log_from_its_coming_to_its_loss(certs, tmp_path):
    result = run(certs, tmp_path / "run.ctlog", on_lost="go-on")
    assert result.lost == (2,)
    assert notes(tmp_path / "run.ctlog", 0) == notes(tmp_path / "run.ctlog", 1) == ["away", "here"]
    assert notes(tmp_path / "run.ctlog", 2) == ["away", "here", "away", "lost"]


def test_where_the_run_fails_the_last_word_is_that_the_site_is_away(certs, tmp_path):
    with pytest.raises(ct.SiteError, match="site site1 has been disconnected"):
        run(certs, tmp_path / "run.ctlog", on_lost="fail")
    assert notes(tmp_path / "run.ctlog", 2) == ["away", "here", "away"]
