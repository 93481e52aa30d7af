"""Executes a run: its log, its listeners, its deadline, and its legs one after the other."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime
from os import PathLike
from typing import Literal

from collabtop.errors import InputError, SettingError
from collabtop.events import Event, OnEvent, RunEnded
from collabtop.runlog.file import RunLog
from collabtop.runlog.format import Extended, Finished
from collabtop.runlog.legs import Leg, last_leg
from collabtop.runlog.memory import MemoryLog
from collabtop.runs.checkpoint import make_header, open_checkpoint
from collabtop.runs.leg_run import LegRun
from collabtop.runs.page_launcher import open_page
from collabtop.runs.progress import progress_display
from collabtop.runs.result import Result
from collabtop.runs.spec import RunSpec
from collabtop.validation import positive_number, wrong_value

OnInterrupt = Literal["raise", "return"]
"""What happens at Ctrl-C: the `KeyboardInterrupt` is raised with the attribute `partial`, or `partial` is returned."""

Timeout = float | datetime
"""Seconds, or a deadline."""


class Execution:
    """One run. `run` makes it in the calling thread; other threads may stop it or, after `observe`, look at it.

    Args:
        spec: the run, with the horizon of its last leg.
        checkpoint: the file that keeps every pull and every exchange.
        extension: begin a new leg in the checkpoint.
        log: instead of a checkpoint: the log of the run, already open; it stays open.
        on_event: called with every event.
        progress: show the progress on stderr.
        watch: show the run on a page in the browser.
        timeout: stop it after so many seconds, or at this time.
        on_interrupt: what happens at Ctrl-C.
    """

    def __init__(
        self,
        spec: RunSpec,
        *,
        checkpoint: str | PathLike[str] | None = None,
        extension: Extended | None = None,
        log: RunLog | None = None,
        on_event: OnEvent | None = None,
        progress: bool = False,
        watch: bool = False,
        timeout: Timeout | None = None,
        on_interrupt: OnInterrupt = "raise",
    ) -> None:
        if on_interrupt not in ("raise", "return"):
            raise wrong_value("on_interrupt", on_interrupt, "'raise' or 'return' is needed")
        if (spec.extensions or spec.doubling) and not spec.team.messages_are_free:
            raise SettingError(
                "team has agents in other processes, which cannot use earlier rewards again: use 'local' or 'threads'",
                argument="team",
            )
        self.spec, self.on_interrupt = spec, on_interrupt
        self._seconds = seconds_until(timeout)
        self._progress, self._on_event = progress, on_event
        self._observer: OnEvent | None = None
        if watch:
            _, checkpoint = open_page(checkpoint)
        self.checkpoint = checkpoint
        """The file of the run's log, also if that is temporary (`watch`); None if there is none."""
        self._log: RunLog | MemoryLog | None = MemoryLog() if spec.doubling else None
        header = make_header(spec, logged=checkpoint is not None)
        self._leg = Leg(header, [], [])
        self._keeps_log_open = log is not None
        self._current: LegRun | None = None
        self._result: Result | None = None
        self._stopped = threading.Event()
        if checkpoint is not None:
            self._log, self._leg = open_checkpoint(checkpoint, header, extension)
        if log is not None:
            self._log, self._leg = log, last_leg(log.records) or self._leg
        if extension is not None and self._leg.header.extensions < spec.extensions:
            self._extend(extension)
        elif spec.doubling and self._leg.header.extensions:  # a resumed run
            self.spec = spec.at_leg(self._leg.header)

    def observe(self, observer: OnEvent) -> None:
        """Have `observer` called with every event, and keep what `best` needs; call it before `run`."""
        self._observer = observer

    def run(self) -> Result:
        """Make the run and return its result, or what is known when it is stopped or interrupted."""
        try:
            with ExitStack() as stack:
                if self._log is not None and not self._keeps_log_open:
                    stack.enter_context(closing(self._log))
                listener = self._listener
                if self._progress:
                    listener = stack.enter_context(progress_display(listener))
                stack.enter_context(self._deadline())
                while (result := self._run_leg(listener)) is not self._result:
                    self._double()
                return result
        except KeyboardInterrupt as interrupt:
            known = self._result or self._begin_leg(None).partial_result()
            if self.on_interrupt == "return":
                return known
            interrupt.partial = known  # type: ignore[attr-defined]
            raise

    def stop(self) -> None:
        """Stop the run after the pulls under way; may be called from any thread, at any time."""
        self._stopped.set()
        current = self._current
        if current is not None:
            current.halt()

    def best(self) -> Result:
        """What is known now, for any thread."""
        return self._result or (self._current or self._begin_leg(None)).latest_result()

    # -- legs

    def _begin_leg(self, listener: OnEvent | None) -> LegRun:
        """The leg that is being made, or the one that is about to begin."""
        if self._current is None:
            observable = self._observer is not None
            return LegRun(self.spec, self._leg, self._log, listener, observable=observable, stop=self.stop)
        return self._current

    def _run_leg(self, listener: OnEvent | None) -> Result:
        """Make a leg. Its result is the result of the run, unless another leg follows."""
        self._current = self._begin_leg(listener)
        return self._current.run(self._stopped, self._publish)

    def _publish(self, result: Result) -> None:
        """Log and publish the answer as soon as it is known: nothing that fails later can undo it."""
        log = self._log
        if result.complete and log is not None and log.answer is None:
            log.note_time()
            log.append(Finished(result.top_indices))
        if self._is_last(result):
            self._result = result
            assert self._current is not None
            if self._current.recorder.is_watched:
                top = tuple(result.top_indices)
                self._current.recorder.publish(RunEnded(top, result.time, result.pulls, result.words, result.complete))

    def _is_last(self, result: Result) -> bool:
        """Whether no leg follows: unless the horizon is doubled, and the last leg made new pulls."""
        if not (self.spec.doubling and result.complete) or not self.spec.can_double:
            return True
        made = 0 if result.observed is None else int(result.observed.pulls.sum())
        return result.reuse is not None and made == result.reuse.earlier

    def _double(self) -> None:
        horizon = 2 * self.spec.problem.horizon
        self.spec = self.spec.extended(horizon)
        self._extend(self.spec.extension)
        self._current = None

    def _extend(self, extension: Extended) -> None:
        """Begin a new leg, for which the records so far are earlier ones."""
        log = self._log
        assert log is not None
        if isinstance(log, MemoryLog):
            self._leg.records.extend(log.take())
        elif self._current is not None:  # it has added records to the file, which are not in memory
            self._leg = _read_again(log)
        log.append(extension, sync=True)
        self._leg = self._leg.extended(extension)

    # -- listeners

    @property
    def _listener(self) -> OnEvent | None:
        observer, on_event = self._observer, self._on_event
        if observer is None or on_event is None:
            return observer or on_event

        def both(event: Event) -> None:
            observer(event)
            on_event(event)

        return both

    @contextmanager
    def _deadline(self) -> Iterator[None]:
        if self._seconds is None:
            yield
            return
        timer = threading.Timer(self._seconds, self.stop)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


def _read_again(log: RunLog) -> Leg:
    """The last leg as it is in the file now."""
    leg = last_leg(log.read())
    assert leg is not None
    return leg


def seconds_until(timeout: Timeout | None) -> float | None:
    """The seconds that a timeout leaves from now on; a deadline without a time zone is in local time.

    >>> seconds_until(datetime(2020, 1, 1))
    Traceback (most recent call last):
    collabtop.errors.InputError: timeout is 2020-01-01 00:00:00, but a time in the future is needed
    """
    if timeout is None or not isinstance(timeout, datetime):
        return None if timeout is None else positive_number("timeout", timeout, of="seconds")
    seconds = (timeout - datetime.now(timeout.tzinfo)).total_seconds()
    if seconds <= 0:
        raise InputError(f"timeout is {timeout}, but a time in the future is needed", argument="timeout")
    return seconds
