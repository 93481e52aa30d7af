"""A handle of a run in the background: look at it, stop it, wait for it, follow its events."""

import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from html import escape
from itertools import islice
from types import TracebackType
from typing import Self

from collabtop.errors import InputError
from collabtop.events import Event
from collabtop.runs.execute import Execution
from collabtop.runs.page_launcher import InlinePage, inline_page
from collabtop.runs.progress import Progress, RunState
from collabtop.runs.result import Result
from collabtop.validation import positive_number

_KEPT_EVENTS = 10_000
"""Events that are kept for iterations."""


class Run:
    """A run in the background, as `start` returns it. All of its methods may be called from any thread.

    Iterate over it to follow its events, until it ends. Leaving a `with` block stops it, if it is still running, and
    waits until it has ended.

    >>> import collabtop as ct
    >>> def score(prompt, rng):
    ...     return rng.random() < len(prompt) / 20
    >>> prompts = ["short", "polite", "step by step"]
    >>> with ct.start(prompts, m=1, pull=score, agents=2, horizon=60, seed=1) as run:
    ...     scored = [event for event in run if isinstance(event, ct.events.Scored)]
    >>> run.result().top
    ['step by step']
    >>> sum(score.pulls for event in scored for score in event.scores) == run.result().pulls
    True
    """

    def __init__(self, execution: Execution) -> None:
        self._state, self._feed, self._execution = RunState(), _EventFeed(), execution
        execution.observe(self._handle)
        self._future: Future[Result] = Future()
        # A daemon: the process may end while a pull hangs. Completed pulls are in the checkpoint.
        self._thread = threading.Thread(target=self._run, name="collabtop run", daemon=True)
        self._thread.start()

    def best(self) -> Result:
        """The best answer known now, with intervals in its `table()`; `complete` is False until the run has ended.

        It consists of the candidates that are accepted already, then of the open ones that are surely good: by the
        lower ends of their intervals, from all rewards that this process has seen. At the end it is the result.
        """
        return self._execution.best()

    @property
    def progress(self) -> Progress:
        """How far the run is."""
        failed = self._future.done() and self._future.exception() is not None
        return self._state.progress("failed" if failed else None)

    def stop(self) -> None:
        """Stop the run after the pulls under way, and return at once; `result()` then has what is known.

        With a checkpoint, `resume` continues it.
        """
        self._execution.stop()

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the run to end and return its result; an error of the run is raised here.

        At Ctrl-C the run is stopped, and what is known is raised or returned, as `on_interrupt` says.

        Args:
            timeout: the most seconds to wait.

        Raises:
            TimeoutError: the run has not ended by then; it continues.
        """
        seconds = None if timeout is None else positive_number("timeout", timeout, of="seconds")
        try:
            result = self._future.result(seconds)
        except TimeoutError:
            if self._future.done():  # the run itself raised it
                raise
            raise TimeoutError(
                f"the run has not ended within {seconds:g} s; it continues: see best(), or end it with stop()"
            ) from None
        except KeyboardInterrupt as interrupt:
            if self._future.done():  # raised in the run
                raise
            return self._interrupted(interrupt)
        self._thread.join()
        return result

    def _interrupted(self, interrupt: KeyboardInterrupt) -> Result:
        self.stop()
        result = self._future.result()  # a second Ctrl-C ends this wait
        self._thread.join()
        if self._execution.on_interrupt == "return":
            return result
        interrupt.partial = result  # type: ignore[attr-defined]
        raise interrupt

    def view(self, height: int = 800) -> InlinePage:
        """The page of the run (`docs/watch.md`), which a notebook shows inline.

        The run needs a log: start it with `checkpoint=...`, or with `watch=True` for a temporary one.

        Args:
            height: the height of the page, in pixels.
        """
        log = self._execution.checkpoint
        if log is None:
            raise InputError(
                "the run has no log, but view() needs one: start it with checkpoint=..., or with watch=True",
                argument="checkpoint",
            )
        return inline_page(log, height)

    def _repr_html_(self) -> str:
        return f"<p>{escape(self._execution.spec.algorithm.title)}</p>{self.progress._repr_html_()}"

    def __iter__(self) -> Iterator[Event]:
        """The events of the run so far, and then each as it occurs, until the run ends.

        If more than 10,000 events have not been taken yet, the oldest are left out.
        """
        return self._feed.events()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._thread.join()

    def __repr__(self) -> str:
        return f"<Run of {self._execution.spec.algorithm.title}: {self.progress}>"

    def _handle(self, event: Event) -> None:
        self._state.take(event)
        self._feed.add(event)

    def _run(self) -> None:
        try:
            result = self._execution.run()
        except BaseException as error:
            self._future.set_exception(error)
        else:
            self._future.set_result(result)
        finally:
            self._feed.close()


class _EventFeed:
    """The latest events, for any number of iterators."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._events: deque[Event] = deque(maxlen=_KEPT_EVENTS)
        self._count = 0
        self._closed = False

    def add(self, event: Event) -> None:
        with self._changed:
            self._events.append(event)
            self._count += 1
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def events(self) -> Iterator[Event]:
        position = 0
        while True:
            with self._changed:
                while position == self._count and not self._closed:
                    self._changed.wait()
                new = min(self._count - position, len(self._events))
                position = self._count
                latest_first = list(islice(reversed(self._events), new))
            if not new:
                return
            yield from reversed(latest_first)
