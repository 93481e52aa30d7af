"""Certificates, and a team whose sites live in threads of the test's own process."""

from __future__ import annotations

import threading

import pytest

import collabtop as ct


@pytest.fixture(scope="session")
def certs(tmp_path_factory):
    """A folder with an authority, the coordinator's certificate and those of fifty sites."""
    folder = tmp_path_factory.mktemp("certs")
    ct.make_certificates(folder, [f"site{number}" for number in range(50)])
    return folder
