"""The best 2 of 12 versions of a page, tested in 10 regions at once (non-IID).

    python examples/regions.py [--out picture.png]

Each region shows the versions to its own visitors and keeps their data. Preferences differ between regions, and a
version's value is its average over all of them, so a version that is the favourite of one region need not win.
"""

from __future__ import annotations

import argparse

import numpy as np

import collabtop as ct

VERSIONS = [f"{colour}, {words}" for colour in ("green", "blue", "red") for words in ("buy", "try", "learn", "join")]
REGIONS = 10
_rng = np.random.default_rng(5)
APPEAL = np.clip(_rng.normal(0.3, 0.06, (len(VERSIONS), 1)) + _rng.normal(0, 0.08, (len(VERSIONS), REGIONS)), 0.02, 0.9)

# A visitor: the region, and how easily this person clicks on anything.
VISITORS = [[(region, float(ease)) for ease in _rng.uniform(0.6, 1.4, 500)] for region in range(REGIONS)]


def clicks(version: str, visitor: tuple[int, float], rng: np.random.Generator) -> bool:
    region, ease = visitor
    return bool(rng.random() < min(1.0, APPEAL[VERSIONS.index(version), region] * ease))


def search(seed: int = 1, horizon: int = 4_000) -> ct.Result:
    arms = ct.DatasetArms(VERSIONS, VISITORS, clicks, by_agent=True)
    return ct.identify(arms, m=2, horizon=horizon, seed=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="save a figure of the run to this file")
    out = parser.parse_args().out
    result = search()
    print(result.table())
    print(f"{result.pulls:,} visitors; {result.words:,} words ({result.bits:,} bits) sent to or from the regions")
    if out:
        result.plot().savefig(out, dpi=100)


if __name__ == "__main__":
    main()
