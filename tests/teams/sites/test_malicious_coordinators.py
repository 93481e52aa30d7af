"""A malicious coordinator decides neither where a site writes nor what the site displays."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

import collabtop as ct
from collabtop.cli import app
from collabtop.protocol.messages import Cut, Deal, PullHand, Request
from collabtop.protocol.setup import Setup
from collabtop.teams.remote.envelope import SealedRequest, seal_requests
from collabtop.teams.sites import client
from collabtop.teams.sites.frames import Ask, Declined, Done, Ready, Welcome
from tests.support.peers import MaliciousCoordinator

SETUP = Setup(ct.Problem(n=2, m=1, agents=1, horizon=300), seed=1, algorithm="uniform")


@pytest.fixture
def joined(certs, tmp_path, monkeypatch):
    """Let a site join a coordinator that sends the frames of `talk`; return the site's output."""

    def join(talk):
        site = tmp_path / "deep" / "down"
        site.mkdir(parents=True)
        (site / "means.txt").write_text("0.5\n0.6\n")
        monkeypatch.chdir(site)
        with MaliciousCoordinator(certs, talk) as coordinator:
            address, cert = f"localhost:{coordinator.port}", str(certs / "site0.pem")
            return CliRunner().invoke(
                app, ["join", address, "--site", "site0", "--cert", cert, "--means", "means.txt", "--give-up", "5"]
            )

    return join


@pytest.mark.parametrize(
    "run",
    ["../../escaped", "/tmp/escaped", "\x1b[31mred", "", "ab" * 16 + "\n", "AB" * 16, "ab" * 15],
    ids=["relative", "absolute", "escape sequence", "empty", "with a line end", "capitals", "too short"],
)
def test_a_site_leaves_if_the_run_id_is_not_32_digits(joined, tmp_path, run):
    def talk(frames):
        next(frames)
        yield Welcome(run, SETUP, (0,))
        yield from (Done() for _ in frames)

    ended = joined(talk)
    assert ended.exit_code == 1
    assert ended.output == "error: the coordinator sent a malformed frame\n"
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"means.txt"}


@pytest.mark.parametrize(("more", "code"), [(0, 0), (1, 1)], ids=["at the limit", "beyond it"])
def test_a_run_with_more_agents_than_the_limit_is_declined(joined, more, code):
    setup = msgspec.structs.replace(SETUP, problem=ct.Problem(n=2, m=1, agents=client._MOST_AGENTS + more, horizon=300))

    def talk(frames):
        next(frames)
        yield Welcome("ab" * 16, setup, (0,))
        assert isinstance(next(frames), Declined if more else Ready)
        yield Done()

    ended = joined(talk)
    assert ended.exit_code == code
    assert ("the coordinator offered an invalid run" in ended.output) == bool(more)


@pytest.mark.parametrize(
    "message",
    [{"kind": "\x1b[31mred"}, {"kind": "PullHand", "times": 5, "free": {"\x1b[31mred": 1}}, "\x1b[31mred"],
    ids=["kind", "field", "no message at all"],
)
def test_an_invalid_message_is_declined_without_quoting_it(joined, message):
    received = []

    def talk(frames):
        next(frames)
        yield Welcome("ab" * 16, SETUP, (0,))
        yield Ask(SealedRequest(next(frames).life, 0, 1, (msgspec.msgpack.encode(message),)))
        received.append(next(frames))

    ended = joined(talk)
    assert ended.exit_code == 1
    assert ended.output.splitlines()[1:] == ["error: the coordinator sent an invalid message"]
    assert received == [Declined("request")]


def test_a_request_out_of_order_is_declined_and_ends_the_site_with_one_line(joined):
    received = []

    def talk(frames):
        next(frames)
        yield Welcome("ab" * 16, SETUP, (0,))
        life = next(frames).life
        for number, messages in enumerate([(Deal(np.array([1, 0])),), (PullHand(2), Cut(1))], 1):
            yield Ask(*seal_requests([Request(0, number, messages)], {0: life}))
            received.append(next(frames))

    ended = joined(talk)
    assert ended.exit_code == 1
    assert ended.output.splitlines()[1:] == ["error: the coordinator sent an invalid request: a cut without a border"]
    assert received[1:] == [Declined("request")]
