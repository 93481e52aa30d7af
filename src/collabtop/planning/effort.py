"""How much may be simulated for a plan, and the simulations themselves: many runs at once, on all cores."""

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

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

_PER_SECOND = 12_000_000  # arms that are simulated in about a second, all runs together
_SAMPLE, _FEW_MEANS, _DISTINCT = 1_000, 300, 3  # with more different means in a sample, each counts for so many arms
_MESSAGES = 10_000, 8, 150  # a run with messages takes as long as so many arms, more per arm, and per agent and trip
_STOPPING = 4  # and so many times as long if it stops early
_FIRST_SECONDS = 1.0  # that a run with messages may take if its algorithm's share of the time is shorter
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
    """How much may be simulated, and how much has been; the algorithms that are left share it equally.

    It is counted in arms, not in seconds, so that the same seed gives the same plan on each machine.
    """

    def __init__(self, *, runs: int, seconds: float, seed: int, jobs: int | None, progress: bool) -> None:
        self.runs, self.seed = runs, seed
        self._threads, self.seconds, self._shown = process_count(jobs), seconds, progress
        self._arms_left = seconds * _PER_SECOND
        self._turn_ends = 0.0
        """How many of them are for the algorithms after this one."""
        self.parts = self._parts_left = 0
        """Algorithms that share the time."""

    @contextmanager
    def watch(self, parts: int) -> Iterator[None]:
        """Start the threads and the progress bar for so many algorithms."""
        self.parts = self._parts_left = parts
        with ExitStack() as stack:
            # NumPy releases the interpreter while it draws and sorts, so threads are enough to use all cores.
            self._pool = stack.enter_context(ThreadPoolExecutor(self._threads))
            self._bar = stack.enter_context(Progress(console=Console(stderr=True), disable=not self._shown))
            self._task = self._bar.add_task("planning", total=parts)
            yield
            self._bar.update(self._task, completed=parts)

    def turn_to(self, title: str) -> None:
        """Start the next algorithm's share."""
        self._arms_left = max(0.0, self._arms_left)
        self._turn_ends = self._arms_left * (1 - 1 / self._parts_left)
        self._bar.update(self._task, description=title, completed=self.parts - self._parts_left)
        self._parts_left -= 1

    @property
    def spent(self) -> bool:
        """Whether the share of this algorithm is used up."""
        return self._arms_left <= self._turn_ends

    def affordable(self, algorithm: Algorithm, arms: SimulatedArms, problem: Problem) -> int:
        """How many runs, at least one, are left to this algorithm if it makes no others."""
        work = _work(algorithm, arms) if algorithm.batched else _message_work(algorithm, problem)
        return max(1, int((self._arms_left - self._turn_ends) / work))

    def answers(
        self, algorithm: Algorithm, arms: SimulatedArms, problem: Problem, runs: int, first: int = 0
    ) -> list[Flags]:
        """The answers of so many runs, numbered from `first`, in batches; fewer, but some, if the share is used up."""
        runs = min(runs, self.affordable(algorithm, arms, problem))
        self._arms_left -= runs * _work(algorithm, arms)
        size = max(1, min(_BATCH, _BATCH_SIZE // arms.n))
        title = zlib.crc32(f"{algorithm.title} {algorithm.options}".encode())

        def batch(start: int) -> Flags:
            rng = np.random.default_rng([self.seed, problem.horizon, start, title])
            return algorithm.answers(problem, arms.means, min(size, first + runs - start), rng)

        return list(self._pool.map(batch, range(first, first + runs, size)))

    def wrong(
        self, algorithm: Algorithm, arms: SimulatedArms, problem: Problem, runs: int, first: int = 0
    ) -> tuple[int, int]:
        """How many of so many runs are wrong, and how many were made before the share was used up."""
        if algorithm.batched:
            right = [right_answers(arms.means, flags) for flags in self.answers(algorithm, arms, problem, runs, first)]
            return sum(int((~flags).sum()) for flags in right), sum(map(len, right))
        results = list(self.results(algorithm, arms, problem, runs, first))
        return sum(not is_best(arms.means, result.top_indices) for result in results), len(results)

    def results(
        self, algorithm: Algorithm, arms: SimulatedArms, problem: Problem, runs: int, first: int = 0
    ) -> Iterator[Result]:
        """The results of so many runs with messages, numbered from `first`; fewer, perhaps none, if they take too long.

        A run may take a second, or the share of an algorithm if that is more. With so many arms that it would take even
        longer, none is made: most of its time would be one exchange, which cannot be interrupted.
        """
        point = Point("arms", algorithm, problem.m, problem.agents, problem.horizon, runs, self.seed)
        allowed = min(self.seconds, max(_FIRST_SECONDS, self.seconds / self.parts))
        if _SECONDS_PER_ARM * arms.n > allowed:
            return
        for run in range(first, first + runs):
            if run > first and self.spent:
                return
            ends = time.process_time() + allowed
            try:
                result = identify(
                    arms,
                    problem.m,
                    agents=problem.agents,
                    horizon=problem.horizon,
                    algorithm=algorithm,
                    seed=point.run_seed(run),
                    team=_TimedTeam(lambda ends=ends: time.process_time() > ends),  # type: ignore[misc]
                )
            except _OutOfTimeError:
                return
            self._arms_left -= _message_work(algorithm, problem, result.round_trips)
            yield result


def _work(algorithm: Algorithm, arms: SimulatedArms) -> float:
    """How many arms one of many runs counts for: if means differ, each takes a table or a slower draw of its own."""
    sample = arms.means.reshape(-1)[:: max(1, arms.means.size // _SAMPLE)]
    distinct = len(np.unique(sample)) > _FEW_MEANS
    return arms.means.size * algorithm.simulation_work * (_DISTINCT if distinct else 1)


def _message_work(algorithm: Algorithm, problem: Problem, round_trips: int = 1) -> float:
    """How many arms a run with messages counts for."""
    always, per_arm, per_trip = _MESSAGES
    work = always + per_arm * problem.n + per_trip * problem.agents * round_trips
    return work * (_STOPPING if algorithm.stops_early else 1)
