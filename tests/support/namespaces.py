"""Network namespaces as hosts. As a script: three runs on eleven hosts, in namespaces that end with the script."""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import collabtop as ct

SITES = 10
RUNS = [
    ("frugal-top", "means.txt", 5, 7443),
    ("collab-top-iid", "means.txt", 5, 7444),
    ("collab-top-noniid", "groups.txt", 3, 7445),
]
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET of <sched.h>


def needs_namespaces():
    """Skip a test module if the tools for namespaces are missing."""
    if shutil.which("ip") is None or shutil.which("unshare") is None:  # .ci/run installs both
        pytest.skip("needs ip (iproute2) and unshare (util-linux)", allow_module_level=True)


def own_network(*more):
    """The words before a command that give it a separate network."""
    return ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--net", *more]


def ip(*words):
    subprocess.run(["ip", *words], check=True, stdout=subprocess.DEVNULL)


def make_hosts():
    # Named network namespaces are files in /run/netns: use a private mount for them.
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


def run_site(folder, number):
    """Move this process to its host and take part in all runs."""
    with Path(f"/run/netns/host{number}").open() as network:
        if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), _NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "setns")
    name = f"site{number}"
    for _, arms, _, port in RUNS:
        ct.join(
            f"10.77.0.1:{port}",
            ct.read_arms(folder / arms),
            site=name,
            cert=folder / "certs" / f"{name}.pem",
            journal=folder / f"{name}-journal",
            min_batch=1,
            secret=b"",
            give_up=120,
        )


def coordinate(folder):
    results = {}
    for algorithm, name, m, port in RUNS:
        events: list[Any] = []
        arms = ct.read_arms(folder / name)
        team = ct.SitesTeam(
            [f"site{number}" for number in range(SITES)],
            listen=f"10.77.0.1:{port}",
            cert=folder / "certs/coordinator.pem",
            wait=120,
            on_event=events.append,
        )
        remote = ct.RemoteArms(arms.n, agents=arms.agents)
        result = ct.identify(remote, m, agents=SITES, horizon=6_000, algorithm=algorithm, seed=9, team=team)
        hosts = {getattr(event, "site", None) for event in events} - {None}
        results[algorithm] = {**result.to_dict(), "hosts": len(hosts)}
    return results


def main():
    folder = Path(sys.argv[1])
    make_hosts()
    # Forks of this process, which has imported the package but not started gRPC, save a second of CPU time each.
    forks = multiprocessing.get_context("fork")
    sites = [forks.Process(target=run_site, args=[folder, number]) for number in range(SITES)]
    for site in sites:
        site.start()
    results = coordinate(folder)
    for site in sites:
        site.join(60)
        if site.exitcode != 0:
            raise SystemExit(f"a site ended with {site.exitcode}")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
