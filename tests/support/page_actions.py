"""How long a search or a sort on the page takes, by the clock."""

from __future__ import annotations

from statistics import median

from playwright.sync_api import Page as Tab

_MILLISECONDS = """async ([kind, value]) => {
  const search = document.getElementById("search");
  const began = performance.now();
  if (kind === "sort") document.querySelector(`[data-key=${value}] button`).click();
  else { search.value = value; search.dispatchEvent(new Event("input")); }
  document.body.getBoundingClientRect(); // with the layout of the new rows
  const spent = performance.now() - began;
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  return spent;
}"""
_ACTIONS = {
    "search": ("step", "prompt 99", "careful with", "dates", ""),
    "sort": ("label", "mean", "interval", "pulls", "verdict", "place"),
}


def milliseconds_of(tab: Tab, kind: str) -> dict[str, float]:
    """Time of each search, or of each sort, until the new rows are laid out: the median of three."""
    times: dict[str, list[float]] = {value: [] for value in _ACTIONS[kind]}
    for _ in range(3):
        for value, spent in times.items():
            spent.append(float(tab.evaluate(_MILLISECONDS, [kind, value])))
    return {value: median(spent) for value, spent in times.items()}
