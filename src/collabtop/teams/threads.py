"""Agents in this process, a thread each: they pull really in parallel while their functions wait for something."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from queue import SimpleQueue
from typing import Protocol

from collabtop.arms import Arms
from collabtop.arms.draws import AgentHalted
from collabtop.coordination.team import Batch, Team
from collabtop.protocol.agent import Agent
from collabtop.protocol.messages import Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.recorder import RewardRecorder

_GRACE = 1.0
"""Seconds that pulls under way get to finish when somebody wants to stop."""


class ThreadsTeam(Team):
    """Agents in parallel, one thread an agent (`team="threads"`): for functions that wait for I/O, or `async` ones.

    Results are those of the local team, for the same seed. When a pull fails for good, the other agents
    finish the pull they are at (it may have cost money) and the error is raised then. At Ctrl-C they get a
    second for it.

    >>> import collabtop as ct
    >>> arms = ct.BernoulliArms([0.9, 0.5])
    >>> ct.identify(arms, m=1, agents=3, horizon=100, seed=1, team="threads").top
    [0]
    """

    def open(self, arms: Arms, setup: Setup, recorder: RewardRecorder) -> None:
        """Make the agents, and a thread for each."""
        self._members = [Agent(number, arms, setup, recorder) for number in range(setup.problem.agents)]
        self._threads = [AgentThread(agent) for agent in self._members]

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Let all agents answer at once."""
        pending = [self._threads[request.agent].ask(request) for request in requests]
        try:
            finished, _ = wait(pending, return_when=FIRST_EXCEPTION)
            if any(future.exception() for future in finished):
                self._halt()
                wait(pending)
        except BaseException:  # Ctrl-C
            self._halt()
            wait(pending, timeout=_GRACE)
            raise
        # An agent that was only told to stop is not what went wrong.
        errors = [error for future in pending if (error := future.exception()) is not None]
        for error in errors:
            if not isinstance(error, AgentHalted):
                raise error
        return [future.result() for future in pending]

    def close(self) -> None:
        """End the threads; one whose function hangs is left to it, and does not keep the process alive."""
        self._halt()
        for thread in self._threads:
            thread.end()
        for thread in self._threads:
            thread.join(timeout=0 if thread.is_busy else None)

    def observed(self) -> Sequence[Batch]:
        """Every batch of pulls, agent by agent."""
        return [batch for agent in self._members for batch in agent.batches]

    def _halt(self) -> None:
        for agent in self._members:
            agent.halt()


class _Answering(Protocol):
    """An agent, or what stands before one."""

    @property
    def number(self) -> int: ...

    def answer(self, request: Request) -> Reply: ...


class AgentThread(threading.Thread):
    """Answers one agent's requests, one after the other. A daemon: a hanging function must not hold up the exit."""

    def __init__(self, agent: _Answering) -> None:
        super().__init__(name=f"collabtop agent {agent.number}", daemon=True)
        self._agent = agent
        self._inbox: SimpleQueue[tuple[Request, Future[Reply]] | None] = SimpleQueue()
        self.is_busy = False
        self.start()

    def ask(self, request: Request) -> Future[Reply]:
        """Let the agent answer when it is its turn."""
        future: Future[Reply] = Future()
        self.is_busy = True
        self._inbox.put((request, future))
        return future

    def end(self) -> None:
        """End the thread when all that was asked is answered."""
        self._inbox.put(None)

    def run(self) -> None:
        """Answer until `end`."""
        while (job := self._inbox.get()) is not None:
            request, future = job
            try:
                reply = self._agent.answer(request)
            except BaseException as error:
                self.is_busy = False
                future.set_exception(error)
            else:
                self.is_busy = False
                future.set_result(reply)
