"""On a nearly full disk, a line that fits only in part is removed, and its frame is not sent."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCRIPT = """
import resource, signal, sys
from pathlib import Path
from collabtop.errors import FileError
from collabtop.teams.sites.audit import Audit
from collabtop.teams.sites.frames import Failed

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
audit, limits = Audit(sys.argv[1]), resource.getrlimit(resource.RLIMIT_FSIZE)
audit.note(Failed(agent=0, number=1, arm=7))
resource.setrlimit(resource.RLIMIT_FSIZE, (Path(sys.argv[1]).stat().st_size + 20, limits[1]))
try:
    audit.note(Failed(agent=0, number=2, arm=7))
except FileError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
audit.note(Failed(agent=0, number=3, arm=7))
"""


@pytest.mark.slow
def test_a_line_that_fits_only_in_part_is_removed(tmp_path):
    path = tmp_path / "sent.jsonl"
    ended = subprocess.run([sys.executable, "-c", SCRIPT, path], capture_output=True, text=True, check=True)
    assert ended.stdout.endswith("the message was not sent\n")
    assert [json.loads(line)["number"] for line in path.read_text().splitlines()] == [1, 3]
