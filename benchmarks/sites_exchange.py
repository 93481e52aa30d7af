"""Cost of an exchange with remote sites: milliseconds and bytes, for 2, 10 and 50 sites on this machine.

Every site has its own connection and certificate and writes every answer to its journal; up to ten sites share a
process, so that 50 sites fit on a small machine. An exchange is a request to all agents and their replies (`Pull` of
two arms, two means back). Bytes are those of messages with their envelopes, as in `ledger.transport`; bytes on the wire
are counted by a proxy in front of the coordinator and include TLS. Both count both directions. Times are measured
without the proxy; CPU time is that of the coordinator's process.

    python benchmarks/sites_exchange.py
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import collabtop as ct
from collabtop.coordination.coordinator import Coordinator
from collabtop.protocol.messages import Means, Pull
from collabtop.protocol.setup import Setup

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.proxy import Proxy

SITES_PER_PROCESS = 10
JOIN = """
import sys, threading
import collabtop as ct
folder, port, first, last = sys.argv[1], *map(int, sys.argv[2:])
def join(number):
    ct.join(f"localhost:{port}", ct.BernoulliArms([0.9, 0.1]), cert=f"{folder}/site{number}.pem",
            journal=f"{folder}/journal{number}", min_batch=1, give_up=60)
threads = [threading.Thread(target=join, args=[number]) for number in range(first, last)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def measure(agents: int, exchanges: int, *, proxied: bool) -> tuple[float, float, float, float]:
    """Milliseconds, CPU milliseconds of this process (medians), message bytes and bytes on the wire per exchange."""
    folder = tempfile.mkdtemp()
    names = [f"site{number}" for number in range(agents)]
    ct.make_certificates(folder, names)
    team = ct.SitesTeam(names, listen="localhost:0", cert=f"{folder}/coordinator.pem", wait=120)
    proxy = Proxy(team.port)
    arms = ct.RemoteArms(2)
    coordinator = Coordinator(team, Setup(ct.Problem(2, 1, agents, 100 * exchanges + 1_000), seed=1))
    coordinator.open(arms)
    sites = []
    for first in range(0, agents, SITES_PER_PROCESS):
        numbers = proxy.port if proxied else team.port, first, min(agents, first + SITES_PER_PROCESS)
        sites.append(subprocess.Popen([sys.executable, "-c", JOIN, folder, *map(str, numbers)]))
    try:
        question = Pull(np.array([0, 1]), np.array([5]))
        for _ in range(5):  # until all sites have joined and are warm
            coordinator.ask_all(question, Means)
        messages_before, wire_before, seconds, cpu = team.transport_stats().bytes, proxy.bytes, [], []
        for _ in range(exchanges):
            began, cpu_began = time.perf_counter(), time.process_time()
            coordinator.ask_all(question, Means)
            seconds.append(time.perf_counter() - began)
            cpu.append(time.process_time() - cpu_began)
        message_bytes = team.transport_stats().bytes - messages_before
        time.sleep(0.2)
        wire_bytes = proxy.bytes - wire_before
        team.finish()
    finally:
        team.close()
        for site in sites:
            site.wait(30)
        proxy.close()
    times = 1000 * statistics.median(seconds), 1000 * statistics.median(cpu)
    return *times, message_bytes / exchanges, wire_bytes / exchanges


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--exchanges", type=int, default=200)
    exchanges = parser.parse_args().exchanges
    print("| sites | ms per exchange | CPU ms | bytes per exchange | with TLS | bytes per agent | with TLS |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for agents in (2, 10, 50):
        milliseconds, cpu, *_ = measure(agents, exchanges, proxied=False)
        *_, sent, on_wire = measure(agents, exchanges // 10, proxied=True)
        per_agent = f"{sent / agents:.0f} | {on_wire / agents:.0f}"
        print(f"| {agents} | {milliseconds:.1f} | {cpu:.1f} | {sent:,.0f} | {on_wire:,.0f} | {per_agent} |", flush=True)


if __name__ == "__main__":
    main()
