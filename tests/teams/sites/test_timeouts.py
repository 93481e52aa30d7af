"""How long the coordinator waits for a site, and how a run continues without one."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import grpc
import numpy as np
import pytest

import collabtop as ct
from collabtop.events import Exchanged
from collabtop.protocol.agent import Agent
from collabtop.protocol.messages import Means, Pull
from collabtop.teams.remote.envelope import seal_reply
from collabtop.teams.sites.frames import Answer, Ask, Declined, Failed, Ready, Refused
from collabtop.testing import ConstantArms
from tests.support.peers import Peer

ARMS = ConstantArms([[0.75, 0.5], *[[0.25, 0.5]] * 6, [0.5, 0.25]])
RUN: dict[str, Any] = {"m": 1, "agents": 2, "horizon": 300, "seed": 1}


class Site:
    """A site with one agent, whose every step the test decides."""

    def __init__(self, certs, number):
        self.certs, self.number, self.agent, self.answered = certs, number, None, 0

    @contextmanager
    def connected(self, team):
        with Peer.of(team.port, self.certs, f"site{self.number}", seconds=2) as self.peer:
            welcome = self.peer.send_hello(arms=8)
            if self.agent is None:
                self.agent = Agent(self.number, ARMS, welcome.setup)
            yield self

    def send_ready(self):
        self.peer.send(Ready(7, (self.answered,)))

    def question(self):
        frame = self.peer.read()
        assert isinstance(frame, Ask)
        return frame.request.open()

    def answer(self, request):
        """The answer to a request, without sending it."""
        reply = self.agent.answer(request)
        self.answered = request.number
        return Answer(seal_reply(reply, 7))

    def answers_all(self, team):
        """Answer all requests until the run or the coordinator ends."""
        with suppress(grpc.RpcError), self.connected(team):
            self.send_ready()
            while isinstance(frame := self.peer.read(), Ask):
                self.peer.send(self.answer(frame.request.open()))


@contextmanager
def run_with(certs, outcome, *, log=None, on_event=None, algorithm="uniform", **settings):
    """A run with two sites; its result or error is appended to `outcome`."""
    settings = {"wait": 20, "grace": 20, **settings}
    team = ct.SitesTeam(["site0", "site1"], listen="localhost:0", cert=certs / "coordinator.pem", **settings)

    def run():
        arguments: dict[str, Any] = {"algorithm": algorithm, "checkpoint": log, "on_event": on_event}
        try:
            outcome.append(ct.identify(ct.RemoteArms(8), **RUN, **arguments, team=team))
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    yield team
    thread.join(30)
    assert not thread.is_alive()


def in_thread(work, *args):
    thread = threading.Thread(target=work, args=args, daemon=True)
    thread.start()
    return thread


@pytest.mark.slow
def test_a_site_cannot_extend_its_time_by_reconnecting(certs):
    outcome = []
    with run_with(certs, outcome, answer_within=2) as team:
        in_thread(Site(certs, 0).answers_all, team)
        late = Site(certs, 1)
        while not outcome:
            with suppress(AssertionError, grpc.RpcError), late.connected(team):  # until the port is closed
                late.send_ready()
                late.peer.read()
    assert str(outcome[0]) == "site site1 did not answer within 2 s"


@pytest.mark.parametrize("failed", [Failed(1, 1, 0), Declined("request", 0)], ids=["a failed pull", "declined"])
def test_a_run_that_tolerates_loss_continues_without_a_site_that_gives_up(certs, failed):
    outcome = []
    with run_with(certs, outcome, on_lost="go-on") as team:
        other = in_thread(Site(certs, 0).answers_all, team)
        site = Site(certs, 1)
        with site.connected(team):
            site.send_ready()
            assert site.question().number == 1
            site.peer.send(failed)
            assert isinstance(site.peer.read(), Refused)
        other.join(20)
    assert outcome[0].lost == (1,)
    assert outcome[0].top == [0]  # according to site 0 alone


class Stop(Exception):  # noqa: N818
    """Interrupts a run."""


def test_a_resumed_run_that_tolerates_loss_continues_without_a_site_that_declines(certs, tmp_path):
    sites, outcome = [Site(certs, 0), Site(certs, 1)], []
    settings = {"log": tmp_path / "run.ctlog", "algorithm": "collab-top-noniid", "on_lost": "go-on"}

    def stop(event):
        if isinstance(event, Exchanged):
            raise Stop

    with run_with(certs, outcome, on_event=stop, **settings) as team:
        for thread in [in_thread(site.answers_all, team) for site in sites]:
            thread.join(20)
    assert isinstance(outcome[0], Stop)
    with run_with(certs, outcome, **settings) as team:
        with sites[1].connected(team):
            sites[1].peer.send(Declined("request", 0))
            assert sites[1].peer.read() == Refused("answer")
        sites[0].answers_all(team)
    assert outcome[1].lost == (1,)


@dataclass(frozen=True)
class OneAfterTheOther(ct.Algorithm):
    """Asks agent 1, and then agent 0."""

    name: ClassVar[str] = "one-after-the-other"
    survives_loss: ClassVar[bool] = True

    def smallest_horizon(self, problem):
        return problem.n

    def most_pulls(self, problem):
        return [(problem.n, 2)]

    def run(self, coordinator, problem, rng):
        board, arms = coordinator.scoreboard, np.arange(problem.n)
        for agent in (1, 0):
            coordinator.begin_round("shared", live=problem.n)
            for answer in coordinator.ask_present({agent: Pull(None, np.array([1]))}, Means).values():
                board.add(arms, answer.means, 1)
        best = int(np.argmax(board.means(arms)))
        board.accept(np.array([best]), 0, "shared")


def test_a_site_whose_answer_was_lost_is_accepted_again_though_the_previous_request_has_no_answer(certs):
    outcome = []
    with run_with(certs, outcome, algorithm=OneAfterTheOther(), on_lost="go-on") as team:
        first, second = Site(certs, 1), Site(certs, 0)
        with second.connected(team):
            second.send_ready()
            with first.connected(team):
                first.send_ready()
                assert first.question().number == 1
                first.peer.send(Declined("request", 0))  # the only site that was asked: request 1 has no answer
                assert isinstance(first.peer.read(), Refused)
            request = second.question()
            assert request.number == 2
            second.answer(request)  # without sending the answer
        second.answers_all(team)
    assert (outcome[0].lost, outcome[0].top) == ((1,), [0])
