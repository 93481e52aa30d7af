"""What a site has spent over all of its runs: questions answered, and pulls of each candidate."""

import hashlib
import math
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from collabtop.errors import FileError, reason

_WAIT_SECONDS = 30.0
"""How long to wait for another process of the site that uses the file."""

_TABLES = """
CREATE TABLE IF NOT EXISTS questions (run TEXT, agent INTEGER, number INTEGER, PRIMARY KEY (run, agent, number));
CREATE TABLE IF NOT EXISTS draws (run TEXT, agent INTEGER, first INTEGER, what TEXT,
                                  PRIMARY KEY (run, agent, first, what));
CREATE TABLE IF NOT EXISTS privacy (run TEXT PRIMARY KEY, unit TEXT NOT NULL, rho REAL NOT NULL);
CREATE TABLE IF NOT EXISTS candidates (label TEXT PRIMARY KEY, pulls INTEGER NOT NULL);
"""


class OverBudget(Exception):  # noqa: N818  (the site's policy turns it into an answer to the coordinator)
    """The site's budget does not allow this."""


class _DamagedError(Exception):
    """The file holds something that no site has written."""


_Number = TypeVar("_Number", int, float)


def _counted(name: str, value: Any, kind: type[_Number]) -> _Number:
    """A number from the file: SQLite stores anything in any column."""
    if not isinstance(value, kind) or not 0 <= value < math.inf:
        raise _DamagedError(f"it is damaged: {name} is {value!r:.80}")
    return value


class SiteBudget:
    """A file that counts what a site spends, in all runs and processes; what was counted survives a power cut.

    Everything is counted before it is done. A question or draw that is repeated after a restart is counted once.

    Args:
        path: the SQLite file; it is created readable by its owner only.
        questions: the most questions that may be answered; None: no limit.
        pulls_per_candidate: the most pulls of each candidate; None: no limit.
        rho: the zCDP parameter of all runs together; None: no limit.

    >>> import tempfile
    >>> budget = SiteBudget(Path(tempfile.mkdtemp()) / "budget.db", pulls_per_candidate=50)
    >>> for run in ("monday", "tuesday"):
    ...     budget.charge_pulls(run, agent=0, first=0, labels=["a", "b"], pulls=[20, 30])
    Traceback (most recent call last):
        ...
    collabtop.teams.sites.site_budget.OverBudget: candidate 'b' had 30 pulls, and 30 more exceed its budget of 50
    >>> budget.spent()
    (0, {'a': 20, 'b': 30})
    >>> budget.close()
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        questions: int | None = None,
        pulls_per_candidate: int | None = None,
        rho: float | None = None,
    ) -> None:
        self._path, self._questions, self._pulls, self._rho = Path(path), questions, pulls_per_candidate, rho
        self._lock = Lock()
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise FileError(f"budget {str(path)!r}: {reason(error)}", argument="journal") from None
        with self._errors_named():
            self._file = sqlite3.connect(
                self._path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._file.execute("PRAGMA synchronous = FULL")
            self._file.executescript(_TABLES)

    def charge_question(self, run: str, agent: int, number: int) -> None:
        """Count a question; raise `OverBudget` if there were too many."""
        with self._transaction() as file:
            new = file.execute("INSERT OR IGNORE INTO questions VALUES (?, ?, ?)", (run, agent, number)).rowcount
            if new and self._questions is not None:
                [asked] = file.execute("SELECT COUNT(*) FROM questions").fetchone()
                if asked > self._questions:
                    raise OverBudget(
                        f"this site has answered {asked - 1} questions in all runs, its budget is {self._questions}"
                    )

    def charge_pulls(self, run: str, agent: int, first: int, labels: Sequence[str], pulls: Sequence[int]) -> None:
        """Count the pulls of a draw, which begins with the agent's pull `first`; raise `OverBudget` if too many."""
        what = hashlib.sha256(repr((list(labels), list(pulls))).encode()).hexdigest()[:32]
        with self._transaction() as file:
            if not file.execute("INSERT OR IGNORE INTO draws VALUES (?, ?, ?, ?)", (run, agent, first, what)).rowcount:
                return
            for label, count in zip(labels, pulls, strict=True):
                row = file.execute("SELECT pulls FROM candidates WHERE label = ?", (label,)).fetchone()
                before = _counted("pulls", row[0], int) if row else 0
                if self._pulls is not None and before + count > self._pulls:
                    raise OverBudget(
                        f"candidate {label!r} had {before} pulls, and {count} more exceed its budget of {self._pulls}"
                    )
                file.execute("INSERT OR REPLACE INTO candidates VALUES (?, ?)", (label, before + count))

    def charge_privacy(self, run: str, unit: str, rho: float) -> None:
        """Count the privacy of a run, once; raise `OverBudget` if all runs together would spend too much."""
        with self._transaction() as file:
            if not file.execute("INSERT OR IGNORE INTO privacy VALUES (?, ?, ?)", (run, unit, rho)).rowcount:
                return
            rows = file.execute("SELECT unit, rho FROM privacy").fetchall()
            total = math.fsum(_counted("rho", spent, float) for _, spent in rows)
            if any(other != unit for other, _ in rows):
                raise OverBudget(f"earlier runs of this site did not have privacy of each {unit}: keep the same unit")
            if self._rho is not None and total > self._rho * (1 + 1e-9):
                raise OverBudget("this run would exceed the privacy budget of all runs (total_epsilon)")

    def spent_rho(self) -> float:
        """The zCDP parameter of all runs so far."""
        with self._transaction() as file:
            return math.fsum(_counted("rho", rho, float) for (rho,) in file.execute("SELECT rho FROM privacy"))

    def spent(self) -> tuple[int, dict[str, int]]:
        """Questions answered so far, and pulls of each candidate."""
        with self._transaction() as file:
            [asked] = file.execute("SELECT COUNT(*) FROM questions").fetchone()
            rows = file.execute("SELECT label, pulls FROM candidates ORDER BY label")
            return asked, {label: _counted("pulls", pulls, int) for label, pulls in rows}

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._errors_named():
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield self._file
            except BaseException:
                self._file.execute("ROLLBACK")
                raise
            self._file.execute("COMMIT")

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, _DamagedError) as error:
            raise FileError(
                f"budget {str(self._path)!r}: {error}; without it nothing is pulled", argument="journal"
            ) from None
