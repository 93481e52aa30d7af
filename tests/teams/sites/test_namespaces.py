"""A coordinator and ten sites on eleven hosts, which are network namespaces connected by a bridge."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import collabtop as ct
from tests.support.namespaces import needs_namespaces, own_network

pytestmark = pytest.mark.slow

SITES = 10
SCRIPT = Path(__file__).parents[2] / "support" / "namespaces.py"
MEANS = np.random.default_rng(4).uniform(0.1, 0.9, 120)
GROUPS = np.random.default_rng(5).uniform(0.1, 0.9, (40, SITES))

needs_namespaces()


def test_ten_sites_on_separate_hosts_give_the_results_and_ledgers_of_the_local_team(tmp_path):
    ct.make_certificates(tmp_path / "certs", [f"site{number}" for number in range(SITES)], hosts=["10.77.0.1"])
    np.savetxt(tmp_path / "means.txt", MEANS)
    np.savetxt(tmp_path / "groups.txt", GROUPS)
    ended = subprocess.run(
        [*own_network("--mount", "--pid", "--fork", "--kill-child"), sys.executable, SCRIPT, tmp_path],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    results = json.loads(ended.stdout)
    means, groups = ct.read_arms(tmp_path / "means.txt"), ct.read_arms(tmp_path / "groups.txt")
    for algorithm, arms, m, horizon in (
        ("frugal-top", means, 5, 6_000),
        ("collab-top-iid", means, 5, 6_000),
        ("collab-top-noniid", groups, 3, 6_000),
    ):
        expected = ct.identify(arms, m, agents=SITES, horizon=horizon, algorithm=algorithm, seed=9)
        result = results[algorithm]
        assert result.pop("hosts") == SITES
        assert result == json.loads(expected.to_json())
