"""A visitor without the token cannot fill the page's memory, guess the token, or keep others out."""

from __future__ import annotations

import http.client
import socket
import time
from contextlib import suppress

import pytest

import collabtop as ct
from collabtop.watch import auth, serve, server
from tests.support.memory import resident_bytes
from tests.support.page_server import page_in_thread
from tests.watch.test_auth import request

TOKEN = "long-and-secret"


@pytest.fixture
def runs(tmp_path):
    ct.identify(ct.BernoulliArms([0.9, 0.1]), 1, agents=2, horizon=50, seed=1, checkpoint=tmp_path / "a.ctlog")
    return serve.runs_in([tmp_path])


@pytest.fixture
def page(runs):
    """A page that requires a token."""
    with page_in_thread(runs, token=TOKEN) as page:
        yield page


def test_a_form_that_is_too_large_is_refused_before_it_is_read(page):
    assert request(page.address + "enter", "POST", b"token=" + TOKEN.encode() + b"&x=" + b"x" * 4000)[0] == 303
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=20)
    connection.putrequest("POST", "/enter")
    connection.putheader("transfer-encoding", "chunked")
    connection.endheaders()
    before, sent = resident_bytes(), 0
    piece = b"%x\r\n%s\r\n" % (1 << 20, bytes(1 << 20))
    with suppress(OSError):  # the server closes the connection
        while sent < 100:
            connection.send(piece)
            sent += 1
    assert sent < 100
    assert resident_bytes() - before < 30 << 20
    connection.close()
    assert request(page.address + "enter", "POST", b"x" * (auth.LARGEST_FORM + 1))[0] == 413
    assert request(page.address + "enter", "POST", b"x" * auth.LARGEST_FORM)[0] == 401


def test_a_form_that_does_not_arrive_is_not_waited_for(page, monkeypatch):
    monkeypatch.setattr(auth, "SECONDS_OF_FORM", 0.2)
    with socket.create_connection(("127.0.0.1", page.port), timeout=10) as connection:
        connection.sendall(b"POST /enter HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\ntoken=")
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_a_request_head_that_is_too_large_or_too_slow_ends_the_connection(page, monkeypatch):
    assert request(page.address, Cookie="x=" + "y" * (serve.LARGEST_HEAD - 1000))[0] == 401
    with socket.create_connection(("127.0.0.1", page.port), timeout=10) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nx: " + b"y" * serve.LARGEST_HEAD)
        assert connection.recv(100).startswith(b"HTTP/1.1 400")
    monkeypatch.setattr(serve, "SECONDS_OF_HEAD", 0.2)
    for data in (b"", b"GET / HT"):
        with socket.create_connection(("127.0.0.1", page.port), timeout=10) as connection:
            connection.sendall(data)
            assert connection.recv(100) == b""


def test_connections_beyond_the_limit_are_refused_and_later_ones_served(page):
    idle = [socket.create_connection(("127.0.0.1", page.port)) for _ in range(serve.MAX_CONNECTIONS)]
    try:
        assert request(page.address)[0] == 503
    finally:
        for connection in idle:
            connection.close()
    deadline = time.monotonic() + 10
    while (status := request(page.address)[0]) == 503 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert status == 401


def test_viewers_beyond_the_limit_are_refused(runs, monkeypatch):
    monkeypatch.setattr(server, "MAX_VIEWERS", 2)
    with page_in_thread(runs) as page:
        streams = []
        for _ in range(2):
            connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=10)
            connection.request("GET", "/api/events")
            assert connection.getresponse().status == 200
            streams.append(connection)
        while page.server.viewers < 2:
            time.sleep(0.01)
        assert request(page.address + "api/events")[0] == 503
        assert request(page.address + "api/runs")[0] == 200
        for connection in streams:
            connection.close()


def test_after_ten_wrong_tokens_in_a_minute_none_is_looked_at(page, monkeypatch):
    cookie = request(page.address + "enter", "POST", f"token={TOKEN}".encode())[2]["set-cookie"].partition(";")[0]
    for number in range(auth.MAX_GUESSES):
        way = number % 3
        if way == 0:
            status = request(page.address + "enter", "POST", b"token=wrong")[0]
        elif way == 1:
            status = request(page.address + "?token=wrong")[0]
        else:
            status = request(page.address + "api/runs", Authorization="Bearer wrong")[0]
        assert status == 401
    for status, _, headers in (
        request(page.address + "enter", "POST", f"token={TOKEN}".encode()),
        request(page.address + f"?token={TOKEN}"),
        request(page.address + "api/runs", Authorization=f"Bearer {TOKEN}"),
    ):
        assert status == 429
        assert 0 < int(headers["retry-after"]) <= 60
    assert request(page.address + "api/runs", Cookie=cookie)[0] == 200  # who is in stays in
    monkeypatch.setattr(auth, "_SECONDS_OF_GUESSES", 0.0)
    assert request(page.address + "enter", "POST", f"token={TOKEN}".encode())[0] == 303


def test_guesses_from_many_addresses_are_limited_together():
    guesses = auth.Guesses()
    for number in range(auth.MAX_GUESSES_BY_ALL):
        assert guesses.seconds_left("198.51.100.1") == 0
        guesses.add(f"2001:db8:{number:x}::1")
    assert 0 < guesses.seconds_left("198.51.100.1") <= 60


def test_an_ipv6_network_counts_as_one_visitor():
    guesses = auth.Guesses()
    for number in range(auth.MAX_GUESSES):
        guesses.add(f"2001:db8::{number:x}")
    assert guesses.seconds_left("2001:db8::ffff") > 0
    assert guesses.seconds_left("2001:db8:0:1::1") == 0


@pytest.mark.parametrize(
    "foreign",
    ["a[1]=b; {}", 'theme={{"dark":true}}; {}', "collabtop=other; {}", "=; ;;\x80\xff; {}", '{}; x y="', "{0}; {0}"],
)
def test_cookies_of_other_programs_on_the_same_host_do_not_matter(page, foreign):
    cookie = request(page.address + f"?token={TOKEN}")[2]["set-cookie"].partition(";")[0]
    assert request(page.address + "api/runs", Cookie=foreign.format(cookie))[0] == 200
    assert request(page.address + "api/runs", Cookie=foreign.format("x=y"))[0] == 401


def test_two_pages_on_one_host_do_not_overwrite_each_others_cookies(runs):
    with page_in_thread(runs, token=TOKEN) as one, page_in_thread(runs, token="a-different-one") as other:
        names = [
            request(page.address + f"?token={token}")[2]["set-cookie"].partition("=")[0]
            for page, token in ((one, TOKEN), (other, "a-different-one"))
        ]
    assert names[0] != names[1]


def test_the_cookie_does_not_contain_the_token(page):
    assert TOKEN not in request(page.address + f"?token={TOKEN}")[2]["set-cookie"]
