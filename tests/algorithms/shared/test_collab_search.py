"""CollabSearch is exact and ends on every input, and takes O(K log n) words."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collabtop.algorithms.shared.collab_search import collab_search
from collabtop.coordination.coordinator import Coordinator
from collabtop.errors import ProtocolError
from collabtop.problem import Problem
from collabtop.protocol import sampling
from collabtop.protocol.messages import Border, Narrow, Sample
from collabtop.protocol.setup import Setup
from collabtop.testing import ConstantArms, WireTeam

SHOWN = 12  # values an agent shows at once


class Holding(WireTeam):
    """A team whose agents hold given values."""

    def __init__(self, *hands):
        self.hands = [sorted(float(value) for value in hand) for hand in hands]
        problem = Problem(n=max(1, sum(map(len, hands))), m=1, agents=len(hands), horizon=1)
        self.coordinator = Coordinator(self, Setup(problem, seed=1))
        self.coordinator.open(ConstantArms([0.0] * problem.n))
        for agent, hand in zip(self._members, self.hands, strict=True):
            agent._hand = agent._order = np.arange(len(hand))
            agent._keys = np.array(hand, dtype=np.float64)

    @property
    def total(self):
        return sum(map(len, self.hands))

    def search(self, rank):
        return collab_search(self.coordinator, [len(hand) for hand in self.hands], rank, then=Border)


def check_search(team, rank):
    """Search, and compare the result with `sorted`."""
    selection = team.search(rank)
    ordered = sorted(value for hand in team.hands for value in hand)
    assert selection.last == ordered[rank - 1]
    assert selection.next == ordered[rank]
    assert sum(selection.below) == rank
    for hand, below in zip(team.hands, selection.below, strict=True):
        # All that is smaller is among them, nothing that is larger is; of equal ones as many as it takes.
        assert bisect_left(hand, selection.last) <= below <= bisect_right(hand, selection.last)
    check_cost(team)
    return selection


def most_words(total, holders):
    """The stated bound, by the reasoning of the code.

    First each of the K holders gets the rank and shows at most 12 values: 13 words. If that does not
    decide, each gets two bounds with their positions and the choice to continue (5), and sends its two positions
    and at most 12 values (14): 19 words per pass. Such a pass over N values, spread evenly with both ends, leaves
    hidden at most (N - 2) / 11 of them on either side of the rank and a step of (N + 9) / 11 to the next value
    shown, so at most (4 N + 14) / 11 values remain for the next pass; and with 12 values or fewer all are shown.
    Hence 2 + log(n / 11) / log(11 / 4) passes at most: fewer than 32 K + 13.1 K log2 n words.
    """
    passes = 1 if total <= SHOWN else 2 + max(0, math.floor(math.log(total / 11, 11 / 4)))
    words = holders * (13 + 19 * passes)
    assert words <= 32 * holders + 13.1 * holders * math.log2(total)
    return words, passes


def check_cost(team):
    holders = sum(bool(hand) for hand in team.hands)
    words, passes = most_words(team.total, holders)
    assert team.words == team.coordinator.meter.ledger().words
    assert team.words <= words
    assert team.coordinator.meter.ledger().round_trips <= 1 + passes


values = st.one_of(st.integers(0, 3), st.integers(-5, 40), st.floats(0, 1), st.floats(allow_nan=False))
hands = st.lists(st.lists(values, max_size=30), min_size=1, max_size=50).filter(lambda lists: sum(map(len, lists)) >= 2)


@given(hands=hands, data=st.data())
@settings(max_examples=settings().max_examples * 5 // 2)
def test_it_is_exact_against_sorted_for_every_input(hands, data):
    team = Holding(*hands)
    check_search(team, data.draw(st.integers(1, team.total - 1), label="rank"))


@st.composite
def splits(draw):
    """Many values, dealt to agents in ways that mislead: sorted, all to one, interleaved, by size."""
    n, agents = draw(st.integers(2, 3_000)), draw(st.integers(1, 50))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    levels = draw(st.sampled_from([1, 2, 7, 100, 10**9]))
    values = np.sort(rng.integers(0, levels, n)).astype(float)
    how = draw(st.sampled_from(["random", "sorted", "reversed", "one has all", "one has the small ones", "growing"]))
    if how == "random":
        owner = rng.integers(agents, size=n)
    elif how == "sorted":
        owner = np.arange(n) * agents // n
    elif how == "reversed":
        owner = agents - 1 - np.arange(n) * agents // n
    elif how == "one has all":
        owner = np.full(n, rng.integers(agents))
    elif how == "one has the small ones":
        owner = np.where(np.arange(n) < n // 3, rng.integers(agents), rng.integers(agents, size=n))
    else:
        owner = np.minimum((agents * rng.random(n) ** 4).astype(int), agents - 1)
    return [values[owner == agent].tolist() for agent in range(agents)]


@given(hands=splits(), data=st.data())
@settings(max_examples=settings().max_examples * 3 // 2)
def test_it_is_exact_and_cheap_however_the_values_are_dealt(hands, data):
    team = Holding(*hands)
    rank = data.draw(st.one_of(st.integers(1, team.total - 1), st.just(1), st.just(team.total - 1)), label="rank")
    check_search(team, rank)


def test_the_papers_search_drops_the_answer_here_and_this_one_finds_it():
    # Agents with {5, 10, 11} and {1, 2, 3, 20, 21, 22, 23}, rank 4: as printed, agent 1 drops 5.
    selection = check_search(Holding([5, 10, 11], [1, 2, 3, 20, 21, 22, 23]), rank=4)
    assert (selection.last, selection.next, selection.below) == (5, 10, [1, 3])


@pytest.mark.parametrize("hands", [([1, 2],), ([1, 2], []), ([], [1, 2], []), ([1], [2]), ([7, 7], [7, 7])])
def test_the_papers_search_never_ends_with_two_elements_or_none_and_this_one_does(hands):
    team = Holding(*hands)
    for rank in range(1, team.total):
        check_search(Holding(*hands), rank)


def test_agents_without_values_are_not_asked():
    team = Holding([], [3, 1, 2], [])
    check_search(team, rank=2)
    assert {agent for agent, _, _ in team.crossed} == {1}


def test_when_all_values_tie_any_of_them_may_be_below_but_exactly_as_many_as_asked_for():
    for rank in range(1, 40):
        check_search(Holding(*([0.5] * 10 for _ in range(4))), rank)


def test_a_rank_that_agents_can_compute_costs_no_words():
    def words(known):
        team = Holding([1, 4], [2, 3])
        collab_search(team.coordinator, [2, 2], 2, then=Border, rank_is_known=known)
        return team.words

    assert words(known=False) - words(known=True) == 2  # one word per agent
    sample = next(m for _, _, m in _crossed_by(Holding([1, 4], [2, 3]), 2) if isinstance(m, Sample))
    assert sample.free == ("total",)


def _crossed_by(team, rank):
    team.search(rank)
    return team.crossed


@pytest.mark.parametrize("rank", [0, -1, 4, 5])
def test_a_rank_without_values_on_both_sides_is_refused(rank):
    with pytest.raises(ProtocolError, match=f"rank {rank} of 4 values has no value on both sides"):
        Holding([1, 2], [3, 4]).search(rank)


def test_an_agent_that_shows_too_few_values_is_detected():
    team = Holding([1, 2, 3], [4, 5, 6])
    team._members[1]._keys = team._members[1]._keys[:1]
    with pytest.raises((ProtocolError, IndexError)):
        team.search(3)


@pytest.mark.parametrize("agents", [1, 10, 50])
@pytest.mark.parametrize("how", ["dealt at random", "one agent has all the small ones", "agent by agent"])
def test_a_hundred_thousand_values_stay_within_the_stated_number_of_words(agents, how):
    rng = np.random.default_rng(agents)
    n = 100_000
    values = np.sort(rng.random(n))
    if how == "dealt at random":
        owner = rng.integers(agents, size=n)
    elif how == "one agent has all the small ones":
        owner = np.where(np.arange(n) < n // 2, 0, rng.integers(agents, size=n))
    else:
        owner = np.arange(n) * agents // n
    hands = [values[owner == agent] for agent in range(agents)]
    for rank in (1, n // 100, n // 2, n - 8):
        check_search(Holding(*hands), rank)


def test_values_dealt_at_random_take_a_few_hundred_words_for_588_values_and_10_agents():
    # SPEC: known good ways take 157 to 259 words and 2 to 7 round trips (median).
    words, trips = [], []
    for seed in range(101):
        rng = np.random.default_rng(seed)
        values, owner = rng.random(588), rng.integers(10, size=588)
        team = Holding(*(values[owner == agent] for agent in range(10)))
        check_search(team, rank=294)
        words.append(team.words)
        trips.append(team.coordinator.meter.ledger().round_trips)
    assert np.median(words) <= 260
    assert np.median(trips) <= 3


def test_a_window_is_only_narrowed_by_values_that_were_shown():
    team = Holding(range(0, 1000, 2), range(1, 1000, 2))
    check_search(team, rank=700)
    for _, _, message in team.crossed:
        if isinstance(message, Narrow):
            assert message.low < 700 < message.high + 1


@given(start=st.integers(0, 100), count=st.integers(0, 500))
def test_the_positions_shown_are_all_of_a_few_and_evenly_spread_over_many(start, count):
    positions = sampling.between(start, start + count)
    assert len(positions) == min(count, SHOWN)
    if count:
        assert (positions[0], positions[-1]) == (start, start + count - 1)
    if count > 1:
        steps = np.diff(positions)
        assert steps.min() >= 1
        assert steps.max() <= math.ceil((count - 1) / (SHOWN - 1)) or count <= SHOWN


@given(total=st.integers(2, 10_000), data=st.data())
def test_the_first_positions_shown_are_positions_of_the_hand(total, data):
    rank = data.draw(st.integers(1, total - 1))
    held = data.draw(st.integers(1, total))
    positions = sampling.around(rank, total, held)
    assert 1 <= len(positions) <= SHOWN
    assert positions[0] >= 0
    assert positions[-1] < held
    assert (np.diff(positions) >= 1).all()
