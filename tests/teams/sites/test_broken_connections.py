"""Broken connections at the coordinator's port: no crash, no growth of memory, and the run goes on unharmed."""

from __future__ import annotations

import random
import socket
import ssl
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.made_up_messages import gathered
from tests.support.memory import held_now
from tests.support.peers import Peer
from tests.support.site_processes import Trial
from tests.support.wrong_frames import broken_hellos

pytestmark = pytest.mark.slow


def break_in(port, certs, rng):
    """Open a connection and break it: bytes that are no TLS, a handshake cut short, a valid one that ends at once."""
    with socket.socket() as sock, suppress(OSError, ssl.SSLError):
        sock.settimeout(5)
        sock.connect(("127.0.0.1", port))
        what = rng.randrange(4)
        if what == 0:
            sock.send(rng.randbytes(rng.randrange(1, 200)))
        elif what == 1:
            sock.send(b"\x16\x03\x01\x02\x00\x01" + rng.randbytes(rng.randrange(1, 200)))
        elif what == 2:
            context = ssl.create_default_context(cafile=certs / "authority.pem")
            context.set_alpn_protocols(["h2"])
            with context.wrap_socket(sock, server_hostname="localhost") as wrapped:
                wrapped.send(rng.randbytes(64))


def break_in_with_a_certificate(port, certs, hello):
    """A valid certificate, and nonsense instead of a Hello."""
    with Peer.of(port, certs, "site1") as peer:
        peer.send_bytes(hello)
        peer.outbox.put(None)
        with suppress(Exception):
            peer.read()


UNTIL_IT_IS_OVER = """
def meanwhile(candidate):
    while pulls > 80 and not os.path.exists("over"):
        time.sleep(0.01)
"""


@pytest.mark.parametrize(
    ("count", "certified", "fresh"), [(400, 40, False), pytest.param(10_000, 1_000, True, marks=pytest.mark.long)]
)
def test_broken_connections_at_the_port_leave_the_run_under_way_unharmed(tmp_path, certs, count, certified, fresh):
    """The run goes on for 80 pulls a site during the attack, and ends after it.

    In the second half the coordinator's process may grow by 2 MB, which is 400 bytes a connection in the long form;
    one that is kept by mistake, with its TLS, takes tens of thousands.
    """
    run = Trial(tmp_path, certs, fresh=fresh, algorithm="collab-top-iid", meanwhile=UNTIL_IT_IS_OVER)
    rng, hellos = random.Random(3), iter(gathered(broken_hellos, certified, part=3))

    def attack():
        for number in range(count // 2):
            break_in(run.port, certs, rng)
            if number % (count // certified) == 0:
                break_in_with_a_certificate(run.port, certs, next(hellos))
        return held_now(run.running["coordinator"].pid), open_files(run.running["coordinator"].pid)

    try:
        run.start_all()
        run.wait_for_pulls("site0", 1)
        memory, files = attack()
        memory_after, _ = attack()
        end = time.monotonic() + 60
        while open_files(run.running["coordinator"].pid) > files + 10:
            assert time.monotonic() < end, "connections are left open"
            time.sleep(0.1)
        (tmp_path / "over").touch()
        transport = run.check(run.result())
    finally:
        run.stop()
    assert memory_after - memory < 2_000_000
    assert transport["refused"] >= certified / 2


def open_files(process):
    return len(list(Path(f"/proc/{process}/fd").iterdir()))
