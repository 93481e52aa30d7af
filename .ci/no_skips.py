"""Whether every test ran, from pytest's JUnit files: one that was skipped because a part is missing fails the build."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree


def main(files: list[Path]) -> int:
    """0 if there are tests and none was skipped; else 1, and which were is printed."""
    cases = [case for file in files for case in ElementTree.parse(file).iter("testcase")]
    # A test that was skipped has a type there, a whole file that was has none; a test known to fail did run.
    skipped = [case for case in cases if any(why.get("type") != "pytest.xfail" for why in case.iter("skipped"))]
    for case in skipped:
        print("skipped:", ".".join(filter(None, (case.get("classname"), case.get("name")))))
    print(f"{len(cases)} tests, {len(skipped)} skipped")
    return 1 if skipped or not cases else 0


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
