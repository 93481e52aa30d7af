"""A site's secret decides what it draws: by default random and kept in the journal."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import collabtop as ct
from collabtop.cli import app
from collabtop.protocol.messages import Pull, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.file import read_log
from collabtop.runlog.format import JournalHeader
from collabtop.teams.sites.journal import Journal
from tests.support.thread_sites import ThreadSites
from tests.support.untyped import untyped

RUN_ID = "0123456789abcdef" * 2
ARMS = ct.BernoulliArms(np.linspace(0.2, 0.8, 30))
SETUP = Setup(ct.Problem(n=30, m=1, agents=1, horizon=10_000), seed=1)


def run(certs, secret, **settings):
    team = ThreadSites(certs, joins={"secret": secret}, **settings)
    return ct.identify(ARMS, 3, agents=2, horizon=3_000, algorithm="uniform", seed=1, team=team)


def open_journal(folder, arms=ARMS, secret=None):
    return Journal(folder, RUN_ID, SETUP, [0], arms, 1, secret)


def answers(journal, numbers):
    return [
        journal.agents[0].answer(Request(0, number, (Pull(None, np.array([50])),))).answer.means.tolist()
        for number in numbers
    ]


def test_without_a_secret_a_run_is_identical_to_the_local_teams(certs):
    assert run(certs, b"") == ct.identify(ARMS, 3, agents=2, horizon=3_000, algorithm="uniform", seed=1)


def test_a_run_can_be_repeated_with_the_same_secrets_only(certs):
    first, again, other = (run(certs, secret) for secret in (b"one", b"one", b"two"))
    assert first == again
    assert first.estimates != other.estimates
    assert run(certs, None).estimates != run(certs, None).estimates


@pytest.mark.parametrize(
    "arms",
    [
        ARMS,
        ct.FunctionArms(list(range(30)), lambda arm, rng: rng.random()),
        ct.LoggedArms([[0, 1, 1, 0]] * 30, replace=True),
    ],
    ids=["simulated", "function", "logged"],
)
def test_a_journal_keeps_its_secret_so_a_resumed_site_draws_the_same(tmp_path, arms):
    journal = open_journal(tmp_path / "interrupted", arms)
    first = answers(journal, [1, 2])
    journal.close()
    header = read_log(tmp_path / "interrupted" / f"{RUN_ID}.ctlog")[0]
    assert isinstance(header, JournalHeader)
    assert len(header.secret) == 32
    resumed = open_journal(tmp_path / "interrupted", arms)
    assert answers(resumed, [2]) == first[1:]
    later = answers(resumed, [3])
    resumed.close()
    undisturbed = open_journal(tmp_path / "undisturbed", arms, header.secret)
    assert answers(undisturbed, [1, 2, 3]) == first + later
    undisturbed.close()


def test_a_journal_rejects_a_different_secret(tmp_path):
    open_journal(tmp_path, secret=b"one").close()
    open_journal(tmp_path, secret=None).close()
    with pytest.raises(ct.FileError, match="was written with a different secret") as caught:
        open_journal(tmp_path, secret=b"two")
    assert caught.value.argument == "secret"


def test_a_secret_that_is_not_bytes_is_rejected(certs):
    with pytest.raises(ct.InputError, match="secret is a str, but bytes are needed"):
        ct.join("localhost:1", ARMS, cert=certs / "site0.pem", secret=untyped("one"))


def test_the_command_reports_a_missing_secret_file(certs, tmp_path):
    (tmp_path / "means.txt").write_text("0.5\n0.6\n")
    arguments = ["--site", "site0", "--cert", str(certs / "site0.pem"), "--means", str(tmp_path / "means.txt")]
    ended = CliRunner().invoke(app, ["join", "localhost:1", *arguments, "--secret", str(tmp_path / "none")])
    assert ended.exit_code != 0
    assert "no such file" in ended.stderr
