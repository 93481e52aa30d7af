"""`collabtop repair`: drop what cannot be read at the end of a log."""

from pathlib import Path
from typing import Annotated

import typer

import collabtop as ct
from collabtop.cli.errors import FAILED
from collabtop.cli.output import examples, print_json

repair_examples = examples(
    "collabtop repair run.ctlog", "collabtop repair run.ctlog --json", "collabtop repair run.ctlog --drop-damaged"
)


def repair(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="FILE", help="A checkpoint, or the journal of a site or of a study.")
    ],
    drop_damaged: Annotated[
        bool,
        typer.Option(
            "--drop-damaged",
            help="If the file is damaged before its end: drop the damage and everything after it, and keep a copy.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print only JSON.")] = False,
) -> None:
    """Check a log, and drop a torn end, as a power cut leaves it.

    The exit code is 1 if the log is damaged before its end and was not changed.
    """
    report = ct.repair(checkpoint, drop_damaged=drop_damaged)
    if json:
        print_json(report)
    else:
        typer.echo("\n".join(_lines(checkpoint, report)))
    if report.state == "damaged" and not report.repaired:
        raise typer.Exit(FAILED)


def _lines(path: Path, report: "ct.RepairReport") -> list[str]:
    kept = f"{report.records:,} records with {report.pulls:,} pulls"
    if report.state == "intact":
        return [f"{path} is intact: {kept}"]
    lost = f"{report.dropped_bytes:,} bytes"
    if report.dropped_records:
        lost += f" with {report.dropped_records:,} complete records ({report.dropped_pulls:,} pulls)"
    if not report.repaired:
        return [
            f"{path} is damaged after {kept}, and was not changed",
            f"--drop-damaged would drop the damaged record and everything after it: {lost}",
        ]
    state = "had a torn end" if report.state == "torn" else "was damaged"
    backup = [f"the damaged file was kept as {report.backup}"] if report.backup else []
    return [f"{path} {state}: dropped {lost}, kept {kept}", *backup]
