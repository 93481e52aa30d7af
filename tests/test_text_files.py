"""Text files, settings and keys are read up to a limit, whatever the path leads to."""

from __future__ import annotations

import os
import re
import resource

import pytest

import collabtop as ct
from collabtop import text_files
from collabtop.runs.sites_run import read_run
from collabtop.studies.files import read_study
from collabtop.teams.sites.site import read_secret
from collabtop.teams.sites.site_policy import read_site_policy
from collabtop.text_files import LARGEST_SETTINGS, LARGEST_TEXT, read_text

SETTINGS = [read_run, read_site_policy, read_study]


def read_certificate(path):
    ct.SitesTeam(["north"], listen="localhost:0", cert=path)


@pytest.mark.parametrize("read", [*SETTINGS, read_secret, read_certificate])
def test_settings_and_keys_beyond_the_limit_are_refused(tmp_path, read):
    path = tmp_path / "settings"
    path.touch()
    os.truncate(path, LARGEST_SETTINGS + 1)
    with pytest.raises(ct.FileError, match=f"settings.*: more than {LARGEST_SETTINGS:,} bytes"):
        read(path)


@pytest.mark.parametrize("read", [ct.read_arms, read_text])
def test_a_text_beyond_the_limit_is_refused(tmp_path, monkeypatch, read):
    assert LARGEST_TEXT == 1 << 30
    monkeypatch.setattr(text_files, "LARGEST_TEXT", 1_000)
    (tmp_path / "means.csv").write_text("0.5\n" * 250)
    read(tmp_path / "means.csv")
    (tmp_path / "more.csv").write_text("0.5\n" * 251)
    for path in (tmp_path / "more.csv", "/dev/zero"):
        with pytest.raises(ct.FileError, match="more than 1,000 bytes"):
            read(path)


@pytest.mark.parametrize("read", SETTINGS)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("a = " + "{a = " * 20_000, "nested too deeply"),
        ("a." * 5_000 + "b = 1", "a key has more than 100 parts"),
        ("[" + "a." * 5_000 + "b]", "a key has more than 100 parts"),
        ("a = " + "9" * 5_000, "TOML: "),
        ("a = '\udc80'".encode("utf-8", "surrogateescape"), r"TOML: line 1: byte 0x80 is not UTF-8 text"),
    ],
    ids=["arrays", "tables", "key", "name of a table", "a long number", "not UTF-8"],
)
def test_malformed_settings_are_refused_in_one_line_and_with_little_memory(tmp_path, read, text, message):
    (tmp_path / "x.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ct.FileError, match=message) as caught:
        read(tmp_path / "x.toml")
    assert re.fullmatch(r".{1,400}", str(caught.value))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 << 10
