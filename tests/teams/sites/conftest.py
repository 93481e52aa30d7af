"""Certificates that the tests of sites share."""

from __future__ import annotations

import os

import pytest

import collabtop as ct

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # a line of gRPC's own for each broken handshake helps nobody


@pytest.fixture(scope="session")
def certs(tmp_path_factory):
    """A folder with an authority, the coordinator's certificate and those of fifty sites."""
    folder = tmp_path_factory.mktemp("certs")
    ct.make_certificates(folder, [f"site{number}" for number in range(50)])
    return folder
