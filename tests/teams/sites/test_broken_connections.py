"""Broken connections to the coordinator's port cause no crash and no growth of memory, and do not disturb the run."""

from __future__ import annotations

import random
import socket
import ssl
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.made_up_messages import examples_of
from tests.support.memory import resident_bytes
from tests.support.peers import Peer
from tests.support.site_processes import Trial
from tests.support.wrong_frames import broken_hellos

pytestmark = pytest.mark.slow


def attack(port, certs, rng):
    """Open a connection and break it: with random bytes, a partial handshake, no certificate, or at once."""
    with socket.socket() as sock, suppress(OSError, ssl.SSLError):
        sock.settimeout(5)
        sock.connect(("127.0.0.1", port))
        kind = rng.randrange(4)
        if kind == 0:
            sock.send(rng.randbytes(rng.randrange(1, 200)))
        elif kind == 1:
            sock.send(b"\x16\x03\x01\x02\x00\x01" + rng.randbytes(rng.randrange(1, 200)))
        elif kind == 2:
            context = ssl.create_default_context(cafile=certs / "authority.pem")
            context.set_alpn_protocols(["h2"])
            with context.wrap_socket(sock, server_hostname="localhost") as wrapped:
                wrapped.send(rng.randbytes(64))


def attack_with_certificate(port, certs, hello):
    """Connect with a valid certificate and send invalid bytes as Hello."""
    with Peer.of(port, certs, "site1") as peer:
        peer.send_bytes(hello)
        peer.outbox.put(None)
        with suppress(Exception):
            peer.read()


WAITS_FOR_THE_ATTACK = """
def hook(candidate):
    while pulls > 80 and not os.path.exists("over"):
        time.sleep(0.01)
"""


@pytest.mark.parametrize(
    ("count", "certified", "fresh"), [(400, 40, False), pytest.param(10_000, 1_000, True, marks=pytest.mark.long)]
)
def test_broken_connections_do_not_disturb_a_run(tmp_path, certs, count, certified, fresh):
    """Each site makes 80 pulls during the attack, and the run ends after it.

    In the second half the coordinator's process may grow by 2 MB, which is 400 bytes per connection in the long form;
    a connection that is never released takes tens of thousands, with its TLS.
    """
    run = Trial(tmp_path, certs, fresh=fresh, algorithm="collab-top-iid", hook=WAITS_FOR_THE_ATTACK)
    rng, hellos = random.Random(3), iter(examples_of(broken_hellos, certified, part=3))

    def half_of_the_attack():
        for number in range(count // 2):
            attack(run.port, certs, rng)
            if number % (count // certified) == 0:
                attack_with_certificate(run.port, certs, next(hellos))
        return resident_bytes(run.processes["coordinator"].pid), open_files(run.processes["coordinator"].pid)

    try:
        run.start_all()
        run.wait_for_pulls("site0", 1)
        memory, files = half_of_the_attack()
        memory_after, _ = half_of_the_attack()
        end = time.monotonic() + 60
        while open_files(run.processes["coordinator"].pid) > files + 10:
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
