"""The audit file: every message that a site sends, in readable form."""

import os
from contextlib import suppress
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from collabtop.errors import FileError, reason
from collabtop.protocol import wire
from collabtop.protocol.messages import kind_of
from collabtop.protocol.packing import Packed
from collabtop.runlog.file import owner_only, write_all
from collabtop.teams.sites.frames import Answer, FromSite


class Audit:
    """A file with one JSON line per frame, written before the frame is sent: anything not in it was not sent.

    >>> import tempfile
    >>> from collabtop.teams.sites.frames import Failed
    >>> path = Path(tempfile.mkdtemp()) / "audit.jsonl"
    >>> audit = Audit(path)
    >>> audit.note(Failed(agent=0, number=3, arm=7))
    >>> audit.close()
    >>> print(path.read_text().split('"frame"')[1], end="")
    :"Failed","agent":0,"number":3,"arm":7}
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        try:
            self._file = open(Path(path), "ab", buffering=0, opener=owner_only)  # noqa: SIM115
        except OSError as error:
            raise FileError(f"audit {str(path)!r}: {reason(error)}", argument="audit") from None
        self._path = path

    def note(self, frame: FromSite) -> None:
        """Write a frame that is about to be sent."""
        self._append(readable(frame))

    def note_event(self, event: str, **fields: Any) -> None:
        """Write what a site with a policy was asked, what it declined and what it had spent; nothing is sent."""
        self._append({"event": event, **fields})

    def _append(self, fields: dict[str, Any]) -> None:
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **fields}
        before = os.fstat(self._file.fileno()).st_size
        try:
            write_all(self._file, msgspec.json.encode(line) + b"\n")
        except OSError as error:
            with suppress(OSError):  # half a line would corrupt the next one, and its frame is not sent
                self._file.truncate(before)
            raise FileError(
                f"audit {str(self._path)!r}: {reason(error)}; the message was not sent", argument="audit"
            ) from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def readable(frame: FromSite) -> dict[str, Any]:
    """A frame as plain data, with sealed and packed parts decoded."""
    if not isinstance(frame, Answer):
        return {"frame": type(frame).__name__, **msgspec.structs.asdict(frame)}
    sealed = frame.reply
    message = wire.decode(sealed.answer)
    fields = {name: _plain(value) for name, value in msgspec.structs.asdict(message).items()}
    del fields["free"], fields["chosen_from"]  # an answer never has them
    envelope = {"agent": sealed.agent, "number": sealed.number, "pulls": sealed.pulls}
    return {"frame": "Answer", **envelope, "kind": kind_of(type(message)), **fields}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.unpack().tolist() if isinstance(value, Packed) else value
