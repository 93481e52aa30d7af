"""Sites give the runs of the local team, word for word, and keep every law that teams keep."""

from __future__ import annotations

import sys
from pathlib import Path

import collabtop as ct
from collabtop.testing import check_team

sys.path.insert(0, str(Path(__file__).parent))
from in_threads import ThreadSites  # noqa: E402


def test_the_team_keeps_the_laws(certs):
    check_team(lambda: ThreadSites(certs))
