"""What the coordinator learns: in the local phase only sizes, search traffic, thresholds and counts."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

import collabtop as ct
from collabtop.protocol import messages as say
from collabtop.testing import WireTeam

N, AGENTS = 600, 4

NUMBERS_ONLY: dict[str, set[type[say.Message]]] = {
    # In the local phase, down and up. Arm numbers are in none of these, means only in search replies.
    "down": {say.Deal, say.PullHand, say.Sample, say.Narrow, say.Border, say.Cut, say.TimeUsed},
    "up": {say.Held, say.Values, say.Window, say.Accepted},
}
SEARCH_REPLIES = (say.Values, say.Window)
NAMES_ARMS = (say.Hand, say.Pull)


META = ("free", "chosen_from")
"""What every message has besides its payload."""


@pytest.fixture(params=["paper", "full"])
def schedule(request):
    return request.param


@pytest.fixture(params=[1, 20, 590], ids=lambda m: f"m={m}")
def run(request, schedule):
    """A run with several local rounds, and everything that crossed in it."""
    team = WireTeam()
    arms = ct.BernoulliArms(np.random.default_rng(1).uniform(0.1, 0.9, N))
    algorithm = ct.CollabTopIID(schedule=schedule)
    result = ct.identify(arms, request.param, agents=AGENTS, horizon=60_000, algorithm=algorithm, seed=5, team=team)
    assert sum(cost.phase == "local" for cost in result.rounds) >= 3
    return result, team


def before_the_hand_over(team):
    kinds = [type(message) for _, _, message in team.crossed]
    return team.crossed[: kinds.index(say.HandOver)]


def after_the_hand_over(team):
    kinds = [type(message) for _, _, message in team.crossed]
    return team.crossed[kinds.index(say.HandOver) :]


def arm_numbers(message):
    """All arm numbers that a message names."""
    if isinstance(message, say.Hand):
        return {*message.arms.tolist(), *message.accepted.tolist()}
    if isinstance(message, say.Pull):
        return set(range(N)) if message.arms is None else set(message.arms.tolist())
    return set()


def test_in_the_local_phase_nothing_crosses_but_sizes_search_traffic_thresholds_and_counts(run):
    _, team = run
    for _, direction, message in before_the_hand_over(team):
        assert type(message) in NUMBERS_ONLY[direction]


def test_the_messages_of_the_local_phase_have_no_field_for_an_arm():
    fields = {
        kind.__name__: {field.name: field.type for field in msgspec.structs.fields(kind) if field.name not in META}
        for kind in NUMBERS_ONLY["up"] | NUMBERS_ONLY["down"]
    }
    assert {name: set(types) for name, types in fields.items()} == {
        "Deal": {"coefficients"},
        "PullHand": {"times"},
        "Sample": {"rank", "total"},
        "Narrow": {"low", "low_place", "high", "high_place"},
        "Border": {"upper", "lower", "top"},
        "Cut": {"keep"},
        "TimeUsed": {"time"},
        "Held": {"size"},
        "Values": {"values"},
        "Window": {"start", "stop", "values"},
        "Accepted": {"count"},
    }


def test_no_real_number_goes_up_before_the_hand_over_outside_of_a_search_reply(run):
    _, team = run
    for _, direction, message in before_the_hand_over(team):
        if direction == "up" and not isinstance(message, SEARCH_REPLIES):
            numbers = {name: value for name, value in msgspec.structs.asdict(message).items() if name not in META}
            assert all(isinstance(value, int) for value in numbers.values())


def test_the_whole_numbers_that_go_up_are_places_in_a_hand_and_counts_of_it(run):
    _, team = run
    held, keeps = {}, {}
    for agent, direction, message in before_the_hand_over(team):
        match message:
            case say.Held(size=size):
                held[agent] = size
            case say.Window(start=start, stop=stop):
                assert 0 <= start <= stop <= held[agent]
            case say.Accepted(count=count):
                assert direction == "up"
                assert 0 <= count <= held[agent] - keeps[agent]
                held[agent] = keeps[agent]
            case say.Cut(keep=keep):
                assert keep <= held[agent]
                keeps[agent] = keep
    assert len(held) == AGENTS


def test_search_replies_show_a_small_part_of_what_an_agent_holds(run):
    _, team = run
    shown = [len(m.values) for _, _, m in before_the_hand_over(team) if isinstance(m, SEARCH_REPLIES)]
    assert max(shown) <= 12
    assert max(shown) < N / AGENTS / 10


def test_the_same_run_on_renumbered_arms_sends_the_same_until_the_hand_over(schedule):
    # Two arms of one agent swap their numbers: if a message depended on the numbers, it would change.
    from collabtop.protocol.hashing import hand

    means = np.random.default_rng(1).integers(0, 2, N).astype(float)  # always 0 or always 1: the draws are the same
    first = WireTeam()
    run: dict[str, Any] = {
        "agents": AGENTS,
        "horizon": 60_000,
        "algorithm": ct.CollabTopIID(schedule=schedule),
        "seed": 5,
    }
    ct.identify(ct.BernoulliArms(means), 3, team=first, **run)
    deal = next(message for _, _, message in first.crossed if isinstance(message, say.Deal))
    mine = hand(deal.coefficients, N, AGENTS, agent=2)
    bad, good = mine[np.flatnonzero(means[mine] == 0)[0]], mine[np.flatnonzero(means[mine] == 1)[0]]
    means[[bad, good]] = means[[good, bad]]
    second = WireTeam()
    ct.identify(ct.BernoulliArms(means), 3, team=second, **run)

    def sent(team):
        return [(agent, direction, text_of(message)) for agent, direction, message in before_the_hand_over(team)]

    assert sent(first) == sent(second)


def text_of(message):
    return [
        str(value.tolist() if isinstance(value, np.ndarray) else value) for value in msgspec.structs.astuple(message)
    ]


def test_an_arm_settled_inside_an_agent_and_rejected_never_appears_in_any_message(run):
    result, team = run
    named = set().union(*(arm_numbers(message) for _, _, message in team.crossed))
    silent = [estimate for estimate in result.estimates if estimate.round is None and estimate.arm not in named]
    assert len(silent) >= N / 2
    # A search for the worst arms (m > n / 2) inverts verdicts: rejected by the agent is accepted in the answer.
    inside = "accepted" if 2 * result.m > N else "rejected"
    assert {estimate.verdict for estimate in silent} == {inside}
    assert all(estimate.mean is None and estimate.pulls is None for estimate in silent)
    assert all(result.pulls_by_arm[estimate.arm] is None for estimate in silent)


def test_after_the_hand_over_no_arm_is_named_that_was_not_handed_over_or_that_was_settled_since(run):
    result, team = run
    settled_in = {estimate.arm: estimate.round for estimate in result.estimates}
    handed = [message for _, _, message in after_the_hand_over(team) if isinstance(message, say.Hand)]
    live = set().union(*(message.arms.tolist() for message in handed))
    first = next((cost.round for cost in result.rounds if cost.phase == "shared"), None)
    pulls = [message for _, _, message in after_the_hand_over(team) if isinstance(message, say.Pull)]
    assert bool(pulls) == (first is not None)
    for message in pulls:
        assert arm_numbers(message) <= live
    # The lists get shorter round by round; an arm settled in round r is in no list after that of round r.
    asked = dict.fromkeys(live, 0)
    for message in pulls:
        for arm in arm_numbers(message):
            asked[arm] += 1
    for arm, times in asked.items():
        rounds_alive = settled_in[arm] - first + 1 if first is not None and settled_in[arm] is not None else 0
        assert times <= rounds_alive * AGENTS


def test_accepted_arms_are_handed_over_with_their_means(run):
    result, team = run
    for _, _, message in team.crossed:
        if isinstance(message, say.Hand):
            assert len(message.accepted) == len(message.accepted_means)
            for arm, mean in zip(message.accepted, message.accepted_means, strict=True):
                expected = 1 - mean if 2 * result.m > N else mean
                assert result.estimates[int(arm)].mean == pytest.approx(expected)


def answers_of(algorithm, m):
    """The answers of each agent, in order, and the result of the run."""
    team, arms = WireTeam(), ct.BernoulliArms(np.random.default_rng(1).uniform(0.1, 0.9, N))
    result = ct.identify(arms, m, agents=AGENTS, horizon=60_000, algorithm=algorithm, seed=5, team=team)
    answers: list[list[Any]] = [[] for _ in range(AGENTS)]
    for agent, direction, message in team.crossed:
        if direction == "up":
            answers[agent].append(message)
    return answers, result


@pytest.mark.parametrize("m", [1, 20, 590])
def test_frugal_top_sends_nothing_until_it_hands_over_a_few_arms(m):
    answers, _ = answers_of("frugal-top", m)
    for hand, *others in answers:
        assert isinstance(hand, say.Hand)
        assert len(hand.arms) < N / AGENTS / 4  # of the arms that an agent was dealt
        assert {type(other) for other in others} == {say.Means}


@pytest.mark.parametrize("algorithm", ["collab-top-noniid", "frugal-top-noniid", "robust-top"])
def test_non_iid_algorithms_send_one_mean_per_open_arm_and_round(algorithm):
    answers, result = answers_of(algorithm, 5)
    for sent in answers:
        means = [answer.means() if isinstance(answer, say.CoarseMeans) else answer.means for answer in sent]
        assert [len(values) for values in means] == [cost.live for cost in result.rounds]


def test_observed_pulls_do_not_affect_the_equality_of_results():
    class Secretive(ct.LocalTeam):
        def observed(self):
            return None

    arms = ct.BernoulliArms([0.9, 0.5, 0.4, 0.3])
    run: dict[str, Any] = {"agents": 2, "horizon": 500, "algorithm": "collab-top-iid", "seed": 1}
    open_, closed = ct.identify(arms, 1, **run), ct.identify(arms, 1, team=Secretive(), **run)
    assert closed.observed is None
    assert open_.observed is not None
    assert open_ == closed
