"""An example of a custom team: one process per agent, with pickled arms."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from collabtop.extending import (
    Agent,
    Arms,
    Reply,
    ReportBuffer,
    ReportOptions,
    ReportSink,
    Request,
    RewardRecorder,
    Setup,
    Team,
)


class PicklingTeam(Team):
    """Agents in processes of their own; the arms, requests and replies are pickled on the way."""

    def open(self, arms: Arms, setup: Setup, recorder: RewardRecorder) -> None:
        """Start a process per agent, with the rewards that a checkpoint holds of it."""
        context = multiprocessing.get_context("spawn")
        self.reports = ReportSink(recorder, setup.problem.agents, repeatable=arms.repeatable)
        self.pipes: list[Connection] = []
        self.processes = []
        for number, records in enumerate(self.reports.records):
            ours, theirs = context.Pipe()
            arguments = (theirs, number, arms, setup, self.reports.options, records)
            process = context.Process(target=serve, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Send all requests, then wait for all replies."""
        for request in requests:
            self.pipes[request.agent].send(request)
        outcomes = []
        for request in requests:
            outcome, items = self.pipes[request.agent].recv()
            self.reports.take(items)
            outcomes.append(outcome)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return outcomes

    def close(self) -> None:
        """End the processes."""
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join()


def serve(pipe: Connection, number: int, arms: Arms, setup: Setup, options: ReportOptions, records: list[Any]) -> None:
    """In an agent's process: answer requests until the pipe is closed."""
    buffer = ReportBuffer(options)
    agent = Agent(number, arms, setup, buffer.recorder(arms.failure_mode, records))
    arms.open()
    with suppress(EOFError):  # the pipe was closed
        while request := pipe.recv():
            try:
                outcome: Reply | Exception = agent.answer(request)
            except Exception as error:
                outcome = error
            pipe.send((outcome, buffer.drain()[1]))
    arms.close()
