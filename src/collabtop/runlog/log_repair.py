"""`repair`: drop what cannot be read at the end of a log."""

import errno
import shutil
from contextlib import suppress
from io import FileIO
from os import PathLike
from pathlib import Path
from typing import Literal

import msgspec

from collabtop.errors import FileError, reason
from collabtop.runlog.file import contents, open_locked, owner_only, sync_file
from collabtop.runlog.format import Record, Rewards, Sums
from collabtop.runlog.reading import examine


class RepairReport(msgspec.Struct, frozen=True):
    """What `repair` found in a log, and what it changed."""

    state: Literal["intact", "torn", "damaged"]
    """"torn": only the end is incomplete, as after a power cut; "damaged": complete records follow."""
    records: int
    """Records that can be used ..."""
    pulls: int
    """... and the pulls in them whose rewards the log holds."""
    dropped_bytes: int
    """Bytes after them, which cannot be used ..."""
    dropped_records: int
    """... the complete records among these bytes ..."""
    dropped_pulls: int
    """... and the pulls in those. A resumed run makes them again."""
    repaired: bool
    """Whether the bytes that cannot be used are gone now."""
    backup: str | None = None
    """The copy of a damaged log that was made before it was repaired."""


def repair(checkpoint: str | PathLike[str], *, drop_damaged: bool = False) -> RepairReport:
    """Examine a log, and drop a torn tail: a checkpoint, the journal of a site, or the journal of a study.

    A torn tail is what a power cut leaves. `resume` drops it too, so `repair` is not needed for that. A log that is
    damaged earlier is refused by `resume`. It is only repaired with `drop_damaged`, and the damaged file is kept beside
    it, with `.damaged` appended to its name. A resumed run makes the dropped pulls again.

    Args:
        checkpoint: the log.
        drop_damaged: if the log is damaged before its end, drop the damaged record and everything after it.

    Raises:
        FileError: there is no such file, it is not a log, or a run is writing to it.

    >>> import collabtop as ct, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.ctlog"
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1])
    >>> first = ct.identify(arms, m=1, agents=2, horizon=300, seed=7, checkpoint=path)
    >>> ct.repair(path).state
    'intact'
    >>> _ = path.write_bytes(path.read_bytes()[:-9] + bytes(9))          # a power cut
    >>> report = ct.repair(path)
    >>> report.state, report.repaired
    ('torn', True)
    >>> ct.resume(path, arms=arms) == first
    True
    """
    name = f"log {str(checkpoint)!r}"
    with open_locked(checkpoint, name, create=False) as file:
        records, tail = examine(contents(file, name), checkpoint)
        kept = len(records), pulls_in(records)
        if tail is None:
            return RepairReport("intact", *kept, 0, 0, 0, repaired=False)
        report = RepairReport(
            "torn" if tail.torn else "damaged", *kept, tail.size, tail.records, tail.pulls, repaired=False
        )
        if not (tail.torn or drop_damaged):
            return report
        try:
            backup = None if tail.torn else _backup(file, Path(checkpoint))
            file.truncate(tail.start)
            sync_file(file)
        except OSError as error:
            raise FileError(f"{name}: {reason(error)}", argument="checkpoint") from None
    return msgspec.structs.replace(report, repaired=True, backup=backup)


def pulls_in(records: list[Record]) -> int:
    """The number of pulls whose rewards are in these records."""
    return sum(record.pulls for record in records if isinstance(record, Rewards | Sums))


def _backup(file: FileIO, path: Path) -> str:
    """Copy a damaged log to a new file beside it, which only the owner may read while it is written."""
    for number in range(1, 1_000):
        name = f"{path}.damaged{number if number > 1 else ''}"
        with suppress(FileExistsError), open(name, "xb", opener=owner_only) as copy:
            file.seek(0)
            shutil.copyfileobj(file, copy)
            shutil.copystat(path, name)
            copy.flush()
            sync_file(copy)  # before the damaged part of the log is dropped
            return name
    raise FileExistsError(errno.EEXIST, "There are 999 copies of damaged logs already", str(path))
