"""axe-core, which checks a page for barriers; installed from npm on first use, below the folder for temporary files."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page as Tab

_VERSION = "4.10.3"
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def _installed() -> Path:
    folder = Path(tempfile.gettempdir()) / f"collabtop-axe-core-{_VERSION}"
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if script.exists():
        return script
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: install Node.js")
    with tempfile.TemporaryDirectory() as scratch:
        command = [npm, "install", "--silent", "--no-save", "--prefix", scratch, f"axe-core@{_VERSION}"]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        if not folder.exists():
            shutil.copytree(Path(scratch), folder, dirs_exist_ok=True)
    return script


def violations(tab: Tab) -> list[str]:
    """What axe-core finds wrong with the page as it is now: rules with the elements that break them."""
    tab.evaluate(_installed().read_text(encoding="utf-8"))
    options = {"runOnly": {"type": "tag", "values": _RULES}, "resultTypes": ["violations"]}
    found: list[dict[str, Any]] = tab.evaluate("options => axe.run(document, options)", options)["violations"]
    return [f"{rule['id']}: {node['target']} {node['failureSummary']}" for rule in found for node in rule["nodes"]]
