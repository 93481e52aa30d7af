"""Makes the screenshots of the page for the docs: `python benchmarks/page_pictures.py [FOLDER]`.

An evaluation of 120 prompts on 400 questions is watched live in Chromium. Screenshots are taken in the middle of the
run, light and dark, and at the end: the whole page, a phone, a candidate, two candidates, and the second view. Others
show a folder of runs as a list, and a study. Look at them before you commit them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, ViewportSize, sync_playwright
from playwright.sync_api import Page as Tab

import collabtop as ct
from collabtop.watch.serve import runs_in

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.page_server import page_in_thread

LIVE = """
import itertools, pathlib, sys, time
import numpy as np, collabtop as ct
rng = np.random.default_rng(4)
skill, ease = rng.beta(9, 4, 120), rng.random(400)
calls, go = itertools.count(), pathlib.Path(sys.argv[1]).with_name("go")
tones = "Answer briefly./Think step by step, then answer./You are a careful support agent./Answer as an expert./" \\
    "Quote the manual where you can./If you are not sure, ask back./Use at most three sentences./Be friendly."
forms = "Return only the answer./Return JSON with the keys answer and source./Name your sources./Check all dates./" \\
    "Translate technical terms./Do not guess./Summarize the question first./Give one example./Number the steps./" \\
    "End with the next step./Prefer short words./Name the version./Keep the customer's language./Use a table./Be kind."
prompts = [f"{tone} {form}" for tone in tones.split("/") for form in forms.split("/")]
def score(prompt, question):
    time.sleep(0.0006)
    while next(calls) > 5_200 and not go.exists():  # wait for the screenshots
        time.sleep(0.1)
    number = prompts.index(prompt)
    right = 0.6 * ease[question] + 0.4 * np.random.default_rng((number, question)).random() < skill[number]
    note = f"The answer of the model to question {question}: {'right' if right else 'wrong'}."
    return ct.Reward(float(right), cost=0.0015 + 0.001 * ease[question], note=note)
arms = ct.DatasetArms(prompts, list(range(400)), score)
ct.identify(arms, 5, agents=1, horizon=9_000, seed=2, name="Support prompts, November", checkpoint=sys.argv[1])
"""
WIDE: ViewportSize = {"width": 1180, "height": 1060}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "images"
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as scratch:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        live_screenshots(browser, Path(scratch) / "prompts.ctlog", folder)
        list_screenshot(browser, Path(scratch) / "runs", folder)
        browser.close()


def live_screenshots(browser: Browser, log: Path, folder: Path) -> None:
    log.touch()
    with page_in_thread(runs_in([log])) as page, subprocess.Popen([sys.executable, "-c", LIVE, str(log)]) as run:
        address = page.url + "runs/prompts.ctlog"
        tabs = []
        for scheme in ("light", "dark"):
            tab = browser.new_context(viewport=WIDE, color_scheme=scheme, device_scale_factor=1.5).new_page()
            tab.goto(address)
            tabs.append((scheme, tab))
        tab = tabs[0][1]
        made = "() => Number(document.getElementById('pulls').textContent.replaceAll(',', '')) > 5100"
        tab.wait_for_function(made, timeout=120_000)
        for scheme, tab in tabs:
            tab.wait_for_timeout(1_500)
            tab.screenshot(path=folder / f"watch-live-{scheme}.png")
        log.with_name("go").touch()
        run.wait()
        finished_screenshots(browser, address, folder)


def finished_screenshots(browser: Browser, address: str, folder: Path) -> None:
    tab = browser.new_context(viewport=WIDE, device_scale_factor=1.5).new_page()
    opened(tab, address)
    tab.screenshot(path=folder / "watch-end.png")
    tab.screenshot(path=folder / "watch-whole.png", full_page=True)
    tab.locator("#answer-table .label-button").nth(4).click()
    tab.wait_for_selector("#candidate-pulls tbody tr")
    tab.wait_for_timeout(500)
    tab.screenshot(path=folder / "watch-candidate.png")
    tab.keyboard.press("Escape")
    for place in (4, 5):
        tab.locator("#candidate-table tbody input").nth(place).check()
    tab.get_by_role("button", name="Compare two").click()
    tab.wait_for_selector("#two-examples tbody tr")
    tab.wait_for_timeout(500)
    tab.screenshot(path=folder / "watch-two.png")
    tab.keyboard.press("Escape")
    tab.goto(address + "#communication")
    tab.wait_for_timeout(1_500)
    tab.screenshot(path=folder / "watch-communication.png", full_page=True)
    phone = browser.new_context(viewport={"width": 390, "height": 844}, device_scale_factor=2).new_page()
    opened(phone, address)
    phone.screenshot(path=folder / "watch-phone.png")


def opened(tab: Tab, address: str) -> None:
    tab.goto(address)
    tab.wait_for_function("() => document.getElementById('answer-title').textContent === 'Answer'")
    tab.wait_for_timeout(800)


def list_screenshot(browser: Browser, runs: Path, folder: Path) -> None:
    runs.mkdir()
    arms = ct.BernoulliArms(np.linspace(0.2, 0.9, 200) ** 1.2, labels=[f"ad {number}" for number in range(200)])
    for algorithm in ("frugal-top", "kzz", "collab-top-iid", "uniform"):
        log = runs / f"ads-{algorithm}.ctlog"
        ct.identify(arms, 3, agents=10, horizon=40_000, seed=1, algorithm=algorithm, checkpoint=log)
    sure = ct.BernoulliArms(np.linspace(0.2, 0.9, 20), labels=[f"headline {number}" for number in range(20)])
    ct.identify(sure, 1, agents=10, confidence=0.95, seed=1, checkpoint=runs / "headlines.ctlog")
    small = ct.datasets.uniform_means(60, seed=1)
    algorithms = ["kzz", "collab-top-iid", "frugal-top"]
    study = ct.Study(
        arms=small, algorithms=algorithms, m=[1, 5], agents=[10], horizon=[500, 1000, 2000, 4000], runs=100
    )
    study.run(runs / "sweep")
    with page_in_thread(runs_in([runs])) as page:
        tab = browser.new_context(viewport=WIDE, device_scale_factor=1.5).new_page()
        tab.goto(page.url)
        tab.wait_for_selector("#studies tbody tr")
        tab.wait_for_timeout(500)
        tab.screenshot(path=folder / "watch-list.png", full_page=True)
        tab.goto(page.url + "studies/sweep")
        tab.wait_for_selector("#study-panels canvas")
        tab.wait_for_timeout(800)
        tab.screenshot(path=folder / "watch-study.png", full_page=True)


if __name__ == "__main__":
    main()
