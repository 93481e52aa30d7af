"""Cost of the page in a long run: `python benchmarks/watch_events.py`, for 10,000 candidates and an hour of events.

The log of a real run is divided into ten events per second, as if its pulls were slow. The benchmark measures

- in the server, at the beginning, in the middle and at the end of the hour: CPU time and bytes sent per event, while
  the log is read five times per second, as it is when the page is open;
- in Chromium: seconds until the first paint and until the whole log is on the page, the heap of the page and the
  memory of the server (a process of its own) by then, how long a search and a sort of all candidates take
  until the new rows are laid out, and, while the run continues at its pace (a process writes the log), the time
  between frames and the longest task.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, zip_longest
from pathlib import Path

import msgspec
import numpy as np
from playwright.sync_api import Page as Tab
from playwright.sync_api import sync_playwright

import collabtop as ct
from collabtop.runlog.file import RunLog, read_log
from collabtop.runlog.format import Exchange, Finished, Record, Rewards, Timestamp
from collabtop.watch.serve import runs_in
from collabtop.watch.views import changes, view
from collabtop.watch.watched_runs import WatchedRun

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.evaluations import long_label
from tests.support.page_actions import milliseconds_of
from tests.support.page_server import page_in_thread

EVENTS_PER_SECOND, READS_PER_SECOND, AGENTS, PULLS = 10, 5, 20, 10  # 100 pulls per second
FRAMES = """async (seconds) => {
  const gaps = [], tasks = [];
  const take = (list) => list.getEntries().forEach((task) => tasks.push(task.duration));
  new PerformanceObserver(take).observe({type: "longtask"});
  const deadline = performance.now() + 1000 * seconds;
  let before = performance.now();
  while (before < deadline) {
    await new Promise(requestAnimationFrame);
    const now = performance.now(); gaps.push(now - before); before = now;
  }
  gaps.sort((a, b) => a - b);
  return {median: gaps[gaps.length >> 1], p99: gaps[Math.floor(gaps.length * 0.99)], longest: gaps.at(-1), tasks};
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=3_600, help="duration of the watched run")
    parser.add_argument("--measured", type=int, default=20, help="seconds per measurement")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "whole.ctlog"
        records = hour_of_events(log, options.candidates, options.seconds)
        print(f"{options.candidates:,} candidates, {AGENTS} agents, {len(records):,} records, ", end="")
        print(f"{log.stat().st_size:,} bytes")
        print("\n| server | CPU per event | bytes per event | CPU in use |\n| --- | --- | --- | --- |")
        for name, fraction in (("first minute", 0.0), ("half way", 0.5), ("last minute", 0.97)):
            cpu, size = server_cost(log.with_name(f"{fraction}.ctlog"), records, fraction, options.measured)
            print(f"| {name} | {1000 * cpu:.2f} ms | {size:,.0f} | {cpu * EVENTS_PER_SECOND:.0%} |")
        in_browser(log, records, options.measured)


def hour_of_events(path: Path, candidates: int, seconds: int) -> list[Record]:
    """The records of a run, ten per second with agents in turn, and a timestamp every second."""
    means = np.random.default_rng(1).uniform(0.05, 0.95, candidates).tolist()
    labels = [long_label(number) for number in range(candidates)]
    ct.identify(
        ct.FunctionArms(means, lambda mean, rng: rng.random() < mean, labels=labels),
        10,
        agents=AGENTS,
        horizon=seconds * EVENTS_PER_SECOND * PULLS // AGENTS,
        algorithm="kzz",
        seed=1,
        checkpoint=path,
    )
    records: list[Record] = []
    drawn: dict[int, list[Rewards]] = {}
    events = 0
    for record in read_log(path):
        if isinstance(record, Rewards):
            drawn.setdefault(record.agent, []).extend(pieces(record))
            continue
        if isinstance(record, Exchange):
            for rewards in chain(*zip_longest(*drawn.values())):
                if rewards is not None:
                    if events % EVENTS_PER_SECOND == 0:
                        records.append(Timestamp(1.8e9 + events / EVENTS_PER_SECOND))
                    records.append(rewards)
                    events += 1
            drawn = {}
        if not isinstance(record, Timestamp):
            records.append(record)
    path.unlink()
    write(path, records)
    return records


def pieces(record: Rewards) -> Iterator[Rewards]:
    """A record divided into several records of a few pulls each."""
    arms = np.repeat(np.frombuffer(record.arms, "<i4"), np.frombuffer(record.counts, "<i4"))
    for start in range(0, len(arms), PULLS):
        part = arms[start : start + PULLS].astype("<i4")
        counts = np.ones_like(part).tobytes()
        rewards = record.rewards[8 * start : 8 * (start + PULLS)]
        yield Rewards(record.agent, record.first + start, part.tobytes(), counts, rewards)


def write(path: Path, records: list[Record]) -> RunLog:
    log = RunLog(path)
    for record in records:
        log.append(record)
    return log


def server_cost(path: Path, records: list[Record], fraction: float, seconds: int) -> tuple[float, float]:
    """CPU seconds and bytes per event, starting at that fraction of the run."""
    position = int(fraction * len(records)) + 1
    log = write(path, records[:position])
    run = WatchedRun(path, path.name)
    before, size, cpu = caught_up(run), 0, 0.0
    step, events = EVENTS_PER_SECOND // READS_PER_SECOND, 0
    for _ in range(seconds * READS_PER_SECOND):
        for record in records[position : position + step]:
            log.append(record)
        position, events = position + step, events + step
        start = time.process_time()
        after = current_view(run)
        size += len(msgspec.json.encode(changes(before, after)))
        cpu += time.process_time() - start
        before = after
    log.close()
    return cpu / events, size / events


def caught_up(run: WatchedRun) -> dict[str, object]:
    """The view after the whole log is read, which takes several reads, and the baseline is simulated."""
    before = None
    while run.baseline is None or run.state.pulls != before:
        before = run.state.pulls
        current_view(run)
        time.sleep(0.05)
    return current_view(run)


def current_view(run: WatchedRun) -> dict[str, object]:
    run._last_read = 0.0
    run.update(replay=True)
    return view(run)


def in_browser(log: Path, records: list[Record], seconds: int) -> None:
    """Print the times that a user of the page experiences."""
    half = log.with_name("half.ctlog")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_context(viewport={"width": 1200, "height": 900}).new_page()
        print("\n| page | |\n| --- | --- |")
        with server_of(log) as (url, process):
            start = time.monotonic()
            tab.goto(url + "runs/whole.ctlog")
            paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            tab.wait_for_function(f"() => performance.getEntriesByName('first-contentful-paint').length && {paint} > 0")
            print(f"| first paint | {tab.evaluate(paint) / 1000:.2f} s |")
            tab.wait_for_function(
                "() => document.getElementById('answer-title').textContent === 'Answer'", timeout=300_000
            )
            print(f"| the whole log on the page | {time.monotonic() - start:.2f} s |")
            tab.locator("#candidate-table .label-button").first.click()
            tab.wait_for_selector("#candidate-pulls tbody tr", timeout=60_000)
            tab.keyboard.press("Escape")
            for kind in ("search", "sort"):
                times = milliseconds_of(tab, kind).values()
                middle, slowest = statistics.median(times), max(times)
                print(f"| {kind} of all candidates: median, slowest | {middle:.0f}, {slowest:.0f} ms |")
            print(f"| heap of the page | {heap_of(tab) / 1e6:.0f} MB |")
            print(f"| memory of the server, at most | {peak_bytes(process.pid) / 1e6:.0f} MB |")
            tab.goto("about:blank")
        middle = len(records) // 2
        more = [record for record in records[middle:] if not isinstance(record, Finished)]
        ready, stop = multiprocessing.Event(), multiprocessing.Event()
        writer = multiprocessing.Process(target=keep_writing, args=(half, records[:middle], more, ready, stop))
        writer.start()
        ready.wait()
        with page_in_thread(runs_in([half])) as page:
            tab.goto(page.url + "runs/half.ctlog")
            tab.wait_for_selector("#candidate-table .label-button", timeout=300_000)
            tab.wait_for_timeout(3_000)
            report(tab, seconds)
            tab.goto("about:blank")
        stop.set()
        writer.join()
        browser.close()


@contextmanager
def server_of(log: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`collabtop watch` of a log, in a process of its own."""
    command = [sys.executable, "-m", "collabtop", "watch", str(log), "--port", "0", "--no-open"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        yield next(word for word in process.stderr.readline().split() if word.startswith("http://")), process
        process.terminate()


def peak_bytes(process: int) -> int:
    return int(re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[0]) << 10


def heap_of(tab: Tab) -> float:
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable")
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(item["value"] for item in metrics if item["name"] == "JSHeapUsedSize"))


def report(tab: Tab, seconds: int) -> None:
    frames = tab.evaluate(FRAMES, seconds)
    tasks = frames["tasks"]
    print(f"| time between frames during the run: median, 99% | {frames['median']:.1f}, {frames['p99']:.1f} ms |")
    print(f"| longest time between frames | {frames['longest']:.0f} ms |")
    typical = statistics.median(tasks) if tasks else 0
    print(f"| tasks longer than 50 ms in {seconds} s: count, median | {len(tasks)}, {typical:.0f} ms |")


def keep_writing(path: Path, before: list[Record], records: list[Record], ready, stop) -> None:
    log = write(path, before)
    ready.set()
    for record in records:
        if stop.wait(1 / EVENTS_PER_SECOND):
            break
        log.append(record)
    log.close()


if __name__ == "__main__":
    main()
