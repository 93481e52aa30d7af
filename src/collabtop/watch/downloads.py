"""The table and the result of a run as files to download."""

import csv
import io

import msgspec

from collabtop.coordination.scoreboard import OPEN
from collabtop.display.result_table import TableRow
from collabtop.stats import wilson_interval
from collabtop.watch.watched_runs import WatchedRun

_VERDICTS = ("open", "accepted", "rejected", "settled inside an agent")


def table_rows(run: WatchedRun) -> list[TableRow]:
    """All candidates: the rows of `result.table()` if the run is finished, otherwise their current state."""
    with run.lock:
        result = run.result()
        if result is not None:
            return result.table().rows
        header, state = run.header, run.state
        if header is None:
            return []
        columns = run.replay.columns() if run.replay else None
        ranks = {arm: rank for rank, arm in enumerate(state.top or [], 1)}
        rows, unit = [], header.unit
        for arm in range(header.n):
            code = int(columns.verdicts[arm]) if columns else OPEN
            mean, pulls = (float(columns.means[arm]), int(columns.pulls[arm])) if columns else (float("nan"), 0)
            low, high = None, None
            if pulls > 0 and unit.bounded:
                low, high = unit.shown_interval(*wilson_interval(mean, pulls, population=header.pull_limit))
            rows.append(
                TableRow(
                    rank=ranks.get(arm),
                    arm=arm,
                    label=run.label(arm),
                    verdict="accepted" if arm in ranks else _VERDICTS[code],
                    round=int(columns.rounds[arm]) if columns and columns.rounds[arm] >= 0 else None,
                    phase=None,
                    mean=unit.shown(mean) if pulls else None,
                    low=low,
                    high=high,
                    pulls=pulls if pulls > 0 else None,
                    failed=int(state.failed[arm]),
                )
            )
        return rows


def as_csv(run: WatchedRun) -> str:
    """The table, one line per candidate."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(TableRow.__struct_fields__)
    writer.writerows([_safe(value) for value in msgspec.structs.astuple(row)] for row in table_rows(run))
    return text.getvalue()


def _safe(value: object) -> object:
    # A spreadsheet would evaluate a text that starts like a formula.
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def as_json(run: WatchedRun) -> bytes:
    """The result, as from `Result.to_json()`; if the run is not finished, the table so far."""
    with run.lock:
        result = run.result()
    if result is not None:
        return result.to_json().encode()
    return msgspec.json.encode({"finished": run.status == "finished", "candidates": table_rows(run)})
