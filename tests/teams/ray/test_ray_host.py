"""A host of agents by itself, without a cluster: bytes in, bytes out, and no answer from a life that is over."""

from __future__ import annotations

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
from collabtop.teams.remote.history import AgentHistory, digest_of
from collabtop.teams.remote.host_messages import AgentsRestored, Answers, Heartbeat, RestoreAgents, from_bytes, to_bytes
from collabtop.teams.remote.reports import ReportOptions, ReportSink

PROBLEM = ct.Problem(n=2, m=1, agents=2, horizon=100)


def make_host(arms, *, recorded=True, watched=True):
    encode = msgspec.msgpack.encode
    host = AgentHost(
        [], encode(Setup(PROBLEM, seed=3)), encode(HostOptions(4, ReportOptions(rewards=recorded, events=watched)))
    )
    host.equip(arms)
    return host


def adopt(host, agents, requests=(), records=()):
    return from_bytes(host.adopt(to_bytes(RestoreAgents(agents, pack_shared(requests), list(records)))), AgentsRestored)


def ask(number, times=3, agents=(0, 1), epochs=(0, 0)):
    return seal_requests([Request(agent, number, (Pull(None, np.array([times])),)) for agent in agents], list(epochs))


def answers(host, requests):
    return from_bytes(host.answer(pack_shared(requests)), Answers)


def test_a_host_that_was_born_again_has_no_agents_and_says_so():
    host = make_host(ct.BernoulliArms([0.9, 0.1]))
    said = answers(host, ask(1))
    assert (said.replies, said.forgotten) == ([], [0, 1])


def test_an_agent_of_another_epoch_is_no_agent():
    host = make_host(ct.BernoulliArms([0.9, 0.1]))
    adopt(host, [(0, 0), (1, 4)])
    said = answers(host, ask(1))
    assert [it.agent for it in said.replies] == [0]
    assert said.forgotten == [1]
    assert [it.epoch for it in answers(host, ask(1, epochs=(0, 4))).replies] == [0, 4]


def random_reward(candidate, rng):
    return rng.random()


@pytest.mark.parametrize("arms", [ct.BernoulliArms([0.9, 0.1]), ct.FunctionArms(["a", "b"], random_reward)])
def test_a_rebuilt_agent_says_what_it_said_and_goes_on_as_it_would_have(arms):
    first = make_host(arms)
    adopt(first, [(0, 0), (1, 0)])
    before, items = [], []
    for number in (1, 2):
        said = answers(first, ask(number))
        before += [digest_of(it) for it in said.replies if it.agent == 1]
        items += said.items
    known = [it for it in items if isinstance(it, Rewards) and it.agent == 1]
    second = make_host(arms)
    again = [request for number in (1, 2) for request in ask(number, agents=[1], epochs=(0, 1))]
    assert adopt(second, [(1, 1)], again, known).said == {1: before}
    undisturbed = answers(first, ask(3)).replies[1]
    rebuilt = answers(second, ask(3, agents=[1], epochs=(0, 1))).replies[0]
    assert rebuilt == msgspec.structs.replace(undisturbed, epoch=1)


class RebuiltEveryTime(ct.Team):
    """All agents are lost before every exchange, and rebuilt in a new host from what is known of them."""

    def open(self, arms, setup, recorder):
        self.agents = setup.problem.agents
        self._arms, self._setup = arms, msgspec.msgpack.encode(setup)
        self._book = AgentHistory(self.agents)
        self._inbox = ReportSink(recorder, self.agents, repeatable=arms.repeatable)

    def deliver(self, requests):
        agents = range(self.agents)
        for agent in agents:
            self._book.lose(agent)
            self._inbox.begin_life(agent)
        options = msgspec.msgpack.encode(HostOptions(1, ReportOptions(rewards=True, events=True)))
        host = AgentHost([], self._setup, options)
        host.equip(self._arms)
        lives = [(agent, self._book.epochs[agent]) for agent in agents]
        history = [it for agent in agents for it in self._book.answered_requests(agent)]
        adopted = adopt(host, lives, history, [it for agent in agents for it in self._inbox.records[agent]])
        self._inbox.take(adopted.items)
        for agent in agents:
            self._book.check(agent, adopted.said[agent])
        for sealed in seal_requests(list(requests), self._book.epochs):
            self._book.asked(sealed)
        said = answers(host, [self._book.latest(request.agent) for request in requests])
        self._inbox.take(said.items)
        for reply in said.replies:
            self._book.answered(reply)
        host.close()
        return [reply.open() for reply in said.replies]


class Urns(ct.Arms):
    """Arms of a user's own that nobody may draw from twice."""

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
def test_agents_rebuilt_before_every_exchange_give_the_undisturbed_run_and_pay_for_nothing_twice(algorithm):
    m, agents = (1, 1) if algorithm in ("sar", "sequential-halving", "kl-lucb") else (2, 3)
    asked = {"agents": agents, "horizon": 120, "algorithm": algorithm, "seed": 6}
    function = CountedFunction()
    for make in (
        lambda: ct.BernoulliArms(np.linspace(0.2, 0.8, 8)),
        lambda: ct.FunctionArms(np.linspace(0.2, 0.8, 8).tolist(), function),
        lambda: Urns(8),
    ):
        local = ct.identify(make(), m, **asked)
        function.calls = Urns.drawn = 0
        events = []
        rebuilt = ct.identify(make(), m, team=RebuiltEveryTime(), on_event=events.append, **asked)
        assert (rebuilt, rebuilt.ledger) == (local, local.ledger)
        assert sum(it.pulls for it in events if isinstance(it, PullsMade)) == local.pulls
        assert function.calls in (0, local.pulls)
        assert Urns.drawn in (0, local.pulls)


def test_a_sign_of_life_brings_what_was_drawn_and_what_failed():
    def pull(candidate, rng):
        if candidate == "bad":
            raise LookupError("no such model")
        return 0.5

    host = make_host(ct.FunctionArms(["good", "bad"], pull))
    adopt(host, [(0, 0), (1, 0)])
    assert from_bytes(host.beat(), Heartbeat) == Heartbeat(2, False, [])
    said = answers(host, ask(1))
    met = [it for it in said.faults if not it.is_halt]  # the other agent may have been told to stop, or met it too
    assert {(it.kind, it.fields["candidate"]) for it in met} == {("PullError", "bad")}
    error = met[0].error()
    assert isinstance(error, ct.PullError)
    assert "in pull" in error.__notes__[0]
    kinds = {type(it) for it in said.items}
    assert kinds == {Rewards, PullsMade, PullFailed}
    assert from_bytes(host.beat(), Heartbeat).is_failing


@pytest.mark.parametrize("data", [b"", b"\x93\x01\x02\x03", to_bytes(Heartbeat(1, False, []))[:-1]])
def test_bytes_that_are_no_letter_are_refused(data):
    host = make_host(ct.BernoulliArms([0.9, 0.1]))
    for ask_with in (host.adopt, host.answer):
        with pytest.raises(ProtocolError):
            ask_with(data)
    with pytest.raises(ProtocolError):
        from_bytes(data, Answers)
