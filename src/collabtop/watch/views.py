"""What the page is told of a run: sections of plain data, and after the first time only what changed."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import numpy as np

from collabtop.coordination.scoreboard import ACCEPTED, OPEN, REJECTED
from collabtop.errors import InputError
from collabtop.runlog.format import Header
from collabtop.watch.replay import Counts
from collabtop.watch.runs import WatchedRun

_LATE = 10.0
_LATE_TIMES = 3.0
_DIGITS = 9
IDLE, WORKING, LATE, AWAY, LOST = "idle", "working", "late", "away", "lost"

Sections = dict[str, Any]
PATCHED = ("arms", "rounds", "agents")
"""Sections that hold columns, a row a candidate, round or agent: of these only the rows that changed are sent."""


def view(run: WatchedRun) -> Sections:
    """All that the page shows of a run, by section."""
    with run.lock:
        header = run.header
        sections: Sections = {"version": run.version, "status": {"status": run.status, "trouble": run.trouble}}
        if header is None:
            return sections
        return {
            **sections,
            "head": _head(run, header),
            "progress": _progress(run, header),
            "cost": _cost(run),
            "agents": _agents(run, header),
            "rounds": _rounds(run),
            "arms": _arms(run),
            "beside": {"rival": msgspec.to_builtins(run.rival), "order": msgspec.to_builtins(run.order)},
            "answer": _answer(run),
        }


def changes(before: Sections | None, after: Sections) -> Sections:
    """What the page has to be told to get from one view to the next; everything, if it knows nothing yet.

    >>> changes({"version": 0, "cost": 1, "status": 2}, {"version": 0, "cost": 1, "status": 3})
    {'status': 3}
    """
    if before is None or before["version"] != after["version"]:
        # The page counts seconds on its own, by a clock that is set once.
        clock = {"clock": time.time()}
        return {"all": clock | {name: _patch({}, part) if name in PATCHED else part for name, part in after.items()}}
    told: Sections = {}
    for name, part in after.items():
        if name in PATCHED:
            patch = _patch(before.get(name, {}), part)
            if patch["at"] is None or patch["at"]:
                told[name] = patch
        elif name not in before or part != before[name]:
            told[name] = part
    return told


def apply(known: Sections | None, told: Sections) -> Sections:
    """What the page does with what it is told (there, in JavaScript): the inverse of `changes`."""
    sections = dict(known or {})
    if "all" in told:
        sections, told = {}, told["all"]
    for name, part in told.items():
        if name == "clock":
            continue
        if name not in PATCHED:
            sections[name] = part
            continue
        columns = {key: list(values) for key, values in sections.get(name, {}).items()}
        for key, values in part["columns"].items():
            column = columns.setdefault(key, [])
            for place, value in zip(part["at"] or range(len(values)), values, strict=True):
                column[place : place + 1] = [value]
        sections[name] = columns
    return sections


def _patch(before: dict[str, list[Any]], after: dict[str, list[Any]]) -> dict[str, Any]:
    """The rows that changed: their numbers (None: all), and their values by column."""
    if not before:
        return {"at": None, "columns": after}
    rows = len(next(iter(after.values())))
    known = len(next(iter(before.values())))
    changed = set(range(known, rows))
    for key, values in after.items():
        if values != before[key]:  # most columns are the same, and found to be so at once
            pairs = enumerate(zip(before[key], values, strict=False))
            changed.update(place for place, (old, new) in pairs if old != new)
    at = sorted(changed)
    return {"at": at, "columns": {key: [values[place] for place in at] for key, values in after.items()}}


def _head(run: WatchedRun, header: Header) -> Sections:
    return {
        "name": run.name,
        "n": header.n,
        "m": header.m,
        "agents": header.agents,
        "horizon": header.horizon,
        "seed": str(header.seed),  # may be larger than the integers that JavaScript has
        "algorithm": header.algorithm,
        "options": header.options,
        "why": header.why,
        "arms": header.arms_class,
        "confidence": header.confidence,
        "labels": header.labels,
        "sites": [name for name, count in run.tally.sites for _ in range(count)],
    }


def _progress(run: WatchedRun, header: Header) -> Sections:
    replay, tally = run.replay, run.tally
    told = replay is not None and replay.trouble is None
    running = run.status == "running"
    return {
        "trouble": replay.trouble if replay else None,
        "now": replay.now()._asdict() if replay and told else None,
        "round": len(replay.counts) if replay and told else None,
        "time": replay.meter.time if replay and told else int(tally.agent_pulls.max()),
        "time_is_exact": told,
        "pulls": tally.pulls,
        "failed": sum(tally.failed.values()),
        "most": header.agents * header.horizon,
        "began": tally.began,
        "last": tally.last,
        "left": tally.seconds_left if running else None,
    }


def _cost(run: WatchedRun) -> Sections:
    replay = run.replay
    if replay is not None and replay.trouble is None:
        ledger = replay.meter.ledger()
        kinds: dict[tuple[str, str], list[int]] = {}
        for entry in ledger.entries:
            total = kinds.setdefault((entry.kind, entry.direction), [0, 0, 0])
            total[:] = [total[0] + entry.messages, total[1] + entry.words, total[2] + entry.bits]
        words, bits, trips = ledger.words, ledger.bits, ledger.round_trips
    else:
        kinds = {key: [it.messages, it.words, it.bits] for key, it in run.tally.spoken.items()}
        words, bits, trips = run.tally.words, run.tally.bits, run.tally.round_trips
    rows = [[kind, direction, *counts] for (kind, direction), counts in sorted(kinds.items())]
    return {"words": words, "bits": bits, "round_trips": trips, "kinds": rows}


def _agents(run: WatchedRun, header: Header) -> dict[str, list[Any]]:
    tally = run.tally
    asked = set(run.replay.asked) if run.replay and run.replay.trouble is None else set()
    silence = time.time() - tally.heard
    late = silence > np.maximum(_LATE, _LATE_TIMES * tally.longest_silence)
    states = [_agent_state(run, agent, agent in asked, bool(late[agent])) for agent in range(header.agents)]
    heard = [None if np.isnan(at) else round(at, 1) for at in tally.heard.tolist()]
    return {"pulls": tally.agent_pulls.tolist(), "heard": heard, "state": states}


def _agent_state(run: WatchedRun, agent: int, asked: bool, late: bool) -> str:
    reach, status = run.tally.reach.get(agent), run.status
    if reach == "lost" or (reach == "away" and status == "stopped"):
        return LOST
    if status == "finished":  # nobody waits any more for those that are away
        return IDLE
    if reach == "away":
        return AWAY
    if not asked:
        return IDLE
    if status != "running":  # agents of its process went with it; those elsewhere wait for it to come back
        return IDLE if run.tally.sites else LOST
    return LATE if late else WORKING


def _rounds(run: WatchedRun) -> dict[str, list[Any]]:
    names = ("phase", "live", "pulls", "time", "words", "bits", "round_trips")
    replay = run.replay
    if replay is None or replay.trouble is not None:
        return {name: [] for name in (*names, *Counts._fields)}
    rounds, counts = replay.meter.rounds(), replay.counts
    if len(rounds) != len(counts):  # something was said before the first round
        rounds = rounds[: len(counts)]
    return {name: [getattr(one, name) for one in rounds] for name in names} | {
        name: [getattr(one, name) for one in counts] for name in Counts._fields
    }


def _arms(run: WatchedRun) -> dict[str, list[Any]]:
    tally, replay = run.tally, run.replay
    columns: dict[str, list[Any]] = {
        "seen_mean": _reals(tally.means),
        "seen_pulls": tally.seen_pulls.tolist(),
    }
    if replay is not None and replay.trouble is None:
        known = replay.columns()
        columns |= {
            "mean": _reals(known.means),
            "pulls": known.pulls.tolist(),
            "verdict": known.verdicts.tolist(),
            "round": known.rounds.tolist(),
        }
    else:
        verdicts = np.full(len(tally.seen_pulls), OPEN)
        if tally.top is not None:
            verdicts[:] = REJECTED
            verdicts[tally.top] = ACCEPTED
        nothing = [None] * len(verdicts)
        columns |= {"mean": nothing, "pulls": nothing, "verdict": verdicts.tolist(), "round": nothing}
    return columns


def _reals(values: Any) -> list[float | None]:
    return [None if value != value else value for value in np.round(values, _DIGITS).tolist()]


def _answer(run: WatchedRun) -> Sections | None:
    if run.tally.top is None:
        return None
    try:
        result = run.result()
    except InputError:
        result = None
    return {
        "top": run.tally.top,
        "sure": result.sure if result else None,
        "warnings": list(result.warnings) if result else [],
    }


def summary(run: WatchedRun) -> Sections:
    """A run as a row of the list."""
    with run.lock:
        tally, header = run.tally, run.header
        row: Sections = {"name": run.name, "status": run.status, "trouble": run.trouble}
        if header is None:
            return row
        used = None if tally.began is None or tally.last is None else tally.last - tally.began
        return row | {
            "algorithm": header.algorithm,
            "n": header.n,
            "m": header.m,
            "agents": header.agents,
            "horizon": header.horizon,
            "seed": str(header.seed),
            "pulls": tally.pulls,
            "most": header.agents * header.horizon,
            "words": tally.words,
            "bits": tally.bits,
            "round_trips": tally.round_trips,
            "used": used,
            "lost": sum(reach == "lost" for reach in tally.reach.values()),
            "top": None if tally.top is None else [run.label(arm) for arm in tally.top[:8]],
            "answer": None if tally.top is None else f"{header.arms} {sorted(tally.top)}" if header.m <= 64 else None,
            "points": tally.points,
        }
