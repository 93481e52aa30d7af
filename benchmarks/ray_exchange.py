"""Cost of an exchange on Ray, in milliseconds and as a ratio to the local team, and the time of large runs.

    python benchmarks/ray_exchange.py [--hosts 2] [--address HOST:PORT]

An exchange is a small request to all K agents and two numbers back from each; the table shows the median of many, and
for Ray also the tenth of them that other work on the machine disturbed least. CPU times are per exchange, of this
process (with the threads of Ray in it) and of the busiest host. Both teams are measured alternately in one process. The
large runs have 10,000 arms and 1,000 agents, and their results and ledgers are compared with those of the local team.
The time to start the hosts, once per run, is shown separately.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import collabtop as ct
from collabtop.coordination.coordinator import Coordinator
from collabtop.protocol.messages import Means, Pull
from collabtop.protocol.setup import Setup
from collabtop.teams.ray.cluster import joined_cluster

EXCHANGES = 200


class Exchange(NamedTuple):
    """The cost of an exchange, in milliseconds."""

    local: float
    ray: float
    quick: float
    """The longest of the quickest tenth on Ray."""
    driver_cpu: float
    host_cpu: float
    megabytes: float
    """The memory of the larger host."""


def measured_exchange(local: ct.LocalTeam, ray: ct.RayTeam, agents: int) -> Exchange:
    """The exchanges of both teams, measured alternately."""
    arms = ct.BernoulliArms([0.9, 0.1])
    setup = Setup(ct.Problem(n=2, m=1, agents=agents, horizon=10 * EXCHANGES), seed=1)
    seconds: dict[ct.Team, list[float]] = {local: [], ray: []}
    cpu = []
    try:
        coordinators = {team: Coordinator(team, setup) for team in seconds}
        for coordinator in coordinators.values():
            coordinator.open(arms)
        hosts = [process for _, process, _ in ray.whereabouts()]
        before = [cpu_seconds(process) for process in hosts]
        for _ in range(EXCHANGES):
            for team, coordinator in coordinators.items():
                began, cpu_began = time.perf_counter(), time.process_time()
                coordinator.ask_all(Pull(None, np.array([1])), Means)
                seconds[team].append(time.perf_counter() - began)
                if team is ray:
                    cpu.append(time.process_time() - cpu_began)
        busiest = max(cpu_seconds(process) - start for process, start in zip(hosts, before, strict=True))
        memory = max(megabytes(process) for process in hosts)
    finally:
        for team in seconds:
            team.close()
    quick = sorted(seconds[ray])[EXCHANGES // 10]
    return Exchange(
        local=1000 * median(seconds[local]),
        ray=1000 * median(seconds[ray]),
        quick=1000 * quick,
        driver_cpu=1000 * median(cpu),
        host_cpu=1000 * busiest / EXCHANGES,
        megabytes=memory,
    )


def cpu_seconds(process: int) -> float:
    """The CPU time that a process on this machine has used."""
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def megabytes(process: int) -> float:
    """The resident memory of a process on this machine."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def exchanges(hosts: int) -> Table:
    columns = ("agents", "local, ms", "ray, ms", "quick tenth", "driver CPU", "host CPU", "ray / local", "MB per host")
    table = Table(*columns, title=f"An exchange, {hosts} hosts")
    for agents in (10, 100, 1000):
        cost = measured_exchange(ct.LocalTeam(), ct.RayTeam(hosts=hosts), agents)
        times = [f"{value:.2f}" for value in (cost.local, cost.ray, cost.quick, cost.driver_cpu, cost.host_cpu)]
        table.add_row(f"{agents:,}", *times, f"{cost.ray / cost.local:.1f}", f"{cost.megabytes:.0f}")
    return table


def large_runs(hosts: int) -> Table:
    title = f"10,000 arms, 1,000 agents, {hosts} hosts"
    table = Table("algorithm", "exchanges", "local, s", "ray, s", "ray / local", "start, s", "same result", title=title)
    arms = ct.BernoulliArms(np.random.default_rng(1).uniform(0.1, 0.9, 10_000))
    for algorithm in ("frugal-top", "collab-top-iid"):
        seconds, results = [], []
        for team in ("local", ct.RayTeam(hosts=hosts)):
            began = time.perf_counter()
            results.append(ct.identify(arms, 10, agents=1_000, horizon=2_000, algorithm=algorithm, seed=1, team=team))
            seconds.append(time.perf_counter() - began)
        local, ray = (result.ledger.transport.seconds for result in results)
        same = results[0] == results[1] and results[0].ledger == results[1].ledger
        table.add_row(
            algorithm,
            str(results[1].round_trips),
            f"{local:.2f}",
            f"{ray:.2f}",
            f"{ray / local:.1f}",
            f"{seconds[1] - ray:.1f}",
            "yes" if same else "NO",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--address")
    arguments = parser.parse_args()
    console = Console(width=110)
    with joined_cluster(arguments.address, cpus=arguments.hosts):
        console.print(exchanges(arguments.hosts))
        console.print(large_runs(arguments.hosts))


if __name__ == "__main__":
    main()
