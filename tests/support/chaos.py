"""Runs that are disturbed at random: processes are killed and frozen, links and power are cut, and clocks jump."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.disks import Disk, note_syncs
from tests.support.proxy import Proxy
from tests.support.site_processes import HORIZONS, Trial, learnt

AT_RISK = {"kill": 0.0, "power cut": 1.0}
"""Seconds before a fault within which completed pulls may be lost, besides those under way: one per agent."""


class Fault(NamedTuple):
    """What was done to a process, and when."""

    kind: str
    process: str
    at: float


def prepare() -> None:
    """In every process of a run: note syncs, and let the clock jump by what the file `clock` holds."""
    from collabtop.runlog import file as log_file

    if os.environ.get("SIMULATED_DISKS"):
        note_syncs()
    clock, wall_time = Path("clock").absolute(), time.time

    def jumping() -> float:
        return wall_time() + float(clock.read_text() or 0)

    time.time = log_file.time = jumping  # type: ignore[attr-defined]


class DisturbedRun(Trial):
    """A run over two sites, with a disk for each process and a link for each site."""

    prepare = staticmethod(prepare)  # type: ignore[assignment]

    def __init__(self, folder: Path, certs: Path, disks: type[Disk], algorithm: str, seed: int) -> None:
        self.rng, self.faults, self.links = random.Random(seed), [], []
        seconds, length = self.rng.choice([(0.003, 8), (0.02, 2)])  # rewards are written together, or one by one
        settings = {"algorithm": algorithm, "horizon": length * HORIZONS[algorithm], "seed": seed}
        super().__init__(folder, certs, **settings, pull_seconds=seconds, grace=120, keepalive=1)
        (folder / "clock").write_text("0")
        self.disks = {name: disks(folder / f"{name}-disk") for name in self.names}
        os.environ["SIMULATED_DISKS"] = "1" if disks.kind == "simulated" else ""

    @property
    def names(self) -> list[str]:
        """The processes."""
        return ["coordinator", *(f"site{number}" for number in range(self.sites))]

    def start(self) -> None:
        """Start all processes, each site behind its own link."""
        self.restart("coordinator")
        self.links = [Proxy(self.port) for _ in range(self.sites)]
        for number in range(self.sites):
            self.restart(f"site{number}")

    def restart(self, name: str) -> None:
        """Start a process with the same command as before."""
        disk = self.disks[name].folder
        if name == "coordinator":
            self.start_coordinator("--log", disk / "run.ctlog")
        else:
            number = int(name.removeprefix("site"))
            self.start_site(number, port=self.links[number].port, more=("--journal", disk / "journal"))

    def disturb(self, most: int) -> None:
        """Inject faults until there were `most`, or until the run has ended."""
        possible: list[Callable[[str], None]] = [
            self.fault_kill,
            self.fault_freeze,
            self.fault_link,
            self.fault_clock,
            self.fault_power,
            self.fault_power,
        ]
        while len(self.faults) < most and not self.has_ended:
            time.sleep(self.rng.uniform(0.1, 0.6))
            name = self.rng.choice(self.names)
            code = self.processes[name].poll()
            assert code in (None, 0), f"{name} ended with {code} after {self.faults[-1:]}: {self.stderr(name)}"
            if code is None:
                self.rng.choice(possible)(name)

    @property
    def has_ended(self) -> bool:
        """Whether the coordinator has ended with an answer."""
        return bool(self.processes["coordinator"].poll() == 0)

    def fault_kill(self, name: str) -> None:
        """Kill a process and start it again."""
        self._note("kill", name)
        self.kill(name)
        self._start_again(name)

    def fault_power(self, name: str) -> None:
        """Cut the power of a process and its disk, and start both again."""
        self._note("power cut", name)
        self.disks[name].cut_power()
        self.kill(name)
        self.disks[name].restore_power(self.rng)
        self._start_again(name)

    def fault_freeze(self, name: str) -> None:
        """Stop a process for a while, sometimes for so long that the others notice."""
        self._note("freeze", name)
        with suppress(ProcessLookupError):  # it has just ended
            self.send_signal(name, signal.SIGSTOP)
            time.sleep(self.rng.choice([0.1, 0.5, 3.0]))
            self.send_signal(name, signal.SIGCONT)

    def fault_link(self, name: str) -> None:
        """Cut a link and heal it after a while."""
        if self.links:
            self._note("link cut", name)
            link = self.rng.choice(self.links)
            link.cut()
            time.sleep(self.rng.choice([0.1, 0.5, 3.0]))
            link.heal()

    def fault_clock(self, name: str) -> None:
        """Let the time of day jump by up to a day, forward or back."""
        self._note("clock jump", name)
        (self.folder / "clock.new").write_text(str(self.rng.uniform(-86_400, 86_400)))
        (self.folder / "clock.new").replace(self.folder / "clock")

    def _note(self, kind: str, name: str) -> None:
        self.faults.append(Fault(kind, name, time.monotonic()))

    def _start_again(self, name: str) -> None:
        time.sleep(self.rng.choice([0.0, 0.2]))
        self.restart(name)

    def finish(self, seconds: float = 240) -> dict[str, Any]:
        """Wait for the coordinator's result; sites that it could not notify any more are ended."""
        code = self.processes["coordinator"].wait(seconds)
        assert code == 0, f"the coordinator ended with {code}: {self.stderr('coordinator')}"
        end = time.monotonic() + 3
        for name in self.names[1:]:
            process = self.processes[name]
            while process.poll() is None and time.monotonic() < end:
                time.sleep(0.02)
            assert process.poll() in (None, 0), f"{name} ended with {process.poll()}: {self.stderr(name)}"
        lines = (self.folder / "coordinator.out").read_text().splitlines()
        return dict(json.loads(lines[-1]))

    def close(self) -> None:
        """End all processes and release the disks."""
        self.stop()
        for link in self.links:
            link.close()
        for disk in self.disks.values():
            disk.close()

    def verify(self, result: dict[str, Any]) -> list[tuple[str, float, int]]:
        """Check answer, ledger and pulls; return for every fault that lost pulls its kind, seconds lost and pulls."""
        result.pop("transport", None)
        expected = self.expected_json()
        assert learnt(result) == learnt(expected), "the result is not that of an undisturbed run"
        distinct, losses = 0, []
        for name in self.pulling:
            pulls = self.timed_pulls(name)
            distinct += len({line for line, _ in pulls})
            losses += self._losses(name, pulls)
        assert distinct == expected["pulls"], f"{distinct} different pulls, but {expected['pulls']} are in the result"
        for kind, seconds, count in losses:
            under_way = count <= self.agents_of_process
            assert under_way or seconds <= AT_RISK[kind], (
                f"a {kind} lost {count} pulls, the first {seconds:.2f} s before"
            )
        return losses

    agents_of_process = 1
    """Agents in each process that pulls; each makes one pull at a time."""

    @property
    def pulling(self) -> list[str]:
        """The processes that pull."""
        return self.names[1:]

    def _losses(self, name: str, pulls: list[tuple[str, float]]) -> list[tuple[str, float, int]]:
        """For every fault that lost pulls: its kind, how long before it the first of them was made, how many."""
        ends = [fault for fault in self.faults if fault.process == name and fault.kind in AT_RISK]
        lost: dict[Fault, list[float]] = {}
        made: dict[str, float] = {}
        for line, at in pulls:
            if line in made:
                between = [fault for fault in ends if made[line] <= fault.at + 0.1 and fault.at <= at]
                assert between, f"a pull of {name} was repeated without a fault: {line}"
                # Before it could sync what the killed process had written, the next one may have lost its power.
                worst = max(between, key=lambda fault: AT_RISK[fault.kind])
                lost.setdefault(Fault(worst.kind, name, between[0].at), []).append(made[line])
            made[line] = at
        return [(fault.kind, max(0.0, fault.at - min(times)), len(times)) for fault, times in lost.items()]


class DisturbedLocalRun(DisturbedRun):
    """A run in one process with a checkpoint, on threads."""

    @property
    def names(self) -> list[str]:
        """The only process."""
        return ["coordinator"]

    pulling = names

    @property
    def agents_of_process(self) -> int:  # type: ignore[override]
        """All agents are in the only process."""
        return int(self.sites)

    def start(self) -> None:
        """Start the process."""
        self.restart("coordinator")

    def restart(self, name: str) -> None:
        """Start the process with the same command as before."""
        run = {**self.settings, "agents": self.sites, "team": "threads"}
        options = [word for key, value in run.items() if key != "m" for word in (f"--{key}", value)]
        arms = ("--arms", "study:candidates", "--pull", "study:score", "--m", self.settings["m"])
        self._start(name, "identify", *arms, *options, "--checkpoint", self.disks[name].folder / "run.ctlog", "--json")


ALGORITHMS = [name for name in HORIZONS if name != "uniform"]


def disturbed_run(folder: Path, certs: Path, disks: type[Disk], seed: int, faults: int) -> tuple[list[Fault], Any]:
    """Make one run, over sites or in one process, and return its faults and losses."""
    rng = random.Random(seed)
    kind = rng.choice([DisturbedRun, DisturbedRun, DisturbedLocalRun])
    folder.mkdir()
    run = kind(folder, certs, disks, rng.choice(ALGORITHMS), seed)
    try:
        run.start()
        run.disturb(faults)
        return run.faults, run.verify(run.finish())
    finally:
        run.close()
