"""Certificates for the tests of sites."""

from __future__ import annotations

import os

import pytest

import collabtop as ct

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC would print a line for each broken handshake


@pytest.fixture(scope="session")
def certs(tmp_path_factory):
    """A folder with an authority, the coordinator's certificate and the certificates of fifty sites."""
    folder = tmp_path_factory.mktemp("certs")
    ct.make_certificates(folder, [f"site{number}" for number in range(50)])
    return folder
