"""The processes team: agents in this process, whose pulls run in worker processes, for functions that compute."""

import os
from collections.abc import Callable
from typing import Any

from collabtop.arms import Arms
from collabtop.arms.workers import exit_if_importing_main
from collabtop.protocol.setup import Setup
from collabtop.runlog.recorder import RewardRecorder
from collabtop.teams.threads import ThreadsTeam
from collabtop.validation import whole_number, wrong_value


class ProcessesTeam(ThreadsTeam):
    """Pulls in worker processes, one per core (`team="processes"`): for functions that keep a core busy.

    Results are the same as on the local team with the same seed. Functions, lambdas and closures are sent to the
    workers once, with cloudpickle; a script has to keep its main code under `if __name__ == "__main__":`. Each worker
    has one thread for linear algebra (BLAS, OpenMP), unless the environment says otherwise. A worker that dies is
    replaced and makes its pull again, at most three times. An `async` function runs in this process.

    Args:
        workers: how many processes; by default one per core, or `identify(workers=...)`.
        set_up: called once in each worker before its first pull, for example to load a model.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5])
    >>> ct.identify(arms, m=1, agents=3, horizon=100, seed=1, team=ct.ProcessesTeam(workers=2)).top
    [0]
    """

    def __init__(self, workers: int | None = None, *, set_up: Callable[[], Any] | None = None) -> None:
        self._workers = None if workers is None else whole_number("workers", workers, least=1)
        if set_up is not None and not callable(set_up):
            raise wrong_value("set_up", set_up, "a function without arguments is needed")
        self._set_up = set_up

    def open(self, arms: Arms, setup: Setup, recorder: RewardRecorder) -> None:
        """Create the agents; the worker processes start with the first pulls."""
        exit_if_importing_main()
        workers = self._workers or arms.call_options.workers or cores()
        self._arms = arms.with_calls(workers=workers, processes=True, set_up=self._set_up)
        self._arms.open()
        super().open(self._arms, setup, recorder)

    def close(self) -> None:
        """End the agents and the worker processes."""
        super().close()
        self._arms.close()


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
