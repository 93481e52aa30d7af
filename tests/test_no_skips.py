"""What .ci/run says of tests that did not run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NO_SKIPS = Path(__file__).parents[1] / ".ci" / "no_skips.py"

pytestmark = pytest.mark.slow

PASSES = "def test_a(): pass"
FAILS_AS_KNOWN = "import pytest\n@pytest.mark.xfail\ndef test_a(): assert False"
SKIPPED = {
    "a test": "import pytest\ndef test_a(): pytest.skip('no part')",
    "a mark": "import pytest\n@pytest.mark.skipif(True, reason='no part')\ndef test_a(): pass",
    "a file": "import pytest\npytest.skip('no part', allow_module_level=True)",
    "an import": "import pytest\npytest.importorskip('no_such_part')",
    "a doctest": "def f():\n    '''\n    >>> f()  # doctest: +SKIP\n    '''",
}


@pytest.fixture
def verdict(tmp_path):
    """Run pytest on files of this content, and .ci/no_skips.py on what it wrote."""

    def run(*contents, workers=0):
        for number, content in enumerate(contents):
            (tmp_path / f"test_{number}.py").write_text(content)
        report = tmp_path / "report.xml"
        options = ["--doctest-modules", f"-n{workers}", "--rootdir", tmp_path, f"--junit-xml={report}"]
        subprocess.run([sys.executable, "-m", "pytest", "-q", *options, tmp_path], cwd=tmp_path, capture_output=True)
        return subprocess.run([sys.executable, NO_SKIPS, report], capture_output=True, text=True)

    return run


def test_tests_that_ran_pass_and_so_do_those_known_to_fail(verdict):
    said = verdict(PASSES, FAILS_AS_KNOWN)
    assert (said.returncode, said.stdout) == (0, "2 tests, 0 skipped\n")


def test_whatever_is_skipped_in_whatever_way_fails_the_build_and_is_named(verdict):
    said = verdict(PASSES, *SKIPPED.values(), workers=1)
    assert said.returncode == 1
    named = [line for line in said.stdout.splitlines() if line.startswith("skipped: ")]
    assert sorted(line[: len("skipped: test_1")] for line in named) == [
        f"skipped: test_{number}" for number in range(1, 6)
    ]


def test_no_tests_at_all_fail_the_build(verdict):
    assert verdict().returncode == 1
