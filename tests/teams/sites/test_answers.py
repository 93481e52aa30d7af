"""Answers of an exchange are checked together, but a site cannot use the time until then."""

from contextlib import contextmanager

import numpy as np
import pytest

import collabtop as ct
from collabtop.protocol.messages import Means, Reply
from collabtop.teams.remote.envelope import seal_reply
from collabtop.teams.sites.frames import Answer, Ask, Ready, Refused, Welcome
from tests.support.peers import Peer

LIFE = 7
HONEST, IMPOSSIBLE = Means(np.array([0.9, 0.5, 0.4])), Means(np.array([2.0, 0.5, 0.4]))


@contextmanager
def run_of_two(certs, **settings):
    """A run that is under way, and its team."""
    team = ct.SitesTeam(["site0", "site1"], listen="localhost:0", cert=certs / "coordinator.pem", wait=20, **settings)
    with team:
        yield ct.start(ct.RemoteArms(3), m=1, agents=2, horizon=300, algorithm="uniform", seed=1, team=team), team.port


def ready(port, certs, site, answered=0):
    """A site that is ready."""
    peer = Peer.of(port, certs, site)
    assert isinstance(peer.send_hello(), Welcome)
    peer.send(Ready(LIFE, (answered,)))
    return peer


def answer(peer, means):
    """Answer the request that a site has received."""
    ask = peer.read()
    assert isinstance(ask, Ask)
    peer.send(Answer(seal_reply(Reply(ask.request.agent, ask.request.number, 300, means), LIFE)))


def test_an_invalid_answer_is_found_while_another_site_is_silent(certs):
    with run_of_two(certs) as (run, port), ready(port, certs, "site0"), ready(port, certs, "site1") as liar:
        answer(liar, IMPOSSIBLE)
        assert liar.read() == Refused("answer")
        with pytest.raises(ct.SiteError, match=r"site1 was disconnected: invalid message \(a mean or value outside"):
            run.result(timeout=20)


def test_an_invalid_answer_is_found_if_its_site_leaves_at_once(certs):
    with run_of_two(certs) as (run, port), ready(port, certs, "site0"):
        with ready(port, certs, "site1") as liar:
            answer(liar, IMPOSSIBLE)
            liar.outbox.put(None)
            assert liar.read() in (Refused("answer"), None)
        with pytest.raises(ct.SiteError, match="site1 was disconnected: invalid message"):
            run.result(timeout=20)


def test_a_run_may_continue_without_a_site_whose_answer_is_invalid(certs):
    with (
        run_of_two(certs, on_lost="go-on", grace=1) as (run, port),
        ready(port, certs, "site0") as honest,
        ready(port, certs, "site1") as liar,
    ):
        answer(liar, IMPOSSIBLE)
        answer(honest, HONEST)
        result = run.result(timeout=20)
    assert (result.top, result.lost) == ([0], (1,))


def test_a_site_cannot_go_back_behind_an_answer_that_it_has_just_given(certs):
    with run_of_two(certs, grace=1) as (run, port), ready(port, certs, "site0") as other:
        with ready(port, certs, "site1") as peer:
            answer(peer, HONEST)
            peer.outbox.put(None)
            assert peer.read() is None
        with ready(port, certs, "site1", answered=0) as again:
            assert again.read() == Refused("behind")
        answer(other, HONEST)
        assert run.result(timeout=20).top == [0]
