"""Run by the test of namespaces, in namespaces of its own that vanish with it: eleven hosts, three runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SITES, PORT = 10, 7443
JOIN = """
import sys, threading
import collabtop as ct
from pathlib import Path
folder, name = Path(sys.argv[1]), sys.argv[2]
for arms, port in (("means.txt", 7443), ("means.txt", 7444), ("groups.txt", 7445)):
    ct.join(f"10.77.0.1:{port}", ct.read_arms(folder / arms), site=name, cert=folder / "certs" / f"{name}.pem",
            journal=folder / f"{name}-journal", min_batch=1, give_up=120)
"""
COORDINATE = """
import json, sys
import collabtop as ct
from pathlib import Path
folder = Path(sys.argv[1])
runs = [
    ("frugal-top", 5, 120, None, 7443),
    ("collab-top-iid", 5, 120, None, 7444),
    ("collab-top-noniid", 3, 40, 10, 7445),
]
told = {}
for algorithm, m, n, agents, port in runs:
    came = set()
    sites, cert = [f"site{k}" for k in range(10)], folder / "certs/coordinator.pem"
    seen = lambda event: came.add(event.site)
    team = ct.SitesTeam(sites, listen=f"10.77.0.1:{port}", cert=cert, wait=120, on_event=seen)
    arms = ct.RemoteArms(n, agents=agents)
    result = ct.identify(arms, m, agents=10, horizon=6_000, algorithm=algorithm, seed=9, team=team)
    told[algorithm] = {**result.to_dict(), "hosts": len(came)}
print(json.dumps(told))
"""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    folder = Path(sys.argv[1])
    # Names of network namespaces are files in /run/netns: ours are in a mount that only we see.
    for command in (
        ["mount", "--make-rprivate", "/"],
        ["mount", "-t", "tmpfs", "tmpfs", "/run"],
        ["mkdir", "-p", "/run/netns"],
    ):
        subprocess.run(command, check=True)
    ip("link", "set", "lo", "up")
    ip("link", "add", "bridge", "type", "bridge")
    ip("addr", "add", "10.77.0.1/24", "dev", "bridge")
    ip("link", "set", "bridge", "up")
    for number in range(SITES):
        host = f"host{number}"
        ip("netns", "add", host)
        ip("link", "add", f"veth{number}", "type", "veth", "peer", "name", "eth0", "netns", host)
        ip("link", "set", f"veth{number}", "master", "bridge", "up")
        ip("-n", host, "addr", "add", f"10.77.0.{number + 10}/24", "dev", "eth0")
        ip("-n", host, "link", "set", "eth0", "up")
    sites = [
        subprocess.Popen(
            ["ip", "netns", "exec", f"host{number}", sys.executable, "-c", JOIN, str(folder), f"site{number}"],
            stdout=subprocess.DEVNULL,
        )
        for number in range(SITES)
    ]
    coordinator = subprocess.run(
        [sys.executable, "-c", COORDINATE, str(folder)], check=True, stdout=subprocess.PIPE, text=True
    )
    for site in sites:
        if site.wait(30):
            raise SystemExit("a site failed")
    print(json.dumps(json.loads(coordinator.stdout)))


if __name__ == "__main__":
    main()
