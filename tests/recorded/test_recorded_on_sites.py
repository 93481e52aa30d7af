"""The recorded runs at remote sites, over real connections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import collabtop as ct
from tests.recorded.test_recorded_runs import each_case, outcome, run
from tests.support.thread_sites import ThreadSites


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of a coordinator and ten sites."""
    folder = tmp_path_factory.mktemp("certs")
    ct.make_certificates(folder, [f"site{number}" for number in range(10)])
    return folder


@each_case
@pytest.mark.slow
def test_the_recorded_run_comes_out_at_sites(case: dict[str, Any], expected: dict[str, Any], certs: Path) -> None:
    assert outcome(run(case, ThreadSites(certs))) == expected
