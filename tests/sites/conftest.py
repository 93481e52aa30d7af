"""Certificates that the tests of sites share, and their helpers on the path."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import collabtop as ct

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # a line of gRPC's own for each broken handshake helps nobody
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def certs(tmp_path_factory):
    """A folder with an authority, the coordinator's certificate and those of fifty sites."""
    folder = tmp_path_factory.mktemp("certs")
    ct.make_certificates(folder, [f"site{number}" for number in range(50)])
    return folder
