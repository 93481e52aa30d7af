"""What the server sends to the page about a run: sections of plain data, and after the first time only the changes."""

import math
import time
from typing import Any

import msgspec
import numpy as np

from collabtop.coordination.scoreboard import ACCEPTED, OPEN, REJECTED
from collabtop.protocol.ledger import Direction, Ledger
from collabtop.protocol.messages import Reals
from collabtop.runlog.format import Header
from collabtop.runlog.log_state import MessageTotals
from collabtop.runs.evidence import Seen, shown_ends
from collabtop.runs.printing import printable
from collabtop.runs.replay import Counts
from collabtop.runs.result import Result
from collabtop.runs.warnings import border
from collabtop.stats import Z_95
from collabtop.watch.watched_runs import WatchedRun

_MIN_SECONDS_LATE = 10.0
_MIN_SILENCES_LATE = 3.0
_DIGITS = 9
IDLE, WORKING, LATE, AWAY, LOST = "idle", "working", "late", "away", "lost"

Sections = dict[str, Any]
PATCHED = ("arms", "rounds", "agents")
"""Sections of columns, with one row per candidate, round or agent: only the rows that changed are sent."""


def view(run: WatchedRun, *, brief: bool = False) -> Sections:
    """Everything that the page shows about a run, by section; `brief` leaves out what takes long to compute."""
    with run.lock:
        header = run.header
        sections: Sections = {"version": run.version, "status": {"status": run.status, "error": run.error}}
        if header is None:
            return sections
        sections |= {
            "head": _head(run, header),
            "progress": _progress(run, header),
            "money": _money(run, header),
            "health": _health(run),
            "communication": _communication(run),
            "agents": _agents(run, header),
            "rounds": _rounds(run),
            "comparison": {"baseline": msgspec.to_builtins(run.baseline), "order": msgspec.to_builtins(run.order)},
        }
        return sections if brief else sections | {"arms": _arms(run, header), "answer": _answer(run)}


def changes(before: Sections | None, after: Sections) -> Sections:
    """What to send to a page that has the view `before` (None: no view yet), so that it gets the view `after`.

    >>> changes({"version": 0, "cost": 1, "status": 2}, {"version": 0, "cost": 1, "status": 3})
    {'status': 3}
    """
    if before is None or before["version"] != after["version"]:
        # The page counts seconds on its own, with a clock that is set once.
        clock = {"clock": time.time()}
        return {"all": clock | {name: _patch({}, part) if name in PATCHED else part for name, part in after.items()}}
    changed: Sections = {}
    for name, part in after.items():
        if name in PATCHED:
            patch = _patch(before.get(name, {}), part)
            if patch["at"] is None or patch["at"]:
                changed[name] = patch
        elif name not in before or part != before[name]:
            changed[name] = part
    return changed


def merged(before: Sections | None, after: Sections) -> Sections:
    """What a page has that had the view `before` and got the changes to `after`, which may be brief.

    >>> merged({"version": 0, "cost": 1, "answer": 2}, {"version": 0, "cost": 3})
    {'version': 0, 'cost': 3, 'answer': 2}
    >>> merged({"version": 0, "cost": 1, "answer": 2}, {"version": 1, "cost": 3})
    {'version': 1, 'cost': 3}
    """
    return after if before is None or before["version"] != after["version"] else before | after


def _patch(before: dict[str, list[Any]], after: dict[str, list[Any]]) -> dict[str, Any]:
    """The rows that changed: their indices (None: all), and their values by column."""
    if not before:
        return {"at": None, "columns": after}
    rows_after = len(next(iter(after.values())))
    rows_before = len(next(iter(before.values())))
    changed = set(range(rows_before, rows_after))
    for key, values in after.items():
        if values != before[key]:  # most columns are unchanged, and comparing whole lists is fast
            pairs = enumerate(zip(before[key], values, strict=False))
            changed.update(row for row, (old, new) in pairs if old != new)
    rows = sorted(changed)
    return {"at": rows, "columns": {key: [values[row] for row in rows] for key, values in after.items()}}


def _head(run: WatchedRun, header: Header) -> Sections:
    return {
        "name": run.title,
        "n": header.n,
        "m": header.m,
        "agents": header.agents,
        "horizon": header.horizon,
        "seed": str(header.seed),  # may exceed the largest integer of JavaScript
        "algorithm": header.algorithm,
        "options": header.options,
        "why": header.why,
        "arms": header.arms_class,
        "confidence": header.confidence,
        "labels": run.labels,
        "paired": header.paired,
        "direction": header.direction,
        "bounds": header.bounds,
        "decimals": header.unit.decimals,
        "sites": [name for name, count in run.state.sites for _ in range(count)],
    }


def _progress(run: WatchedRun, header: Header) -> Sections:
    replay, state = run.replay, run.state
    return {
        "error": run.replay_error,
        "now": replay.now()._asdict() if replay else None,
        "round": len(replay.counts) if replay else None,
        "time": replay.meter.time if replay else int(state.agent_pulls.max()),
        "pulls": state.pulls,
        "failed": int(state.failed.sum()),
        "max_pulls": header.agents * header.horizon,
        "started": state.started,
        "latest": state.latest,
        "seconds_left": state.seconds_left if run.status == "running" else None,
    }


def _money(run: WatchedRun, header: Header) -> Sections | None:
    spent = run.state.calls.totals().cost
    if spent is None and header.costs is not None:
        spent = float(np.dot(header.costs, run.state.seen_pulls))
    if spent is None and header.budget is None:
        return None
    return {"spent": round(spent or 0.0, _DIGITS), "budget": header.budget}


def _health(run: WatchedRun) -> Sections:
    calls, totals = run.calls, run.state.calls.totals()
    return {
        "per_second": calls.per_second,
        "cost_per_minute": calls.cost_per_minute,
        "latency": calls.latency,
        "attempts_failed": totals.attempts_failed,
        "retries": totals.retries,
        "waited": round(calls.waited, 3),
        "errors": calls.errors.most_common(),
        "points": [[round(at, 1), pulls, round(cost, _DIGITS)] for at, pulls, cost in calls.points],
    }


def _communication(run: WatchedRun) -> Sections:
    # The replay's ledger also counts the requests that are not answered yet.
    source = run.replay.meter.ledger() if run.replay else run.state
    totals = _totals(source) if isinstance(source, Ledger) else source.messages
    rows = [[*key, kind.messages, kind.words, kind.bits] for key, kind in sorted(totals.items())]
    return {"words": source.words, "bits": source.bits, "round_trips": source.round_trips, "kinds": rows}


def _totals(ledger: Ledger) -> dict[tuple[str, Direction], MessageTotals]:
    totals: dict[tuple[str, Direction], MessageTotals] = {}
    for entry in ledger.entries:
        kind = totals.setdefault((entry.kind, entry.direction), MessageTotals())
        kind.messages += entry.messages
        kind.words += entry.words
        kind.bits += entry.bits
    return totals


def _agents(run: WatchedRun, header: Header) -> dict[str, list[Any]]:
    state = run.state
    asked = set(run.replay.asked) if run.replay else set()
    silence = time.time() - state.last_heard
    late = silence > np.maximum(_MIN_SECONDS_LATE, _MIN_SILENCES_LATE * state.longest_silence)
    states = [_agent_state(run, agent, agent in asked, bool(late[agent])) for agent in range(header.agents)]
    heard = [None if np.isnan(at) else round(at, 1) for at in state.last_heard.tolist()]
    return {"pulls": state.agent_pulls.tolist(), "heard": heard, "state": states}


def _agent_state(run: WatchedRun, agent: int, asked: bool, late: bool) -> str:
    reported, status = run.state.agent_states.get(agent), run.status
    if reported == "lost" or (reported == "away" and status == "stopped"):
        return LOST
    if status == "finished":  # the run does not wait for agents any more
        return IDLE
    if reported == "away":
        return AWAY
    if not asked:
        return IDLE
    if status != "running":  # agents in the run's process ended with it; those at sites wait for it to be resumed
        return IDLE if run.state.sites else LOST
    return LATE if late else WORKING


def _rounds(run: WatchedRun) -> dict[str, list[Any]]:
    counts = run.replay.counts if run.replay else []
    # Before the first round the meter has an entry without counts.
    rounds = run.replay.meter.rounds()[: len(counts)] if run.replay else ()
    columns = ("phase", "live", "pulls", "time", "words", "bits", "round_trips")
    return {name: [getattr(summary, name) for summary in rounds] for name in columns} | {
        name: [getattr(count, name) for count in counts] for name in Counts._fields
    }


def _arms(run: WatchedRun, header: Header) -> dict[str, list[Any]]:
    state, spent = run.state, run.calls.spent
    if spent is None and header.costs is not None:
        spent = np.multiply(header.costs, state.seen_pulls)
    seen = _estimates(
        "seen_", header, state.means, run.seen_intervals.ends(state.tally, run.evidence.evidence(), header)
    ) | {
        "seen_pulls": state.seen_pulls.tolist(),
        "failed": state.failed.tolist(),
        "spent": [None] * header.n if spent is None else _reals(spent),
    }
    if run.replay is not None:
        columns = run.replay.columns()
        return seen | {
            **_estimates("", header, columns.means, run.known_intervals.ends(columns, state.tally, header)),
            "pulls": columns.pulls.tolist(),
            "verdict": columns.verdicts.tolist(),
            "round": columns.rounds.tolist(),
        }
    verdicts = np.full(header.n, OPEN)
    if state.top is not None:
        verdicts[:] = REJECTED
        verdicts[state.top] = ACCEPTED
    unknown = dict.fromkeys(("mean", "low", "high", "pulls", "round"), [None] * header.n)
    return seen | unknown | {"verdict": verdicts.tolist()}


def _estimates(prefix: str, header: Header, means: Reals, ends: tuple[Reals, Reals]) -> dict[str, list[Any]]:
    """Means and the ends of their intervals, in the user's unit."""
    low, high = shown_ends(ends, header.unit)
    columns = {"mean": header.unit.shown(means), "low": low, "high": high}
    return {f"{prefix}{name}": _reals(column) for name, column in columns.items()}


def _reals(values: Reals) -> list[float | None]:
    """Numbers as JSON has them: None instead of NaN, and without the digits that are noise."""
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    digits = _DIGITS if 1e-3 < largest <= 1 else _DIGITS - math.floor(math.log10(largest)) if largest else 0
    rounded: list[float | None] = np.round(values, digits).tolist()
    return [None if value != value else value for value in rounded] if np.isnan(values).any() else rounded


def _answer(run: WatchedRun) -> Sections:
    """The answer, or the best that is known so far."""
    complete = run.state.top is not None
    if run.state.pulls == 0:
        nothing: Sections = {"sure": None, "warnings": [], "standings": [], "border": None}
        return {"complete": complete, "top": run.state.top or [], **nothing}
    result = run.result()
    return {
        "complete": complete,
        "top": result.top_indices,
        "sure": result.sure if complete else None,
        "warnings": [printable(line, markup=False) for line in result.warnings] if complete else [],
        "standings": [[row.places, row.thin] for row in result.standings],
        "border": _border(run, result),
    }


def _border(run: WatchedRun, result: Result) -> Sections | None:
    """The candidates on both sides of the answer's border that are hardest to separate, and their difference."""
    tally, unit = run.state.tally, result.unit
    assert run.header is not None
    pair = border(result.estimates, run.header.problem, Seen.of(tally) if tally.pulls.any() else None)
    if pair is None:
        return None
    half = unit.shown_difference(Z_95 * pair.standard_error)
    arms = {"inside": pair.accepted, "outside": pair.rejected}
    return arms | {"difference": unit.shown_difference(pair.gap), "half": half}


def _error_bound(run: WatchedRun, header: Header) -> float | None:
    """The most that the probability of a wrong answer can be; None if the run has no confidence, or reached a limit.

    A run with a confidence ends before its limits only when it is sure.
    """
    limited = header.budget is not None or run.state.agent_pulls.max() >= header.horizon
    if header.confidence is None or run.state.top is None or limited:
        return None
    return round(1 - header.confidence, _DIGITS)


def summary(run: WatchedRun) -> Sections:
    """A run as a row of the list of runs."""
    with run.lock:
        state, header = run.state, run.header
        row: Sections = {"name": run.name, "title": run.title, "status": run.status, "error": run.error}
        if header is None:
            return row
        top = state.top
        return row | {
            "algorithm": header.algorithm,
            "n": header.n,
            "m": header.m,
            "agents": header.agents,
            "horizon": header.horizon,
            "pulls": state.pulls,
            "max_pulls": header.agents * header.horizon,
            "words": state.words,
            "bits": state.bits,
            "round_trips": state.round_trips,
            "started": state.started,
            "latest": state.latest,
            "money": _money(run, header),
            "failed": int(state.failed.sum()),
            "error_bound": _error_bound(run, header),
            "confidence": header.confidence,
            "lost": sum(reported == "lost" for reported in state.agent_states.values()),
            "top": None if top is None else [printable(run.label(arm), markup=False) for arm in top[:8]],
            "answer": None if top is None or header.m > 64 else f"{header.arms} {sorted(top)}",
            "points": state.points,
        }
