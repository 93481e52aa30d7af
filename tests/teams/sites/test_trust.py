"""Who gets in: without the right certificate nothing of the protocol is reachable, and nobody speaks for another."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path

import grpc
import numpy as np
import pytest

import collabtop as ct
from collabtop.protocol.messages import Means, Reply
from collabtop.teams.remote.envelope import SealedReply, seal_reply
from collabtop.teams.sites.audit import Audit
from collabtop.teams.sites.frames import Answer, Ask, Hello, Ready, Refused, Welcome, encode
from tests.support.peers import Peer
from tests.support.thread_sites import ThreadSites

ARMS = ct.BernoulliArms([0.9, 0.5, 0.4], labels=["red pill", "blue pill", "sugar"])
RUN = {"m": 1, "agents": 2, "horizon": 300, "algorithm": "uniform", "seed": 1}


def waiting_team(certs, **settings):
    """A coordinator that waits for two sites, opened as a run opens it."""
    return ct.SitesTeam(["site0", "site1"], listen="localhost:0", cert=certs / "coordinator.pem", wait=20, **settings)


@pytest.fixture
def run_under_way(certs):
    """A run that waits for its second site; what a test does meanwhile must not harm it."""
    team = waiting_team(certs)
    results = []
    thread = threading.Thread(target=lambda: results.append(ct.identify(ct.RemoteArms(3), **RUN, team=team)))
    thread.start()
    address = f"localhost:{team.port}"
    first = threading.Thread(target=ct.join, args=[address, ARMS], kwargs={"cert": certs / "site0.pem", "give_up": 20})
    first.start()
    yield team
    ct.join(address, ARMS, cert=certs / "site1.pem", give_up=20)
    for one in (thread, first):
        one.join(20)
    unlabelled = ct.BernoulliArms(ARMS.means)
    assert results == [ct.identify(unlabelled, **RUN)]


def test_without_a_certificate_nothing_answers(run_under_way, certs):
    authority = (certs / "authority.pem").read_bytes()
    no_certificate = Peer(run_under_way.port, grpc.ssl_channel_credentials(authority))
    assert no_certificate.refused_at_the_door()
    assert Peer(run_under_way.port, None).refused_at_the_door()


def test_a_certificate_of_another_authority_does_not_get_in(run_under_way, certs, tmp_path):
    ct.make_certificates(tmp_path, ["site1"])
    assert Peer.of(run_under_way.port, tmp_path, "site1", authority=certs).refused_at_the_door()


def test_an_expired_certificate_does_not_get_in(run_under_way, certs, tmp_path):
    for name in ("authority.pem", "authority.key", "coordinator.pem"):
        (tmp_path / name).write_bytes((certs / name).read_bytes())
    ct.make_certificates(tmp_path, ["site1"], days=1e-9)
    assert Peer.of(run_under_way.port, tmp_path, "site1").refused_at_the_door()
    with pytest.raises(ct.InputError, match="expired on"):
        ct.join(f"localhost:{run_under_way.port}", ARMS, cert=tmp_path / "site1.pem")


def test_the_coordinators_own_certificate_does_not_get_in(run_under_way, certs):
    assert Peer.of(run_under_way.port, certs, "coordinator").refused_at_the_door()


def test_a_sites_certificate_cannot_pose_as_the_coordinator(certs, tmp_path):
    ct.make_certificates(certs, ["impostor"])
    team = ct.SitesTeam(["site0"], listen="localhost:0", cert=certs / "impostor.pem", wait=2)
    thread = threading.Thread(target=lambda: _fails(ct.RemoteArms(3), team), daemon=True)
    thread.start()
    said = []
    with pytest.raises(ct.SiteError, match="no coordinator at"):
        ct.join(f"localhost:{team.port}", ARMS, cert=certs / "site0.pem", give_up=1, on_status=said.append)
    thread.join(20)
    assert not any("connected" in line for line in said)


def _fails(arms, team):
    with pytest.raises(ct.SiteError):
        ct.identify(arms, **{**RUN, "agents": len(team._sites)}, team=team)


def test_a_site_that_is_not_in_the_run_is_turned_away(run_under_way, certs):
    with pytest.raises(ct.SiteError, match="is not one of this run's sites"):
        ct.join(f"localhost:{run_under_way.port}", ARMS, cert=certs / "site7.pem")


def test_a_second_peer_with_the_same_name_is_turned_away(run_under_way, certs):
    with Peer.of(run_under_way.port, certs, "site1") as first:
        first.say_hello()
        first.send(Ready(1, (0,)))
        with Peer.of(run_under_way.port, certs, "site1") as second:
            second.send(Hello(1, "", 99, 3, ""))
            assert second.read() == Refused("here already")


def test_of_two_peers_of_one_name_at_the_door_the_one_that_comes_in_first_stays(run_under_way, certs):
    with Peer.of(run_under_way.port, certs, "site1") as first, Peer.of(run_under_way.port, certs, "site1") as second:
        assert isinstance(first.say_hello(), Welcome)
        assert isinstance(second.say_hello(), Welcome)
        first.send(Ready(1, (0,)))
        assert isinstance(first.read(), Ask)
        second.send(Ready(2, (0,)))
        assert second.read() == Refused("here already")


def test_a_wrong_run_id_a_wrong_version_and_other_arms_are_turned_away(run_under_way, certs):
    for hello, why in (
        (Hello(1, "feed" * 8, 1, 3, ""), "run"),
        (Hello(2, "", 1, 3, ""), "version"),
        (Hello(1, "", 1, 4, ""), "arms"),
        (Ready(1, (0,)), "frame"),
    ):
        with Peer.of(run_under_way.port, certs, "site1") as peer:
            peer.send(hello)
            assert peer.read() == Refused(why)


def test_a_certificate_for_another_name_than_was_meant_is_not_used(certs):
    with pytest.raises(ct.InputError, match=r"site is 'site3', but cert .* is for 'site4'"):
        ct.join("localhost:1", ARMS, site="site3", cert=certs / "site4.pem")


def means_of(ask_number, life=7):
    return Answer(seal_reply(Reply(1, ask_number, 300, Means(np.array([0.9, 0.5, 0.4]))), life))


def test_an_answer_that_comes_before_a_restarted_coordinator_has_asked_again_is_passed_over(certs):
    team, results = waiting_team(certs), []
    run = threading.Thread(target=lambda: results.append(ct.identify(ct.RemoteArms(3), **RUN, team=team)))
    run.start()
    address = f"localhost:{team.port}"
    with Peer.of(team.port, certs, "site1") as peer:
        peer.say_hello()
        said = [Ready(7, (1,)), means_of(1)]  # it was at question 1 when the coordinator before this one died
        time.sleep(0.2)  # until the welcome is counted too
        received = team.transport_stats().bytes
        for frame in said:
            peer.send(frame)
        while team.transport_stats().bytes < received + sum(len(encode(frame)) for frame in said):
            assert run.is_alive()
        first = threading.Thread(target=ct.join, args=[address, ARMS], kwargs={"cert": certs / "site0.pem"})
        first.start()
        assert isinstance(peer.read(), Ask)
    ct.join(address, ARMS, cert=certs / "site1.pem", give_up=20)
    for one in (run, first):
        one.join(20)
    assert results == [ct.identify(ct.BernoulliArms(ARMS.means), **RUN)]


def test_an_answer_to_a_question_that_nobody_asked_is_not(certs):
    team = waiting_team(certs)
    thread = threading.Thread(target=lambda: _fails(ct.RemoteArms(3), team))
    thread.start()
    with Peer.of(team.port, certs, "site1") as peer:
        peer.say_hello()
        peer.send(Ready(7, (0,)))
        peer.send(means_of(2))
        assert peer.read() == Refused("answer")
    thread.join(20)


def answers_of(peer, forge):
    """Take part by hand, and answer the first question with what `forge` makes of the honest answer."""
    welcome = peer.say_hello()
    assert isinstance(welcome, Welcome)
    peer.send(Ready(7, (0,)))
    ask = peer.read()
    assert isinstance(ask, Ask)
    honest = Reply(ask.request.agent, ask.request.number, 300, Means(np.array([0.9, 0.5, 0.4])))
    peer.send(Answer(forge(seal_reply(honest, 7))))
    return peer.read()


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (
            lambda it: SealedReply(it.epoch, 0, it.number, it.pulls, it.answer),
            "an answer for an agent of a different site",
        ),
        (lambda it: SealedReply(8, it.agent, it.number, it.pulls, it.answer), "a different journal"),
        (lambda it: SealedReply(it.epoch, it.agent, 9, it.pulls, it.answer), "an answer to a different request"),
        (lambda it: SealedReply(it.epoch, it.agent, it.number, 301, it.answer), "a different number of pulls"),
        (lambda it: SealedReply(it.epoch, it.agent, it.number, it.pulls, b"no message"), "not a valid message"),
        (lambda it: seal_reply(Reply(1, it.number, 300, Means(np.array([2.0, 0, 0]))), 7), "outside"),
        (lambda it: seal_reply(Reply(1, it.number, 300, Means(np.array([0.5]))), 7), "a different number of means"),
        (lambda it: seal_reply(Reply(1, it.number, 300, Means(np.array([np.nan, 0, 0]))), 7), "not a valid message"),
    ],
    ids=["for another", "other life", "other request", "too many pulls", "garbage", "mean of 2", "one mean", "NaN"],
)
def test_a_site_that_answers_what_cannot_be_is_turned_away_and_the_run_fails_cleanly(certs, forge, said, caplog):
    team = waiting_team(certs)
    outcome = []

    def run():
        try:
            ct.identify(ct.RemoteArms(3), **RUN, team=team)
        except ct.SiteError as error:
            outcome.append(str(error))

    honest = threading.Thread(target=_join_until_gone, args=[team.port, certs])
    thread = threading.Thread(target=run)
    with caplog.at_level(logging.DEBUG, "collabtop.sites"):
        for one in (thread, honest):
            one.start()
        with Peer.of(team.port, certs, "site1") as peer:
            assert answers_of(peer, forge) == Refused("answer")
        for one in (thread, honest):
            one.join(20)
    assert said in outcome[0]
    assert "site site1 was disconnected: invalid message" in outcome[0]
    assert "disconnected agent 1: invalid message" in caplog.text
    assert "site1" not in caplog.text


def _join_until_gone(port, certs):
    with pytest.raises(ct.SiteError):
        ct.join(f"localhost:{port}", ARMS, cert=certs / "site0.pem", give_up=0.5)


def test_names_keys_and_rewards_are_in_no_log(certs, caplog):
    team = ThreadSites(certs, joins={"on_status": lambda line: None})
    with caplog.at_level(logging.DEBUG):
        result = ct.identify(ARMS, **RUN, team=team)
    keys = [line for path in Path(certs).glob("*.key") for line in path.read_text().splitlines()[1:-1]]
    means = [f"{estimate.mean:.3f}" for estimate in result.estimates]
    assert any(record.name.startswith("collabtop.sites") for record in caplog.records)
    for secret in [*ARMS.labels, "site0", "site1", *keys, *means]:
        assert secret not in caplog.text


@pytest.fixture
def open_umask():
    """Files are readable by all unless whoever makes them sees to it that they are not."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_what_a_site_drew_and_sent_is_for_its_owner_alone(certs, tmp_path, open_umask):
    sent = tmp_path / "sent.jsonl"
    team = ThreadSites(certs, journals=tmp_path / "journals", joins={"audit": sent})
    ct.identify(ARMS, **{**RUN, "agents": 1}, team=team, checkpoint=tmp_path / "run.ctlog")
    [journal] = (tmp_path / "journals" / "site0").iterdir()
    mode = {path: path.stat().st_mode & 0o777 for path in (journal, journal.parent, sent, tmp_path / "run.ctlog")}
    assert list(mode.values()) == [0o600, 0o700, 0o600, 0o666]  # the coordinator's own log is its own business


def test_an_audit_that_somebody_else_may_read_already_stays_so(tmp_path, open_umask):
    path = tmp_path / "sent.jsonl"
    path.touch(0o640)
    Audit(path).close()
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_files_of_a_peer_do_not_show_themselves(certs):
    from collabtop.teams.sites.tls import read_files

    assert repr(read_files(certs / "site0.pem")) == "Files(...)"
