"""What a search or a sort on the page costs, in time of the page's main thread, which other work does not disturb."""

from __future__ import annotations

from playwright.sync_api import Page as Tab

_ACT = """async ([kind, value]) => {
  const search = document.getElementById("search");
  if (kind === "sort") document.querySelector(`[data-key=${value}] button`).click();
  else { search.value = value; search.dispatchEvent(new Event("input")); }
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""
_ACTIONS = {
    "search": ("step", "prompt 99", "careful with", "dates", ""),
    "sort": ("label", "mean", "interval", "pulls", "verdict", "place"),
}


def milliseconds_of(tab: Tab, kind: str) -> dict[str, float]:
    """CPU time of each search, or of each sort, until the new rows are painted."""
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return 1000 * float(next(item["value"] for item in metrics if item["name"] == "TaskDuration"))

    times = {}
    for value in _ACTIONS[kind]:
        before = spent()
        tab.evaluate(_ACT, [kind, value])
        times[value] = spent() - before
    session.detach()
    return times
