"""Whatever a dishonest site answers, it is rejected or the run ends with an answer."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.errors import ProtocolError
from collabtop.problem import Problem
from collabtop.protocol import messages as say
from collabtop.protocol import sampling
from collabtop.teams.sites.validation import PublicState

ARMS = ct.BernoulliArms(np.random.default_rng(3).integers(1, 9, 60) / 10)


class Rejected(Exception):  # noqa: N818  (what a coordinator does, not an error)
    """The coordinator disconnects the dishonest site: the run continues without it, or can be resumed."""


class LyingTeam(ct.LocalTeam):
    """A local team whose agent 0 lies; every answer is checked as a coordinator of sites does."""

    def __init__(self, draw):
        self.draw = draw

    def open(self, arms, setup, recorder):
        super().open(arms, setup, recorder)
        self.states = [PublicState(agent, setup.problem) for agent in range(setup.problem.agents)]

    def deliver(self, requests):
        replies = [*super().deliver(requests)]
        if requests[0].agent == 0 and self.draw(st.integers(0, 2)):
            lie = msgspec.structs.replace(replies[0], answer=self.lie(requests[0].messages[-1], replies[0].answer))
            if self.is_accepted(requests[0], lie):
                replies[0] = lie
        for request, reply in zip(requests, replies, strict=True):
            try:
                self.states[request.agent].check_reply(request, reply)
            except ProtocolError:  # an honest answer that contradicts earlier lies
                assert request.agent == 0
                raise Rejected from None
        return replies

    def is_accepted(self, request, reply):
        try:
            self.states[0]._copy().check_reply(request, reply)
        except ProtocolError:
            return False
        return True

    def lie(self, question, answer):
        """A false answer that would be valid without the answers before."""
        held = self.states[0]._held
        if isinstance(answer, say.Values):
            return say.Values(np.sort(self.values(len(answer.values))))
        if isinstance(answer, say.Window):
            start, stop = sorted(
                position if position >= 0 else self.draw(st.integers(0, held))
                for position in (question.low_place, question.high_place)
            )
            values = self.values(len(sampling.between(start, stop)))
            return say.Window(start, stop, np.sort(np.clip(values, question.low, question.high)))
        if isinstance(answer, say.Accepted):
            return say.Accepted(self.draw(st.integers(0, 5)))
        if isinstance(answer, say.CoarseMeans):
            return say.CoarseMeans(0, False, None, self.values(len(answer.means())))
        if isinstance(answer, say.Hand):
            return msgspec.structs.replace(answer, means=self.values(len(answer.means)))
        return say.Means(self.values(len(answer.means))) if isinstance(answer, say.Means) else answer

    def values(self, count):
        drawn = self.draw(st.binary(min_size=count, max_size=count))
        return np.frombuffer(drawn, np.uint8) % 9 / 8


@pytest.mark.parametrize("algorithm", ["collab-top-iid", "frugal-top", "frugal-top-noniid", "confident-top"])
@given(data=st.data(), m=st.sampled_from([1, 3, 20]), seed=st.integers(0, 9))
def test_a_run_with_a_lying_site_ends_with_an_answer_or_a_rejection(algorithm, data, m, seed):
    try:
        result = ct.identify(ARMS, m, agents=3, horizon=500, algorithm=algorithm, seed=seed, team=LyingTeam(data.draw))
    except Rejected:
        return
    assert len(set(result.top)) == m


BORDER = say.Border(0.6, 0.5, 2)


@pytest.mark.parametrize(
    ("accepted", "error"), [(3, "more accepted arms than are above the border"), (0, "too few accepted arms")]
)
def test_a_site_accepts_as_many_arms_as_are_above_the_border(accepted, error):
    state = PublicState(0, Problem(n=12, m=2, agents=2, horizon=100))
    deal = say.Request(0, 1, (say.Deal(np.array([1, 0])),))
    state.check_reply(deal, say.Reply(0, 1, 0, say.Held(6)))
    cut = say.Request(0, 2, (say.PullHand(1), BORDER, say.Cut(1)))
    with pytest.raises(ProtocolError, match=error):
        state.check_reply(cut, say.Reply(0, 2, 6, say.Accepted(accepted)))
    state.check_reply(cut, say.Reply(0, 2, 6, say.Accepted(1)))
