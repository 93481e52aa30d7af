"""How much may be simulated for a plan, and the simulations themselves: many runs at once, on all cores."""

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial

import numpy as np
from rich.console import Console
from rich.progress import Progress

from collabtop.algorithms.base import Algorithm
from collabtop.arms import SimulatedArms
from collabtop.problem import Problem, is_best, right_answers
from collabtop.protocol.messages import Flags, Reply, Request
from collabtop.runs.identification import identify
from collabtop.runs.result import Result
from collabtop.studies.grid import Point
from collabtop.studies.runner import process_count
from collabtop.teams.local import LocalTeam

_FIRST_SECONDS = 1.0  # that the first run with messages may take after its algorithm's share of the time is used up
_SECONDS_PER_ARM = 5e-6  # of a run with messages, roughly
_BATCH, _BATCH_SIZE = 1_000, 120_000  # runs; runs times arms, so that the arrays of a batch stay in the cache


class _OutOfTimeError(Exception):
    """Ends a run whose share of the time is used up."""


class _TimedTeam(LocalTeam):
    """A team that ends the run at its first message after the time is up.

    A handler of events could end it too, but making the events takes ten times as long as the run.
    """

    def __init__(self, is_late: Callable[[], bool]) -> None:
        self._is_late = is_late

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Deliver in time."""
        if self._is_late():
            raise _OutOfTimeError
        return super().deliver(requests)


class Effort:
    """How much may be simulated, and how much has been; the algorithms that are left share the time equally."""

    def __init__(self, *, runs: int, seconds: float, seed: int, jobs: int | None, progress: bool) -> None:
        self.runs, self.seed = runs, seed
        self._threads, self.seconds, self._shown = process_count(jobs), seconds, progress
        self.parts = self._left = 0
        """Algorithms that share the time."""

    @contextmanager
    def watch(self, parts: int) -> Iterator[None]:
        """Start the clock, the threads and the progress bar for so many algorithms."""
        self.parts = self._left = parts
        self._began = self._clock()
        with ExitStack() as stack:
            # NumPy releases the interpreter while it draws and sorts, so threads are enough to use all cores.
            self._pool = stack.enter_context(ThreadPoolExecutor(self._threads))
            self._bar = stack.enter_context(Progress(console=Console(stderr=True), disable=not self._shown))
            self._task = self._bar.add_task("planning", total=parts)
            yield
            self._bar.update(self._task, completed=parts)

    def turn_to(self, title: str) -> None:
        """Start the next algorithm's share of the time."""
        left = [began + self.seconds - now for began, now in zip(self._began, self._clock(), strict=True)]
        self._turn_ends = [now + max(0.0, part) / self._left for now, part in zip(self._clock(), left, strict=True)]
        self._bar.update(self._task, description=title, completed=self.parts - self._left)
        self._left -= 1

    @property
    def spent(self) -> bool:
        """Whether the time of this algorithm is up."""
        return self._is_past(self._turn_ends)

    @staticmethod
    def _clock() -> tuple[float, float]:
        """The time that passed, and the CPU time used: on a busy machine, a plan takes longer but is as good."""
        return time.monotonic(), time.process_time()

    def answers(
        self, algorithm: Algorithm, arms: SimulatedArms, problem: Problem, runs: int, first: int = 0
    ) -> list[Flags]:
        """The answers of so many runs, numbered from `first`, in batches; fewer, but some, if time runs out."""
        size = max(1, min(_BATCH, _BATCH_SIZE // arms.n))
        title = zlib.crc32(f"{algorithm.title} {algorithm.options}".encode())

        def batch(start: int) -> Flags | None:
            if start > first and self.spent:
                return None
            rng = np.random.default_rng([self.seed, problem.horizon, start, title])
            return algorithm.answers(problem, arms.means, min(size, first + runs - start), rng)

        batches = list(self._pool.map(batch, range(first, first + runs, size)))
        return [flags for flags in batches if flags is not None]

    def wrong(
        self, algorithm: Algorithm, arms: SimulatedArms, problem: Problem, runs: int, first: int = 0
    ) -> tuple[int, int]:
        """How many of so many runs are wrong, and how many were made before time ran out."""
        if algorithm.batched:
            right = [right_answers(arms.means, flags) for flags in self.answers(algorithm, arms, problem, runs, first)]
            return sum(int((~flags).sum()) for flags in right), sum(map(len, right))
        results = list(self.results(algorithm, arms, problem, runs, first))
        return sum(not is_best(arms.means, result.top_indices) for result in results), len(results)

    def results(
        self, algorithm: Algorithm, arms: SimulatedArms, problem: Problem, runs: int, first: int = 0
    ) -> Iterator[Result]:
        """The results of so many runs with messages, numbered from `first`; fewer, perhaps none, if time runs out.

        The first one may take a second longer, or as long as the share of an algorithm if that is more. With so many
        arms that it would take even longer, none is made: most of its time would be one exchange, which cannot be
        interrupted.
        """
        point = Point("arms", algorithm, problem.m, problem.agents, problem.horizon, runs, self.seed)
        allowed = min(self.seconds, max(_FIRST_SECONDS, self.seconds / self.parts))
        if _SECONDS_PER_ARM * arms.n > allowed:
            return
        for run in range(first, first + runs):
            ends = self._turn_ends if run > first else [end + allowed for end in self._turn_ends]
            try:
                yield identify(
                    arms,
                    problem.m,
                    agents=problem.agents,
                    horizon=problem.horizon,
                    algorithm=algorithm,
                    seed=point.run_seed(run),
                    team=_TimedTeam(partial(self._is_past, ends)),
                )
            except _OutOfTimeError:
                return

    def _is_past(self, ends: Sequence[float]) -> bool:
        return all(now > end for now, end in zip(self._clock(), ends, strict=True))
