"""A host without a cluster: it takes and returns bytes, and never answers for an earlier epoch."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

import collabtop as ct
from collabtop.errors import ProtocolError
from collabtop.events import PullFailed, PullsMade
from collabtop.protocol.messages import Pull, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.format import Rewards
from collabtop.teams.ray.host import AgentHost, HostOptions
from collabtop.teams.remote.envelope import pack_shared, seal_requests
from collabtop.teams.remote.history import AgentHistory
from collabtop.teams.remote.host_messages import AgentsRestored, Answers, Heartbeat, RestoreAgents, from_bytes, to_bytes
from collabtop.teams.remote.reports import ReportOptions, ReportSink
from tests.support.accepted import accepted_setting

PROBLEM = ct.Problem(n=2, m=1, agents=2, horizon=100)


def make_host(arms, *, recorded=True, watched=True):
    encode = msgspec.msgpack.encode
    host = AgentHost(
        [], encode(Setup(PROBLEM, seed=3)), encode(HostOptions(4, ReportOptions(rewards=recorded, events=watched)))
    )
    host.set_arms(arms)
    return host


def restore(host, agents, requests=(), records=()):
    message = RestoreAgents(agents, pack_shared(requests), list(records))
    return from_bytes(host.restore(to_bytes(message)), AgentsRestored)


def ask(number, times=3, agents=(0, 1), epochs=(0, 0)):
    return seal_requests([Request(agent, number, (Pull(None, np.array([times])),)) for agent in agents], list(epochs))


def answers(host, requests):
    return from_bytes(host.answer(pack_shared(requests)), Answers)


def test_a_restarted_host_reports_that_it_has_no_agents():
    host = make_host(ct.BernoulliArms([0.9, 0.1]))
    message = answers(host, ask(1))
    assert (message.replies.open(), message.forgotten) == ([], [0, 1])


def test_an_agent_of_a_different_epoch_does_not_answer():
    host = make_host(ct.BernoulliArms([0.9, 0.1]))
    restore(host, [(0, 0), (1, 4)])
    message = answers(host, ask(1))
    assert message.replies.agents == [0]
    assert message.forgotten == [1]
    assert answers(host, ask(1, epochs=(0, 4))).replies.epochs == [0, 4]


def random_reward(candidate, rng):
    return rng.random()


@pytest.mark.parametrize("arms", [ct.BernoulliArms([0.9, 0.1]), ct.FunctionArms(["a", "b"], random_reward)])
def test_a_rebuilt_agent_repeats_its_replies_and_continues_as_before(arms):
    first = make_host(arms)
    restore(first, [(0, 0), (1, 0)])
    digests, items = [], []
    for number in (1, 2):
        message = answers(first, ask(number))
        digests += [digest for _, digest, reply in message.replies.open() if reply.agent == 1]
        items += message.items
    records = [item for item in items if isinstance(item, Rewards) and item.agent == 1]
    second = make_host(arms)
    repeated = [request for number in (1, 2) for request in ask(number, agents=[1], epochs=(0, 1))]
    assert restore(second, [(1, 1)], repeated, records).digests == {1: digests}
    _, undisturbed, _ = answers(first, ask(3)).replies.open()[1]
    epoch, rebuilt, _ = answers(second, ask(3, agents=[1], epochs=(0, 1))).replies.open()[0]
    assert (epoch, rebuilt) == (1, undisturbed)  # the digests of equal replies


class RebuiltEveryTime(ct.Team):
    """All agents are lost before every exchange, and rebuilt in a new host from their history."""

    def open(self, arms, setup, recorder):
        self.agents = setup.problem.agents
        self._arms, self._setup = arms, msgspec.msgpack.encode(setup)
        self._history = AgentHistory(self.agents)
        self._reports = ReportSink(recorder, self.agents, repeatable=arms.repeatable)

    def deliver(self, requests):
        agents = range(self.agents)
        for agent in agents:
            self._history.begin_epoch(agent)
            self._reports.begin_epoch(agent)
        options = msgspec.msgpack.encode(HostOptions(1, ReportOptions(rewards=True, events=True)))
        host = AgentHost([], self._setup, options)
        host.set_arms(self._arms)
        epochs = [(agent, self._history.epochs[agent]) for agent in agents]
        answered = [request for agent in agents for request in self._history.answered_requests(agent)]
        records = [record for agent in agents for record in self._reports.records[agent]]
        restored = restore(host, epochs, answered, records)
        self._reports.take(restored.items)
        for agent in agents:
            self._history.check(agent, restored.digests[agent])
        for sealed in seal_requests(list(requests), self._history.epochs):
            self._history.add_request(sealed)
        message = answers(host, [self._history.latest(request.agent) for request in requests])
        self._reports.take(message.items)
        for epoch, digest, reply in message.replies.open():
            self._history.add_reply(reply, epoch, digest)
        host.close()
        return [reply for _, _, reply in message.replies.open()]


class Urns(ct.Arms):
    """A user's arms whose rewards cannot be drawn twice."""

    drawn = 0

    def pull(self, arms, times, draws):
        Urns.drawn += int(np.broadcast_to(times, arms.shape).sum())
        return draws.bulk.binomial(np.broadcast_to(times, arms.shape), 0.2 + 0.05 * arms).astype(float)


class CountedFunction:
    """A function that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, mean, rng):
        self.calls += 1
        return rng.random() < mean


@pytest.mark.parametrize("algorithm", ct.available_algorithms())
def test_agents_rebuilt_before_every_exchange_give_the_undisturbed_run_without_repeated_pulls(algorithm):
    m, agents = accepted_setting(algorithm, 2, 3)
    asked = {"agents": agents, "horizon": 120, "algorithm": algorithm, "seed": 6}
    function = CountedFunction()
    for make in (
        lambda: ct.BernoulliArms(np.linspace(0.2, 0.8, 8)),
        lambda: ct.FunctionArms(np.linspace(0.2, 0.8, 8).tolist(), function),
        lambda: Urns(8),
    ):
        local = ct.identify(make(), m, **asked)
        function.calls = Urns.drawn = 0
        events: list[Any] = []
        rebuilt = ct.identify(make(), m, team=RebuiltEveryTime(), on_event=events.append, **asked)
        assert (rebuilt, rebuilt.ledger) == (local, local.ledger)
        assert sum(event.pulls for event in events if isinstance(event, PullsMade)) == local.pulls
        assert function.calls in (0, local.pulls)
        assert Urns.drawn in (0, local.pulls)


def test_a_heartbeat_reports_rewards_and_failures():
    def pull(candidate, rng):
        if candidate == "bad":
            raise LookupError("no such model")
        return 0.5

    host = make_host(ct.FunctionArms(["good", "bad"], pull))
    restore(host, [(0, 0), (1, 0)])
    assert from_bytes(host.heartbeat(), Heartbeat) == Heartbeat(2, False, [])
    message = answers(host, ask(1))
    faults = [fault for fault in message.faults if not fault.is_halt]  # the other agent fails as well, or is halted
    assert {(fault.kind, fault.fields["candidate"]) for fault in faults} == {("PullError", "bad")}
    error = faults[0].error()
    assert isinstance(error, ct.PullError)
    assert "in pull" in error.__notes__[0]
    assert {type(item) for item in message.items} == {Rewards, PullsMade, PullFailed}
    assert from_bytes(host.heartbeat(), Heartbeat).is_failing


@pytest.mark.parametrize("data", [b"", b"\x93\x01\x02\x03", to_bytes(Heartbeat(1, False, []))[:-1]])
def test_invalid_bytes_are_rejected(data):
    host = make_host(ct.BernoulliArms([0.9, 0.1]))
    for method in (host.restore, host.answer):
        with pytest.raises(ProtocolError):
            method(data)
    with pytest.raises(ProtocolError):
        from_bytes(data, Answers)
