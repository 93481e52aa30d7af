"""Checks that the records of a log fit the run in its first record, before anything is computed from them."""

from collections.abc import Container, Iterable
from os import PathLike

import msgspec

from collabtop.errors import FileError
from collabtop.protocol.setup import Setup
from collabtop.runlog.format import (
    MAX_WEIGHTED,
    AgentStatus,
    Exchange,
    Extended,
    Finished,
    Header,
    JournalHeader,
    Record,
    RemoteRun,
    Rewards,
    StudyHeader,
    Sums,
)
from collabtop.runlog.packing import largest_int


class RecordCheck:
    """Checks records in the order of the log. Each record was already checked by itself when it was decoded.

    >>> check = RecordCheck("run.ctlog")
    >>> check.add([Finished([3])])                # a log without a header: there is nothing to compare with
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = path
        self._number = 0
        self._n: int | None = None
        self._m: int | None = None
        self._agents: Container[int] = ()
        self._agent_count = 0
        self._horizon = 0
        self._bounded = True
        self._reported: dict[int, int] = {}

    def add(self, records: Iterable[Record]) -> None:
        """Check the next records; raise `FileError` at the first that does not fit."""
        for record in records:
            self._number += 1
            try:
                self._check(record)
            except (ValueError, msgspec.DecodeError, RecursionError) as error:
                raise FileError(
                    f"checkpoint {str(self._path)!r}: record {self._number} ({type(record).__name__}) does not fit the "
                    f"run: {error}",
                    argument="checkpoint",
                ) from None

    def _check(self, record: Record) -> None:
        if isinstance(record, Rewards):  # most records are of this kind
            self._check_pulls(record)
        elif isinstance(record, (Header, JournalHeader, StudyHeader)):
            self._begin(record)
        elif self._n is None:
            return
        elif isinstance(record, Sums):
            self._check_pulls(record)
        elif isinstance(record, Extended):
            self._extend(record)
        elif isinstance(record, Exchange):
            self._check_exchange(record)
        elif isinstance(record, Finished):
            self._check_answer(record, self._n)
        elif isinstance(record, AgentStatus):
            for agent in record.agents:
                self._check_agent(agent)
        elif isinstance(record, RemoteRun) and sum(count for _, count in record.sites) != self._agent_count:
            raise ValueError(f"its sites do not have {self._agent_count} agents")

    def _begin(self, header: Header | JournalHeader | StudyHeader) -> None:
        if self._number > 1:
            raise ValueError("it must be the first record")
        if isinstance(header, Header):
            if header.extensions:
                raise ValueError(f"it is of extension {header.extensions}, but a log begins with the run before it")
            if header.weights is not None and header.n * header.agents > MAX_WEIGHTED:
                raise ValueError(f"{header.n:,} candidates times {header.agents:,} agents with weights are too many")
            self._n, self._m, self._horizon, self._bounded = (
                header.n,
                header.m,
                header.most_pulls,
                header.bounds is not None,
            )
            self._agents, self._agent_count = range(header.agents), header.agents
        elif isinstance(header, JournalHeader):
            problem = msgspec.msgpack.decode(header.setup, type=Setup).problem
            self._n, self._horizon, self._bounded = problem.n, problem.horizon, problem.bounded
            self._agents, self._agent_count = frozenset(header.agents), len(header.agents)

    def _extend(self, record: Extended) -> None:
        if record.horizon <= self._horizon:
            raise ValueError(f"its horizon is {record.horizon}, but the run already has {self._horizon}")
        self._horizon, self._reported = record.horizon, {}

    def _check_pulls(self, record: Rewards | Sums) -> None:
        record.check_range(bounded=self._bounded)
        if self._n is None:
            return
        if record.agent not in self._agents:
            self._check_agent(record.agent)
        if (arm := largest_int(record.arms)) >= self._n:
            raise ValueError(f"a candidate is {arm}, but there are {self._n}")
        if record.first + record.pulls > self._horizon:
            raise ValueError(f"agent {record.agent} has more pulls than the horizon of {self._horizon} allows")

    def _check_exchange(self, record: Exchange) -> None:
        agents, reported, horizon = self._agents, self._reported, self._horizon
        if max(len(record.requests), len(record.replies)) > self._agent_count:
            raise ValueError(f"it has more requests or replies than there are agents ({self._agent_count})")
        for agent, _ in record.requests:
            if agent not in agents:
                self._check_agent(agent)
        for agent, pulls, _ in record.replies:
            if agent not in agents:
                self._check_agent(agent)
            total = reported[agent] = reported.get(agent, 0) + pulls
            if total > horizon:
                raise ValueError(f"agent {agent} reports more pulls than the horizon of {horizon} allows")

    def _check_answer(self, record: Finished, n: int) -> None:
        wrong_size = self._m is not None and len(record.top) != self._m
        if wrong_size or len(set(record.top)) != len(record.top) or max(record.top, default=-1) >= n:
            raise ValueError(f"the answer is not {self._m} different candidates of {n}")

    def _check_agent(self, agent: int) -> None:
        if agent not in self._agents:
            raise ValueError(f"an agent is {agent}, but there are {self._agent_count}")
