"""The table and the result of a run as files to download; of a run that is not finished, those so far."""

import csv
import io

import msgspec

from collabtop.display.result_table import TableRow
from collabtop.watch.watched_runs import WatchedRun


def as_csv(run: WatchedRun) -> str:
    """The rows of `result.table()`, one line per candidate."""
    with run.lock:
        rows = [] if run.header is None else run.result().table().rows
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(TableRow.__struct_fields__)
    writer.writerows([_safe(value) for value in msgspec.structs.astuple(row)] for row in rows)
    return text.getvalue()


def _safe(value: object) -> object:
    # A spreadsheet would evaluate a text that starts like a formula.
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def as_json(run: WatchedRun) -> bytes:
    """The result, as from `Result.to_json()`; null if the log holds no run yet."""
    with run.lock:
        return b"null" if run.header is None else run.result().to_json().encode()
