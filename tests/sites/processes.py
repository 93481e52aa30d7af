"""Coordinators and sites as real processes, started by the installed command."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import collabtop as ct

COMMAND = str(Path(sys.executable).with_name("collabtop"))

CANDIDATES = [f"treatment {letter}" for letter in "abcdefgh"]

MODULE = """
import os, time
candidates = ["treatment " + letter for letter in "abcdefgh"]

def score(candidate, rng):
    drawn = rng.random()
    time.sleep(float(os.environ.get("PULL_SECONDS", "0.02")))
    with open(os.environ["PULLS"], "a") as file:
        file.write(f"{candidate} {drawn!r}\\n")
    return drawn < 0.2 + 0.08 * (ord(candidate[-1]) - ord("a"))
"""


def score(candidate, rng):
    return rng.random() < 0.2 + 0.08 * (ord(candidate[-1]) - ord("a"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Trial:
    """A run of some sites in processes of their own, in a folder of their own."""

    def __init__(self, folder, certs, sites=2, *, horizon=60, pull_seconds=0.02, grace=60, keepalive=2, **settings):
        self.folder, self.certs, self.sites = folder, certs, sites
        self.port, self.pull_seconds, self.keepalive = free_port(), pull_seconds, keepalive
        self.running = {}
        (folder / "study.py").write_text(MODULE)
        self.settings = {"m": 2, "horizon": horizon, "seed": 5, "algorithm": "kzz", **settings}
        names = [f"site{number}" for number in range(sites)]
        lines = {**self.settings, "labels": CANDIDATES, "sites": names, "grace": grace, "keepalive": keepalive}
        (folder / "run.toml").write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in lines.items()))

    def expected(self):
        """The same run in this process, undisturbed."""
        run = {name: value for name, value in self.settings.items() if name != "m"}
        return ct.identify(CANDIDATES, self.settings["m"], pull=score, agents=self.sites, **run)

    def start_coordinator(self, *more):
        self._start(
            "coordinator",
            *("coordinate", "run.toml", "--listen", f"127.0.0.1:{self.port}", "--json"),
            *("--cert", self.certs / "coordinator.pem", *more),
        )

    def start_site(self, number, *, port=None, more=()):
        self._start(
            f"site{number}",
            *("join", f"localhost:{port or self.port}", "--site", f"site{number}"),
            *("--arms", "study:candidates", "--pull", "study:score", "--cert", self.certs / f"site{number}.pem"),
            *("--keepalive", self.keepalive, "--min-batch", 1, "--give-up", 60, *more),
        )

    def _start(self, name, *arguments):
        environment = {**os.environ, "PULLS": str(self.pulls_file(name)), "PULL_SECONDS": str(self.pull_seconds)}
        with (self.folder / f"{name}.out").open("ab") as out, (self.folder / f"{name}.err").open("ab") as err:
            self.running[name] = subprocess.Popen(
                [COMMAND, *map(str, arguments)], cwd=self.folder, stdout=out, stderr=err, env=environment
            )

    def pulls_file(self, name):
        return self.folder / f"{name}.pulls"

    def pulls_made(self, name):
        path = self.pulls_file(name)
        return path.read_text().splitlines() if path.exists() else []

    def wait_for_pulls(self, name, count, seconds=30):
        """Wait until a site is in the middle of its work."""
        end = time.monotonic() + seconds
        while len(self.pulls_made(name)) < count:
            assert time.monotonic() < end, f"{name} made {len(self.pulls_made(name))} pulls in {seconds} s"
            time.sleep(0.01)

    def send(self, name, what):
        self.running[name].send_signal(what)

    def kill(self, name):
        self.running[name].kill()
        self.running[name].wait()

    def result(self, seconds=60):
        """Wait for all to end well, and return what the coordinator printed."""
        end = time.monotonic() + seconds
        for name, process in self.running.items():
            code = process.wait(max(0.1, end - time.monotonic()))
            assert code == 0, f"{name} ended with {code}: {self.said(name)}"
        return json.loads((self.folder / "coordinator.out").read_text())

    def said(self, name):
        return (self.folder / f"{name}.err").read_text()

    def stop(self):
        for process in self.running.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()

    def check(self, told, *, repeated_at_most=0):
        """The undisturbed answer and ledger, and no pull made twice but one under way at a kill."""
        expected = json.loads(self.expected().to_json())
        transport = told.pop("transport")
        assert told == expected
        pulls = Counter(line for number in range(self.sites) for line in self.pulls_made(f"site{number}"))
        assert len(pulls) == expected["pulls"]
        assert sum(pulls.values()) - len(pulls) <= repeated_at_most
        return transport
