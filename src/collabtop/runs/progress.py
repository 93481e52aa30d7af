"""Progress of a run: a Rich display in a terminal, a bar that is updated in a notebook, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Literal, TextIO

import msgspec
from rich import progress as rich_progress
from rich.console import Console

from collabtop.events import Event, Exchanged, OnEvent, PullFailed, PullsMade, RoundBegan, RunEnded, RunStarted

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_UPDATES = 0.2


State = Literal["running", "done", "stopped", "failed"]


class Progress(msgspec.Struct, frozen=True):
    """How far a run is. Rounds are numbered from 0, as in the result."""

    state: State
    round: int
    live: int
    """Candidates that are still open, as far as the coordinator knows."""
    pulls: int
    """Pulls made so far, including those that the checkpoint held."""
    max_pulls: int
    """The most pulls that the run can make."""
    words: int
    failed: int
    """Attempts that failed."""
    seconds_left: float | None
    """At the current pace, if every allowed pull is made; None if unknown."""

    def __str__(self) -> str:
        failed = f", {self.failed:,} attempts failed" if self.failed else ""
        left = f"at most {max(0, self.max_pulls - self.pulls):,} left" if self.state == "running" else self.state
        return (
            f"round {self.round}, {self.live:,} candidates open, {self.pulls:,} pulls made, {left}, "
            f"{self.words:,} words{failed}"
        )

    def _repr_html_(self) -> str:
        share = f'value="{min(self.pulls, self.max_pulls)}" max="{max(1, self.max_pulls)}"'
        left = "" if self.seconds_left is None else f", at most {duration(self.seconds_left)} left"
        return f'<progress {share} style="width: 20em"></progress> {self}{left}'


class RunState:
    """The state of a run, from its events.

    >>> state = RunState()
    >>> state.take(RunStarted("kzz", n=8, m=1, agents=2, horizon=50, seed=1, known_pulls=0))
    >>> state.take(RoundBegan(0, "shared", live=8))
    >>> state.take(PullsMade(0, 25, recalled=False))
    >>> str(state.progress())
    'round 0, 8 candidates open, 25 pulls made, at most 75 left, 0 words'
    """

    def __init__(self) -> None:
        self.round, self.live = 0, 0
        self.made, self.most, self.recalled = 0, 0, 0
        self.words, self.failed = 0, 0
        self.state: State = "running"
        self._began = time.monotonic()

    def take(self, event: Event) -> None:
        """Take in an event."""
        match event:
            case RunStarted():
                self.most, self.live = event.agents * event.horizon, event.n
            case RoundBegan():
                self.round, self.live = event.round, event.live
            case PullsMade():
                self.made += event.pulls
                self.recalled += event.pulls if event.recalled else 0
            case PullFailed():
                self.failed += 1
            case Exchanged():
                self.words = event.words
            case RunEnded():
                self.words, self.state = event.words, "done" if event.complete else "stopped"

    @property
    def seconds_left(self) -> float | None:
        """An estimate at the current pace, if every allowed pull is made."""
        fresh = self.made - self.recalled
        return None if not fresh else (time.monotonic() - self._began) / fresh * (self.most - self.made)

    def progress(self, state: State | None = None) -> Progress:
        """How far the run is; `state` if it is known better than from events."""
        return Progress(
            state=state or self.state,
            round=self.round,
            live=self.live,
            pulls=self.made,
            max_pulls=self.most,
            words=self.words,
            failed=self.failed,
            seconds_left=self.seconds_left if self.state == "running" else None,
        )


@contextmanager
def progress_display(on_event: OnEvent | None, stream: TextIO | None = None) -> Iterator[OnEvent]:
    """An event handler that shows the progress of the run, and passes events on."""
    state = RunState()
    console = Console(file=stream or sys.stderr)
    display = _display_for(console)

    def watch(event: Event) -> None:
        state.take(event)
        display.show(state)
        if on_event is not None:
            on_event(event)

    try:
        yield watch
    finally:
        display.close(state)


def _display_for(console: Console) -> "_RichDisplay | _NotebookDisplay | _LineDisplay":
    if console.is_jupyter:
        with suppress(ImportError):
            return _NotebookDisplay()
    return _RichDisplay(console) if console.is_terminal else _LineDisplay(console, overwrite=console.is_jupyter)


class _NotebookDisplay:
    """A bar below the cell, which is updated in place; a front end without HTML shows the text."""

    def __init__(self) -> None:
        display: Any = import_module("IPython.display").display
        self._handle = display(RunState().progress(), display_id=True)
        if self._handle is None:
            raise ImportError("IPython is installed, but this is not a notebook")
        self._next = 0.0

    def show(self, state: RunState) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _SECONDS_BETWEEN_UPDATES
            self.close(state)

    def close(self, state: RunState) -> None:
        self._handle.update(state.progress())


class _RichDisplay:
    def __init__(self, console: Console) -> None:
        text, fields = rich_progress.TextColumn("{task.description}"), rich_progress.TextColumn("{task.fields[left]}")
        columns = text, rich_progress.BarColumn(), rich_progress.TimeElapsedColumn(), fields
        self._progress = rich_progress.Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task("starting", total=None, left="")
        self._progress.start()

    def show(self, state: RunState) -> None:
        left = "" if state.seconds_left is None else f"at most {duration(state.seconds_left)} left"
        self._progress.update(
            self._task, description=str(state.progress()), completed=state.made, total=state.most or None, left=left
        )

    def close(self, state: RunState) -> None:
        self._progress.stop()


class _LineDisplay:
    def __init__(self, console: Console, *, overwrite: bool) -> None:
        self._file, self._overwrite = console.file, overwrite
        self._next = 0.0

    def show(self, state: RunState) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + (_SECONDS_BETWEEN_UPDATES if self._overwrite else _SECONDS_BETWEEN_LINES)
            self._write(state, end="" if self._overwrite else "\n")

    def close(self, state: RunState) -> None:
        self._write(state, end="\n")

    def _write(self, state: RunState, end: str) -> None:
        progress = state.progress()
        left = "" if progress.seconds_left is None else f", at most {duration(progress.seconds_left)} left"
        self._file.write(("\r" if self._overwrite else "") + f"{progress}{left}{end}")
        self._file.flush()


def duration(seconds: float) -> str:
    """Seconds in readable units.

    >>> duration(5), duration(125), duration(7_300)
    ('5 s', '2 min 5 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
