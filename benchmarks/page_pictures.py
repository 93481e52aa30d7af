"""Makes the screenshots of the page for the docs: `python benchmarks/page_pictures.py [FOLDER]`.

A run of 120 candidates is watched live in Chromium. Screenshots are taken in the middle of the run, light and dark, and
at the end, also at the size of a phone. Another one shows a folder of four runs as a list. Check them before you commit
them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, ViewportSize, sync_playwright

import collabtop as ct
from collabtop.watch.serve import runs_in

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.page_server import page_in_thread

LIVE = """
import itertools, pathlib, sys, time
import numpy as np, collabtop as ct
means = np.sort(np.random.default_rng(4).beta(6, 3, 120))
calls, go = itertools.count(), pathlib.Path(sys.argv[1]).with_name("go")
def score(mean, rng):
    time.sleep(0.0004)
    while next(calls) > 14_000 and not go.exists():  # wait for the screenshots
        time.sleep(0.1)
    return rng.random() < mean
labels = [f"prompt {number:03d}" for number in np.random.default_rng(1).permutation(120)]
arms = ct.FunctionArms(list(map(float, means)), score, labels=labels)
ct.identify(arms, 5, agents=8, horizon=4000, seed=2, team="threads", checkpoint=sys.argv[1])
"""
WIDE: ViewportSize = {"width": 1180, "height": 820}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "images"
    chromium = shutil.which("chromium")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as scratch:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        live_screenshots(browser, Path(scratch) / "prompts.ctlog", folder)
        list_screenshot(browser, Path(scratch) / "runs", folder)
        browser.close()


def live_screenshots(browser: Browser, log: Path, folder: Path) -> None:
    log.touch()
    with page_in_thread(runs_in([log])) as page, subprocess.Popen([sys.executable, "-c", LIVE, str(log)]) as run:
        tabs = []
        for scheme in ("light", "dark"):
            tab = browser.new_context(viewport=WIDE, color_scheme=scheme, device_scale_factor=1.5).new_page()
            tab.goto(page.url + "runs/prompts.ctlog")
            tabs.append((scheme, tab))
        tab = tabs[0][1]
        tab.wait_for_function(
            "() => Number(document.getElementById('pulls').textContent.replaceAll(',', '')) > 13900", timeout=120_000
        )
        for scheme, tab in tabs:
            tab.wait_for_timeout(1_000)
            tab.screenshot(path=folder / f"watch-live-{scheme}.png")
        log.with_name("go").touch()
        run.wait()
        tab = browser.new_context(viewport=WIDE).new_page()
        tab.goto(page.url + "runs/prompts.ctlog")
        tab.wait_for_selector("#answer:visible")
        tab.wait_for_timeout(500)
        tab.screenshot(path=folder / "watch-whole.png", full_page=True)
        tab.set_viewport_size({"width": WIDE["width"], "height": 1240})
        tab.wait_for_timeout(500)
        tab.screenshot(path=folder / "watch-end.png")
        phone = browser.new_context(viewport={"width": 390, "height": 844}, device_scale_factor=2).new_page()
        phone.goto(page.url + "runs/prompts.ctlog")
        phone.wait_for_selector("#answer:visible")
        phone.wait_for_timeout(500)
        phone.evaluate("document.getElementById('tiles').scrollIntoView()")
        phone.screenshot(path=folder / "watch-phone.png")


def list_screenshot(browser: Browser, runs: Path, folder: Path) -> None:
    runs.mkdir()
    arms = ct.BernoulliArms(np.linspace(0.2, 0.9, 200) ** 1.2, labels=[f"ad {number}" for number in range(200)])
    for algorithm in ("frugal-top", "kzz", "collab-top-iid", "uniform"):
        log = runs / f"ads-{algorithm}.ctlog"
        ct.identify(arms, 3, agents=10, horizon=40_000, seed=1, algorithm=algorithm, checkpoint=log)
    with page_in_thread(runs_in([runs])) as page:
        tab = browser.new_context(viewport=WIDE, device_scale_factor=1.5).new_page()
        tab.goto(page.url)
        tab.wait_for_selector("#compare-legend li")
        tab.wait_for_timeout(500)
        tab.screenshot(path=folder / "watch-list.png", full_page=True)


if __name__ == "__main__":
    main()
