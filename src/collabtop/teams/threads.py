"""The threads team: agents in this process, one thread each, for pulls that wait for I/O."""

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from queue import SimpleQueue
from typing import ClassVar, Protocol

from collabtop.arms import Arms
from collabtop.arms.draws import AgentHalted
from collabtop.coordination.team import Team
from collabtop.protocol.agent import Agent
from collabtop.protocol.batches import Batch, Batches
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.recorder import RewardRecorder

_GRACE = 1.0
"""Seconds that current pulls get to finish when the user stops the run."""


class ThreadsTeam(Team):
    """Agents in parallel, one thread each (`team="threads"`): for functions that wait for I/O, or are `async`.

    Results are the same as on the local team with the same seed. If a pull fails and is not retried, the
    error is raised after the other agents have finished their current pull, which may have cost money. After
    Ctrl-C they have one second to do so.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5])
    >>> ct.identify(arms, m=1, agents=3, horizon=100, seed=1, team="threads").top
    [0]
    """

    messages_are_free: ClassVar[bool] = True

    def open(self, arms: Arms, setup: Setup, recorder: RewardRecorder) -> None:
        """Create the agents, and a thread for each."""
        agents, self._batches = range(setup.problem.agents), Batches(setup.problem.n)
        self._members = [Agent(number, arms, setup, recorder, batches=self._batches) for number in agents]
        self._threads: list[AgentThread] = []
        for agent in self._members:  # one by one: `close` ends those that were started
            self._threads.append(AgentThread(agent))

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Let all agents answer in parallel."""
        pending = [self._threads[request.agent].ask(request) for request in requests]
        try:
            finished, _ = wait(pending, return_when=FIRST_EXCEPTION)
            if any(future.exception() for future in finished):
                self.halt()
                wait(pending)
        except BaseException:  # Ctrl-C
            self.halt()
            wait(pending, timeout=_GRACE)
            raise
        # An agent that was only asked to stop is not the cause.
        errors = [error for future in pending if (error := future.exception()) is not None]
        for error in errors:
            if not isinstance(error, AgentHalted):
                raise error
        return [future.result() for future in pending]

    def close(self) -> None:
        """End the threads, except those whose function hangs: being daemons, they do not keep the process alive."""
        self.halt()
        for thread in self._threads:
            thread.end()
        for thread in self._threads:
            thread.join(timeout=0 if thread.is_busy else None)

    def observed(self) -> Sequence[Batch]:
        """All batches of pulls."""
        return list(self._batches)

    def halt(self) -> None:
        """Let the agents stop after their current pulls."""
        for agent in self._members:
            agent.halt()


class _Answering(Protocol):
    """An agent, or a wrapper of one."""

    @property
    def number(self) -> int: ...

    def answer(self, request: Request) -> Reply: ...


class AgentThread(threading.Thread):
    """Answers the requests of one agent in order. It is a daemon, so a function that hangs does not block the exit."""

    def __init__(self, agent: _Answering) -> None:
        super().__init__(name=f"collabtop agent {agent.number}", daemon=True)
        self._agent = agent
        self._queue: SimpleQueue[tuple[Request, Future[Reply]] | None] = SimpleQueue()
        self.is_busy = False
        self.start()

    def ask(self, request: Request) -> Future[Reply]:
        """Queue a request, and return the future of its reply."""
        future: Future[Reply] = Future()
        self.is_busy = True
        self._queue.put((request, future))
        return future

    def end(self) -> None:
        """End the thread once all queued requests are answered."""
        self._queue.put(None)

    def run(self) -> None:
        """Answer requests until `end` is called."""
        while (job := self._queue.get()) is not None:
            request, future = job
            try:
                reply = self._agent.answer(request)
            except BaseException as error:
                self.is_busy = False
                future.set_exception(error)
            else:
                self.is_busy = False
                future.set_result(reply)
