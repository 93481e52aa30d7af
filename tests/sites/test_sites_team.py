"""Sites give the runs of the local team, word for word, and keep every law that teams keep."""

from __future__ import annotations

from in_threads import ThreadSites

from collabtop.testing import check_team


def test_the_team_keeps_the_laws(certs):
    check_team(lambda: ThreadSites(certs))
