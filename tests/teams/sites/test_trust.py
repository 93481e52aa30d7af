"""Without a valid certificate no part of the protocol is reachable, and no site can answer for another."""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

import collabtop as ct
from collabtop.protocol.messages import Means, Reply
from collabtop.teams.remote.envelope import SealedReply, seal_reply
from collabtop.teams.sites import handshake, port, tls
from collabtop.teams.sites.audit import Audit
from collabtop.teams.sites.frames import METHOD, SERVICE, VERSION, Answer, Ask, Hello, Ready, Refused, Welcome, encode
from collabtop.teams.sites.port import MOST_CALLS
from tests.support.peers import Peer
from tests.support.thread_sites import ThreadSites
from tests.support.untyped import untyped

ARMS = ct.BernoulliArms([0.9, 0.5, 0.4], labels=["red pill", "blue pill", "sugar"])
RUN: dict[str, Any] = {"m": 1, "agents": 2, "horizon": 300, "algorithm": "uniform", "seed": 1}


def waiting_team(certs, **settings):
    """A team that waits for two sites."""
    return ct.SitesTeam(["site0", "site1"], listen="localhost:0", cert=certs / "coordinator.pem", wait=20, **settings)


@pytest.fixture
def waiting_run(certs):
    """A run that waits for its second site; the test must not disturb it."""
    team = waiting_team(certs)
    results = []
    thread = threading.Thread(target=lambda: results.append(ct.identify(ct.RemoteArms(3), **RUN, team=team)))
    thread.start()
    address = f"localhost:{team.port}"
    first = threading.Thread(
        target=ct.join, args=[address, ARMS], kwargs={"cert": certs / "site0.pem", "give_up": 20, "secret": b""}
    )
    first.start()
    yield team
    ct.join(address, ARMS, cert=certs / "site1.pem", give_up=20, secret=b"")
    for started in (thread, first):
        started.join(20)
    unlabelled = ct.BernoulliArms(ARMS.means)
    assert results == [ct.identify(unlabelled, **RUN)]


def test_a_peer_without_a_certificate_is_rejected(waiting_run, certs):
    authority = (certs / "authority.pem").read_bytes()
    no_certificate = Peer(waiting_run.port, grpc.ssl_channel_credentials(authority))
    assert no_certificate.is_rejected_by_tls()
    assert Peer(waiting_run.port, None).is_rejected_by_tls()


def test_a_certificate_of_a_different_authority_is_rejected(waiting_run, certs, tmp_path):
    ct.make_certificates(tmp_path, ["site1"])
    assert Peer.of(waiting_run.port, tmp_path, "site1", authority=certs).is_rejected_by_tls()


def test_an_expired_certificate_is_rejected(waiting_run, certs, tmp_path):
    for name in ("authority.pem", "authority.key", "coordinator.pem"):
        shutil.copy(certs / name, tmp_path)
    ct.make_certificates(tmp_path, ["site1"], days=1e-9)
    assert Peer.of(waiting_run.port, tmp_path, "site1").is_rejected_by_tls()
    with pytest.raises(ct.InputError, match="expired on"):
        ct.join(f"localhost:{waiting_run.port}", ARMS, cert=tmp_path / "site1.pem")


def test_the_coordinators_certificate_is_rejected(waiting_run, certs):
    assert Peer.of(waiting_run.port, certs, "coordinator").is_rejected_by_tls()


@pytest.mark.slow
def test_a_site_cannot_pose_as_the_coordinator(certs, tmp_path):
    ct.make_certificates(certs, ["impostor"])
    team = ct.SitesTeam(["site0"], listen="localhost:0", cert=certs / "impostor.pem", wait=2)
    thread = threading.Thread(target=lambda: _fails(ct.RemoteArms(3), team), daemon=True)
    thread.start()
    lines = []
    with pytest.raises(ct.SiteError, match="no coordinator at"):
        ct.join(f"localhost:{team.port}", ARMS, cert=certs / "site0.pem", give_up=1, on_status=lines.append)
    thread.join(20)
    assert not any("connected" in line for line in lines)


def _fails(arms, team):
    with pytest.raises(ct.SiteError):
        ct.identify(arms, **{**RUN, "agents": len(team._sites)}, team=team)


def test_a_site_that_is_not_in_the_run_is_rejected(waiting_run, certs):
    with pytest.raises(ct.SiteError, match="is not one of this run's sites"):
        ct.join(f"localhost:{waiting_run.port}", ARMS, cert=certs / "site7.pem")


def test_a_second_peer_with_the_same_name_is_rejected(waiting_run, certs):
    with Peer.of(waiting_run.port, certs, "site1") as first:
        first.send_hello()
        first.send(Ready(1, (0,)))
        with Peer.of(waiting_run.port, certs, "site1") as second:
            second.send(Hello(VERSION, "", 99, 3, ""))
            assert second.read() == Refused("here already")


@pytest.mark.parametrize(("limit", "frames"), [("_HELLO_SECONDS", []), ("_READY_SECONDS", [Welcome])])
def test_a_peer_that_does_not_complete_its_handshake_is_rejected_at_the_deadline(certs, monkeypatch, limit, frames):
    monkeypatch.setattr(handshake, limit, 0.2)
    with waiting_team(certs) as team:
        run = ct.start(ct.RemoteArms(3), **RUN, team=team)
        with Peer.of(team.port, certs, "site1") as slow:
            assert [type(slow.send_hello()) for _ in frames] == frames
            assert slow.read() == Refused("frame")
        run.stop()
        assert not run.result().complete


def test_a_call_with_too_large_headers_is_ended(waiting_run, certs):
    with Peer.of(waiting_run.port, certs, "site1") as peer:
        call = peer.channel.stream_stream(f"/{SERVICE}/{METHOD}")
        assert next(call(iter([]), metadata=[("x", "y" * (tls._LARGEST_HEADERS - 1_000))]), None)
        large = call(iter([]), metadata=[("x", "y" * tls._LARGEST_HEADERS)])
        assert large.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_site_has_few_handshakes_at_the_same_time(waiting_run, certs):
    with ExitStack() as peers:
        for _ in range(handshake._MAX_HANDSHAKES):
            peer = peers.enter_context(Peer.of(waiting_run.port, certs, "site1"))
            assert isinstance(peer.send_hello(), Welcome)
        assert peers.enter_context(Peer.of(waiting_run.port, certs, "site1")).send_hello() == Refused("here already")


def test_a_site_has_few_calls_at_the_same_time(waiting_run, certs, monkeypatch):
    monkeypatch.setattr(handshake, "_MAX_HANDSHAKES", 100)  # which would reject them earlier
    with ExitStack() as peers:
        for _ in range(MOST_CALLS):
            peer = peers.enter_context(Peer.of(waiting_run.port, certs, "site1"))
            assert isinstance(peer.send_hello(), Welcome)
        more = peers.enter_context(Peer.of(waiting_run.port, certs, "site1"))
        assert more.call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_calls_of_all_peers_are_limited_together(certs, monkeypatch):
    monkeypatch.setattr(port, "_MOST_STRANGERS", 2 - 2 * MOST_CALLS)  # so that two calls are left
    with waiting_team(certs) as team, ExitStack() as peers:
        run = ct.start(ct.RemoteArms(3), **RUN, team=team)
        for name in ("site0", "site1"):
            assert isinstance(peers.enter_context(Peer.of(team.port, certs, name)).send_hello(), Welcome)
        more = peers.enter_context(Peer.of(team.port, certs, "site0"))
        assert more.call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        run.stop()
        assert not run.result().complete


def test_of_two_peers_with_the_same_name_the_first_to_be_ready_stays(waiting_run, certs):
    with Peer.of(waiting_run.port, certs, "site1") as first, Peer.of(waiting_run.port, certs, "site1") as second:
        assert isinstance(first.send_hello(), Welcome)
        assert isinstance(second.send_hello(), Welcome)
        first.send(Ready(1, (0,)))
        assert isinstance(first.read(), Ask)
        second.send(Ready(2, (0,)))
        assert second.read() == Refused("here already")


def test_a_wrong_run_id_a_wrong_version_and_different_arms_are_rejected(waiting_run, certs):
    for hello, why in (
        (Hello(VERSION, "feed" * 8, 1, 3, ""), "run"),
        (Hello(VERSION + 1, "", 1, 3, ""), "version"),
        (Hello(VERSION - 1, "", 1, 3, ""), "version"),
        (Hello(VERSION, "", 1, 4, ""), "arms"),
        (Ready(1, (0,)), "frame"),
    ):
        with Peer.of(waiting_run.port, certs, "site1") as peer:
            peer.send(hello)
            assert peer.read() == Refused(untyped(why))


def test_a_certificate_for_a_different_site_is_rejected(certs):
    with pytest.raises(ct.InputError, match=r"site is 'site3', but cert .* is for 'site4'"):
        ct.join("localhost:1", ARMS, site="site3", cert=certs / "site4.pem")


def answer_to(ask_number, life=7):
    return Answer(seal_reply(Reply(1, ask_number, 300, Means(np.array([0.9, 0.5, 0.4]))), life))


def test_an_answer_that_arrives_before_a_restarted_coordinator_asks_again_is_ignored(certs):
    team, results = waiting_team(certs), []
    run = threading.Thread(target=lambda: results.append(ct.identify(ct.RemoteArms(3), **RUN, team=team)))
    run.start()
    address = f"localhost:{team.port}"
    with Peer.of(team.port, certs, "site1") as peer:
        peer.send_hello()
        frames = [Ready(7, (1,)), answer_to(1)]  # the previous coordinator was killed after request 1
        time.sleep(0.2)  # until the Welcome is counted
        received = team.transport_stats().bytes
        for frame in frames:
            peer.send(frame)
        while team.transport_stats().bytes < received + sum(len(encode(frame)) for frame in frames):
            assert run.is_alive()
        first = threading.Thread(
            target=ct.join, args=[address, ARMS], kwargs={"cert": certs / "site0.pem", "secret": b""}
        )
        first.start()
        assert isinstance(peer.read(), Ask)
    ct.join(address, ARMS, cert=certs / "site1.pem", give_up=20, secret=b"")
    for thread in (run, first):
        thread.join(20)
    assert results == [ct.identify(ct.BernoulliArms(ARMS.means), **RUN)]


def test_an_answer_to_a_request_that_was_not_made_is_rejected(certs):
    team = waiting_team(certs)
    thread = threading.Thread(target=lambda: _fails(ct.RemoteArms(3), team))
    thread.start()
    with Peer.of(team.port, certs, "site1") as peer:
        peer.send_hello()
        peer.send(Ready(7, (0,)))
        peer.send(answer_to(2))
        assert peer.read() == Refused("answer")
    thread.join(20)


def send_forged_answer(peer, forge):
    """Take part and answer the first request with a forged answer; return the coordinator's next frame."""
    welcome = peer.send_hello()
    assert isinstance(welcome, Welcome)
    peer.send(Ready(7, (0,)))
    ask = peer.read()
    assert isinstance(ask, Ask)
    honest = Reply(ask.request.agent, ask.request.number, 300, Means(np.array([0.9, 0.5, 0.4])))
    peer.send(Answer(forge(seal_reply(honest, 7))))
    return peer.read()


@pytest.mark.parametrize(
    ("forge", "error"),
    [
        (
            lambda reply: SealedReply(reply.epoch, 0, reply.number, reply.pulls, reply.answer),
            "an answer for an agent of a different site",
        ),
        (lambda reply: SealedReply(8, reply.agent, reply.number, reply.pulls, reply.answer), "a different journal"),
        (
            lambda reply: SealedReply(reply.epoch, reply.agent, 9, reply.pulls, reply.answer),
            "an answer to a different request",
        ),
        (
            lambda reply: SealedReply(reply.epoch, reply.agent, reply.number, 301, reply.answer),
            "a different number of pulls",
        ),
        (
            lambda reply: SealedReply(reply.epoch, reply.agent, reply.number, reply.pulls, b"no message"),
            "not a valid message",
        ),
        (lambda reply: seal_reply(Reply(1, reply.number, 300, Means(np.array([2.0, 0, 0]))), 7), "outside"),
        (
            lambda reply: seal_reply(Reply(1, reply.number, 300, Means(np.array([0.5]))), 7),
            "a different number of means",
        ),
        (
            lambda reply: seal_reply(Reply(1, reply.number, 300, Means(np.array([np.nan, 0, 0]))), 7),
            "not a valid message",
        ),
    ],
    ids=["for another", "other life", "other request", "too many pulls", "garbage", "mean of 2", "one mean", "NaN"],
)
def test_a_site_with_an_invalid_answer_is_disconnected_and_the_run_fails(certs, forge, error, caplog):
    team = waiting_team(certs)
    outcome = []

    def run():
        try:
            ct.identify(ct.RemoteArms(3), **RUN, team=team)
        except ct.SiteError as failure:
            outcome.append(str(failure))

    honest = threading.Thread(target=_join_until_the_run_fails, args=[team.port, certs])
    thread = threading.Thread(target=run)
    with caplog.at_level(logging.DEBUG, "collabtop.sites"):
        for started in (thread, honest):
            started.start()
        with Peer.of(team.port, certs, "site1") as peer:
            assert send_forged_answer(peer, forge) == Refused("answer")
        for started in (thread, honest):
            started.join(20)
    assert error in outcome[0]
    assert "site site1 was disconnected: invalid message" in outcome[0]
    assert "disconnected agent 1: invalid message" in caplog.text
    assert "site1" not in caplog.text


def _join_until_the_run_fails(port, certs):
    with pytest.raises(ct.SiteError):
        ct.join(f"localhost:{port}", ARMS, cert=certs / "site0.pem", give_up=0.5)


def test_no_log_contains_names_keys_or_rewards(certs, caplog):
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
    """Files are readable by all unless they are created with a stricter mode."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_journal_and_audit_are_readable_by_their_owner_only(certs, tmp_path, open_umask):
    sent = tmp_path / "sent.jsonl"
    team = ThreadSites(certs, journals=tmp_path / "journals", joins={"audit": sent})
    ct.identify(ARMS, **{**RUN, "agents": 1}, team=team, checkpoint=tmp_path / "run.ctlog")
    [journal] = (tmp_path / "journals" / "site0").iterdir()
    mode = {path: path.stat().st_mode & 0o777 for path in (journal, journal.parent, sent, tmp_path / "run.ctlog")}
    assert list(mode.values()) == [0o600, 0o700, 0o600, 0o666]  # the coordinator's log has the default mode


def test_an_existing_audit_keeps_its_mode(tmp_path, open_umask):
    path = tmp_path / "sent.jsonl"
    path.touch(0o640)
    Audit(path).close()
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_repr_of_the_files_shows_no_key(certs):
    from collabtop.teams.sites.tls import read_files

    assert repr(read_files(certs / "site0.pem")) == "Files(...)"
