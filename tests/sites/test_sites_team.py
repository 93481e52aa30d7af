"""Sites give the runs of the local team, word for word, and keep every law that teams keep."""

from __future__ import annotations

import pytest
from in_threads import ThreadSites

from collabtop.testing import check_team

FEW = ["frugal-top", "collab-top-iid", "frugal-top-noniid"]


@pytest.mark.parametrize("algorithms", [FEW, pytest.param(None, marks=pytest.mark.long)], ids=["few", "all"])
def test_the_team_keeps_the_laws(certs, algorithms):
    check_team(lambda: ThreadSites(certs), algorithms=algorithms)
