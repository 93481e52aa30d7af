"""Coordinators and sites as real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import collabtop as ct
from collabtop.runlog.file import read_log
from collabtop.runlog.format import Rewards
from tests.support.forked_process import Forked

COMMAND = str(Path(sys.executable).with_name("collabtop"))

CANDIDATES = [f"treatment {number}" for number in range(64)]

MODULE = """
import os, time
candidates = [f"treatment {number}" for number in range(64)]
pulls = 0

def hook(candidate):
    while pulls == int(os.environ["HOLD_AT"]) and not os.path.exists("go"):
        time.sleep(0.005)

def score(candidate, rng):
    global pulls
    pulls += 1
    drawn = rng.random()
    time.sleep(float(os.environ["PULL_SECONDS"]))
    hook(candidate)
    with open(os.environ["PULLS"], "a") as file:
        file.write(f"{candidate} {drawn!r} {time.monotonic()}\\n")
    return drawn < 0.2 + 0.01 * int(candidate.split()[1])
"""

HORIZONS = {"collab-top-iid": 500, "frugal-top": 130, "collab-top-noniid": 400, "kzz": 400, "uniform": 128}
"""With two sites and 64 candidates: 128 to 400 pulls per site; the first two have local phases of 100 and 90 pulls."""
HOLD_AT = {"collab-top-iid": 57, "frugal-top": 40, "collab-top-noniid": 80, "kzz": 80}
"""The pull at which sites are held: in the same exchange, not the first, and in a local phase if there is one."""


def score(candidate, rng):
    return rng.random() < 0.2 + 0.01 * int(candidate.split()[1])


def learnt(result):
    """What a run led to, without what depends on the rewards that a process has seen: those of sites stay there."""
    return {name: value for name, value in result.items() if name not in ("warnings", "answer")}


class Trial:
    """A run with a coordinator and several sites, each in its own process.

    Args:
        fresh: start each process with the installed command; otherwise they are forked from one that has imported the
            package, which saves a second of CPU time each.
        hold: let every site wait in the middle of its work until `release`, so that faults happen there.
        hook: Python code that defines a different function `hook`, which is called in every pull.
    """

    prepare = None
    """A function that every forked process calls first."""

    def __init__(
        self,
        folder,
        certs,
        sites=2,
        *,
        algorithm,
        fresh=False,
        hold=False,
        hook="",
        pull_seconds=0.005,
        grace=60,
        keepalive=2,
        **settings,
    ):
        self.folder, self.certs, self.sites, self.fresh = folder, certs, sites, fresh
        self.hold_at = HOLD_AT[algorithm] if hold else 0
        self.port, self.pull_seconds, self.keepalive = 0, pull_seconds, keepalive
        self.processes = {}
        (folder / "study.py").write_text(MODULE + hook)
        self.settings = {"m": 1, "horizon": HORIZONS[algorithm], "seed": 5, "algorithm": algorithm, **settings}
        names = [f"site{number}" for number in range(sites)]
        lines = {**self.settings, "labels": CANDIDATES, "sites": names, "grace": grace, "keepalive": keepalive}
        (folder / "run.toml").write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in lines.items()))

    def expected(self):
        """The same run in this process, undisturbed."""
        run = {name: value for name, value in self.settings.items() if name != "m"}
        return ct.identify(CANDIDATES, self.settings["m"], pull=score, agents=self.sites, **run)

    def start_coordinator(self, *more):
        """Start the coordinator: the first time on any free port, later on the same port."""
        self._start(
            "coordinator",
            *("coordinate", "run.toml", "--listen", f"127.0.0.1:{self.port}", "--json"),
            *("--cert", self.certs / "coordinator.pem", *more),
        )
        if not self.port:
            self.port = int(self.wait_for_output("coordinator", r"listening on 127\.0\.0\.1:(\d+)")[1])

    def start_site(self, number, *, port=None, more=()):
        self._start(
            f"site{number}",
            *("join", f"localhost:{port or self.port}", "--site", f"site{number}"),
            *("--arms", "study:candidates", "--pull", "study:score", "--cert", self.certs / f"site{number}.pem"),
            *("--keepalive", self.keepalive, "--min-batch", 1, "--secret", os.devnull, "--give-up", 600, *more),
        )

    def start_all(self):
        self.start_coordinator()
        for number in range(self.sites):
            self.start_site(number)

    def restart(self, name):
        self.start_coordinator() if name == "coordinator" else self.start_site(int(name[4:]))

    def _start(self, name, *arguments):
        command = [str(argument) for argument in arguments]
        numbers = {"PULL_SECONDS": str(self.pull_seconds), "HOLD_AT": str(self.hold_at)}
        environment = {"PULLS": str(self.pulls_file(name)), **numbers}
        out, err = self.folder / f"{name}.out", self.folder / f"{name}.err"
        if not self.fresh:
            self.processes[name] = Forked(
                command, cwd=self.folder, out=out, err=err, environment=environment, prepare=self.prepare
            )
            return
        with out.open("ab") as to_out, err.open("ab") as to_err:
            self.processes[name] = subprocess.Popen(
                [COMMAND, *command], cwd=self.folder, stdout=to_out, stderr=to_err, env={**os.environ, **environment}
            )

    def pulls_file(self, name):
        return self.folder / f"{name}.pulls"

    def pulls_made(self, name):
        """The pulls of a process, each with what was drawn."""
        return [pull for pull, _ in self.timed_pulls(name)]

    def timed_pulls(self, name):
        """The pulls of a process, and when each of them ended."""
        path = self.pulls_file(name)
        lines = path.read_text().splitlines() if path.exists() else []
        return [(pull, float(at)) for pull, _, at in (line.rpartition(" ") for line in lines)]

    def wait_until_held(self):
        """Wait until all sites are held in the middle of their work."""
        for number in range(self.sites):
            self.wait_for_pulls(f"site{number}", self.hold_at - 1)

    def wait_until_recorded(self, name):
        """Wait until all pulls of a site that is held are in its journal."""
        [journal] = (self.folder / f"{name}-journal").iterdir()

        def recorded():
            return sum(record.pulls for record in read_log(journal) if isinstance(record, Rewards))

        self.wait(name, lambda: recorded() == self.hold_at - 1, "rewards in the journal")

    def release(self):
        """Let all sites continue."""
        (self.folder / "go").touch()

    def wait_for_pulls(self, name, count):
        self.wait(name, lambda: len(self.pulls_made(name)) >= count, f"{count} pulls")

    def wait_for_output(self, name, pattern):
        """Wait until the stderr of a process matches, and return the match."""
        self.wait(name, lambda: re.search(pattern, self.stderr(name)), pattern)
        return re.search(pattern, self.stderr(name))

    def wait_until_idle(self, name):
        """Wait until all threads of a process have been asleep for a while: it has sent everything."""
        tasks, asleep = Path(f"/proc/{self.processes[name].pid}/task"), 0

        def done():
            nonlocal asleep
            states = [(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks.iterdir()]
            asleep = asleep + 1 if set(states) == {"S"} else 0
            return asleep >= 30

        self.wait(name, done, "idle time")

    def wait(self, name, done, what, seconds=60):
        """Wait until `done()` is true, while the process runs."""
        end = time.monotonic() + seconds
        while not done():
            assert self.processes[name].poll() is None, f"{name} ended: {self.stderr(name)}"
            assert time.monotonic() < end, f"{name}: no {what} in {seconds} s, stderr: {self.stderr(name)}"
            time.sleep(0.01)

    def send_signal(self, name, number):
        self.processes[name].send_signal(number)

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait()

    def result(self, seconds=120):
        """Wait until all processes have ended with code 0, and return the coordinator's result."""
        end = time.monotonic() + seconds
        for name, process in self.processes.items():
            code = process.wait(max(0.1, end - time.monotonic()))
            assert code == 0, f"{name} ended with {code}: {self.stderr(name)}"
        return json.loads((self.folder / "coordinator.out").read_text())

    def stderr(self, name):
        path = self.folder / f"{name}.err"
        return path.read_text() if path.exists() else ""

    def stop(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()

    def expected_json(self):
        """The JSON of an undisturbed run."""
        return json.loads(self.expected().to_json())

    def check(self, result, *, repeated_at_most=0):
        """Check that result and ledger are those of an undisturbed run, and that no more pulls were repeated."""
        expected = self.expected_json()
        transport = result.pop("transport")
        assert learnt(result) == learnt(expected)
        pulls = Counter(line for number in range(self.sites) for line in self.pulls_made(f"site{number}"))
        assert len(pulls) == expected["pulls"]
        assert sum(pulls.values()) - len(pulls) <= repeated_at_most
        return transport
