"""A short form of `benchmarks/chaos.py`, with each kind of disk whose power can be cut."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.unmeasured import unmeasured

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "chaos.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "options"), [(4, ()), (32, ("--simulated-disks",))], ids=["loop devices", "simulated"]
)
def test_disturbed_runs_end_as_if_undisturbed(seed, options):
    """On a machine that does not allow loop devices, both use simulated disks."""
    command = [sys.executable, SCRIPT, "--runs", "2", "--faults", "6", "--seed", str(seed), *options]
    ended = subprocess.run(command, env=unmeasured(), capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    faults = re.search(r"^(\d+) faults in 2 runs on (loop|simulated) disks", ended.stdout, re.MULTILINE)
    assert faults is not None, ended.stdout
    assert int(faults[1]) >= 4
    assert "power cut" in ended.stdout
