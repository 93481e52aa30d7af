"""What a coordinator can find out about single rewards, attack by attack: no more than a guess from the batch's mean.

The attacker is the coordinator: it chooses the seed, the algorithm and every request that a site accepts, and it knows
the site's code. In the first attack it even knows every outcome but one. The draws cannot be seeded, since that is the
point, so the tests can fail by chance: `test_a_limit_is_exceeded_by_chance_in_fewer_than_one_of_700_000_runs` shows how
often.

Rewards are fair coin flips. Given the sums of batches, the first (or last) reward of a batch of t pulls with s ones is
1 with probability s / t, independently for all batches. A guess is thus right with probability max(s, t - s) / t at
most, and the number of right guesses is at most binomial with the mean of that as its share.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import collabtop as ct
from collabtop.algorithms.registry import make_algorithm
from collabtop.arms.draws import pull_rng
from collabtop.protocol.agent import Agent
from collabtop.protocol.messages import Moments, Prune, Pull, PullHand, PullOpen, Request, Sample, SendSquares
from collabtop.protocol.setup import Setup
from collabtop.teams.sites.journal import Journal
from collabtop.teams.sites.min_batch import SmallBatchError, check_batch
from tests.support.accepted import accepted_setting

RUN = "0123456789abcdef" * 2
SEED = 7


def limit(guesses: int, share: float) -> float:
    """The most right guesses that chance explains."""
    return guesses * share + 5 * math.sqrt(guesses * share * (1 - share))


def share_guessed_from_a_mean(pulls: int) -> float:
    """How often the best guess of one coin flip is right for those who know the mean of `pulls` of them."""
    return sum(math.comb(pulls, ones) * 0.5**pulls * max(ones, pulls - ones) / pulls for ones in range(pulls + 1))


def chance_beyond_limit(guesses: int, share: float) -> float:
    """The probability that guesses of which this share is right exceed the limit, exactly."""
    first = math.floor(limit(guesses, share)) + 1
    return math.fsum(
        math.comb(guesses, right) * share**right * (1 - share) ** (guesses - right)
        for right in range(first, guesses + 1)
    )


def test_a_limit_is_exceeded_by_chance_in_fewer_than_one_of_700_000_runs():
    solved = 2 * worst_chance_of_solving()
    pruned = math.fsum(chance_beyond_limit(400, share_guessed_from_a_mean(pulls)) for pulls in (2, 5, 20))
    repeated = 2 * chance_beyond_limit(400, share_guessed_from_a_mean(21))
    halves = 6 * math.fsum(math.comb(400, ones) for ones in range(261, 401)) / 2**400  # the attack that succeeds
    assert solved + pruned + repeated + halves < 1 / 700_000


def worst_chance_of_solving():
    """The probability that a vector of guesses chosen without the data fits more outcomes than the limit.

    The sums depend on the outcomes by the number of ones only. For a vector with a given number of ones, how many of
    them are right is hypergeometric; the worst number of ones counts.
    """
    count = len(Patients(200, seed=3).outcomes)
    ones = int(Patients(200, seed=3).outcomes.sum())
    return max(
        math.fsum(
            math.comb(ones, both) * math.comb(count - ones, guessed - both) / math.comb(count, guessed)
            for both in range(max(0, guessed + ones - count), min(guessed, ones) + 1)
            if count - guessed - ones + 2 * both > limit(count, 0.5)
        )
        for guessed in range(count + 1)
    )


def site_agent(arms, *, horizon, min_batch, seed=SEED, **secret):
    """The agent of a site that takes part in a run with the coordinator's seed."""
    setup = Setup(ct.Problem(n=arms.n, m=1, agents=1, horizon=horizon), seed)
    return Journal(None, RUN, setup, [0], arms, min_batch, **secret).agents[0]


class Patients:
    """A site's data: one coin flip per patient, the same for all treatments."""

    def __init__(self, count, seed, flipped=None):
        self.outcomes = np.random.default_rng(seed).integers(0, 2, count)
        if flipped is not None:
            self.outcomes[flipped] ^= 1

    def dataset(self, treatments=2):
        return ct.DatasetArms(list(range(treatments)), list(range(len(self.outcomes))), self.score, replace=True)

    def score(self, treatment, patient):
        return int(self.outcomes[patient])

    def function(self, treatments=2):
        """The same data, with a function that draws the patient itself."""
        return ct.FunctionArms(list(range(treatments)), self.draw)

    def draw(self, treatment, rng):
        return int(self.outcomes[rng.integers(len(self.outcomes))])

    def logged(self, treatments=2):
        return ct.LoggedArms([self.outcomes.tolist()] * treatments, replace=True)


# -- the coordinator knows the seed


def outcomes_solved(min_batch, **secret):
    """How many of 200 outcomes the attacker finds from 300 means, if the draws follow from the seed alone."""
    count, questions = 200, 300
    patients = Patients(count, seed=3)
    agent = site_agent(patients.dataset(), horizon=questions * min_batch, min_batch=min_batch, **secret)
    uses, sums = np.zeros((questions, count)), []
    for question in range(questions):
        for pull in range(min_batch):
            uses[question, pull_rng(SEED, 0, question * min_batch + pull).integers(count)] += 1
        reply = agent.answer(Request(0, question + 1, (Pull(np.array([0]), np.array([min_batch])),)))
        sums.append(reply.answer.means[0] * min_batch)
    solved = np.linalg.lstsq(uses, np.array(sums), rcond=None)[0] > 0.5
    return (solved == patients.outcomes).sum()


@pytest.mark.parametrize("min_batch", [2, 20])
def test_means_of_known_draws_cannot_be_solved_for_single_outcomes(min_batch):
    assert outcomes_solved(min_batch) <= limit(200, 0.5)
    assert outcomes_solved(min_batch, secret=b"") == 200  # the attack works on a site without a secret


class Overheard(ct.LocalTeam):
    """A local team whose last agent is a site's; what it is asked and answers is overheard."""

    def __init__(self, min_batch=1, **secret):
        super().__init__()
        self.min_batch, self.secret = min_batch, secret

    def open(self, arms, setup, recorder):
        super().open(arms, setup, recorder)
        self.setup, self.number, self.exchanges = setup, setup.problem.agents - 1, []
        journal = Journal(None, RUN, setup, [self.number], arms, self.min_batch, **self.secret)
        self.site = journal.agents[self.number]

    def deliver(self, requests):
        return [
            self._answer(request, reply) for request, reply in zip(requests, super().deliver(requests), strict=True)
        ]

    def _answer(self, request, reply):
        if request.agent != self.number:
            return reply
        self.exchanges.append((request, self.site.answer(request)))
        return self.exchanges[-1][1]

    def fits(self, arms):
        """Whether an agent with these arms, drawing from the coordinator's seed alone, would have answered the same."""
        twin = Agent(self.number, arms, self.setup)
        try:
            return all(repr(twin.answer(request).answer) == repr(reply.answer) for request, reply in self.exchanges)
        except Exception:  # the requests do not even fit such an agent
            return False


def outcomes_found(algorithm, kind, targets, horizon=1_500, **settings):
    """How many outcomes an attacker finds that knows all others, by running a copy of the agent with both values."""
    treatments, right = 24, 0
    _, agents = accepted_setting(algorithm, 1, 2)
    budget = {"confidence": 0.5, "max_horizon": 800} if make_algorithm(algorithm).stops_early else {"horizon": horizon}
    for target in range(targets):
        team = Overheard(**settings)
        arms, other = (getattr(Patients(targets, target, flip), kind)(treatments) for flip in (None, target))
        ct.identify(arms, 1, agents=agents, **budget, algorithm=algorithm, seed=SEED, team=team)
        right += team.fits(arms) and not team.fits(other)
    return right


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "kind"),
    [
        (name, kind)
        for name in ct.available_algorithms()
        for kind in ("dataset", "function", "logged")
        if kind != "logged" or not make_algorithm(name).stops_early  # a confidence needs distinct rewards
    ],
)
def test_one_unknown_outcome_cannot_be_found_by_replaying_the_run(algorithm, kind):
    assert outcomes_found(algorithm, kind, targets=4) == 0  # no copy fits, so the attacker has to guess


DECLINED = {
    2: {"kl-lucb", "fed-elim"},
    20: {"kl-lucb", "fed-elim", "confident-top", "confident-top-noniid", "sar", "nsar"},
}
"""The algorithms that ask for smaller batches in this run, so that the site answers nothing, or not much."""


@pytest.mark.slow
@pytest.mark.parametrize("min_batch", [2, 20])
@pytest.mark.parametrize("algorithm", ct.available_algorithms())
def test_the_replay_finds_nothing_whatever_the_smallest_batch(algorithm, min_batch):
    if algorithm in DECLINED[min_batch]:
        with pytest.raises(SmallBatchError):
            outcomes_found(algorithm, "dataset", targets=1, horizon=6_000, min_batch=min_batch)
    else:
        assert outcomes_found(algorithm, "dataset", targets=4, horizon=6_000, min_batch=min_batch) == 0


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ct.available_algorithms())
def test_the_replay_finds_every_outcome_of_a_site_without_a_secret(algorithm):
    assert outcomes_found(algorithm, "dataset", targets=4, secret=b"") == 4


# -- the coordinator asks for decisions after few pulls

FEW = st.integers(1, 19)


@given(few=FEW, first=st.integers(20, 60), sizes=st.integers(1, 9))
def test_no_stage_of_a_pruning_may_be_smaller_than_the_smallest_batch(few, first, sizes):
    for pulls in ([few, first], [first, first + few], [first, 2 * first, 2 * first + few]):
        request = Request(0, 1, (Prune(1, np.full(len(pulls), sizes), np.array(pulls)),))
        with pytest.raises(SmallBatchError, match=f"a batch of size {min(np.diff(pulls, prepend=0))} was requested"):
            check_batch(request, 20)
    check_batch(Request(0, 1, (Prune(1, np.array([sizes, sizes]), np.array([20, 20 + first])),)), 20)


@given(few=FEW)
def test_no_other_request_may_have_a_smaller_batch(few):
    for messages in (
        (Pull(None, np.array([few])),),
        (Pull(np.array([0, 1]), np.array([20, few])),),
        (PullOpen(None, few, 0.0),),
        (PullHand(20), PullHand(few), Sample(1, 2)),
    ):
        with pytest.raises(SmallBatchError):
            check_batch(Request(0, 1, messages), 20)


class Coins(ct.Arms):
    """Fair coins that remember the rewards of every arm, to compare them with what the attacker finds."""

    def __init__(self, n):
        super().__init__(n)
        self.rewards = [[] for _ in range(n)]

    def pull(self, arms, times, draws):
        sums = []
        for arm, count in zip(arms.tolist(), np.broadcast_to(times, arms.shape).tolist(), strict=True):
            rewards = draws.bulk.integers(0, 2, count).tolist()
            self.rewards[arm] += rewards
            sums.append(sum(rewards))
        return np.array(sums, np.float64)


def first_rewards_found(min_batch, first):
    """How many of 400 first rewards the attacker finds by who is left after `first` pulls."""
    n = 400
    arms = Coins(n)
    stages = Prune(1, np.array([n // 2, n // 2]), np.array([first, first + 20]))
    survivors = site_agent(arms, horizon=10**6, min_batch=min_batch).answer(Request(0, 1, (stages,))).answer.arms
    firsts = np.array([rewards[0] for rewards in arms.rewards])
    return (np.isin(np.arange(n), survivors) == firsts).sum()


@pytest.mark.parametrize("min_batch", [2, 5, 20])
def test_the_survivors_of_a_pruning_reveal_no_more_than_means_do(min_batch):
    with pytest.raises(SmallBatchError):
        first_rewards_found(min_batch, first=1)
    assert first_rewards_found(min_batch, first=min_batch) <= limit(400, share_guessed_from_a_mean(min_batch))
    assert first_rewards_found(1, first=1) >= 340  # all but 10 on average: not exactly half of the rewards are 1


# -- the coordinator asks for squares


class Scores(Coins):
    """Scores between 0 and 1 instead of coin flips."""

    def pull(self, arms, times, draws):
        assert len(times) == 1
        drawn = draws.bulk.random((len(arms), times[0]))
        for arm, rewards in zip(arms.tolist(), drawn.tolist(), strict=True):
            self.rewards[arm] += rewards
        draws.squares = (drawn**2).sum(axis=1)
        return drawn.sum(axis=1)


def pairs_solved(min_batch, pulls, kind=Scores):
    """How many of 300 batches the attacker solves for two of their rewards, if it takes them for batches of two."""
    arms = kind(300)
    agent = site_agent(arms, horizon=10**6, min_batch=min_batch)
    answer: Any = agent.answer(Request(0, 1, (SendSquares(), Pull(None, np.array([pulls]))))).answer
    spread = np.sqrt(np.maximum(answer.squares - answer.means**2, 0.0))
    found = np.column_stack([answer.means - spread, answer.means + spread])
    rewards = np.sort([rewards[:pulls] for rewards in arms.rewards])
    nearest = np.abs(found[:, :, None] - rewards[:, None, :]).min(axis=2)
    return int((nearest < 1e-6).all(axis=1).sum())


def test_squares_do_not_reveal_the_rewards_of_a_pair():
    assert pairs_solved(1, pulls=2) == 300  # both rewards of every pair, from a mean and a mean square
    assert pairs_solved(2, pulls=2) == 0
    assert pairs_solved(2, pulls=3) == 0


@pytest.mark.parametrize("question", [Pull(None, np.array([20])), PullOpen(None, 20, 0.0)])
def test_squares_of_the_smallest_batch_are_sent_as_if_they_were_unknown(question):
    """Unknown squares are at their upper bound, the mean; those of a larger batch are sent."""
    agents = [site_agent(Scores(20), horizon=1_000, min_batch=min_batch) for min_batch in (20, 5)]
    hidden, sent = (agent.answer(Request(0, 1, (SendSquares(), question))).answer for agent in agents)
    assert means_and_squares(hidden)[0] == pytest.approx(means_and_squares(hidden)[1])
    means, squares = means_and_squares(sent)
    assert (squares < means - 0.01).all()


def means_and_squares(answer):
    return (answer.means, answer.squares) if isinstance(answer, Moments) else (answer.means(), answer.squares())


@pytest.mark.parametrize("pulls", [2, 20])
def test_squares_of_coin_flips_are_their_means(pulls):
    """So they reveal nothing that the means do not."""
    agent = site_agent(Patients(50, seed=1).dataset(), horizon=1_000, min_batch=1)
    answer: Any = agent.answer(Request(0, 1, (SendSquares(), Pull(None, np.array([pulls]))))).answer
    assert (answer.squares == answer.means).all()


# -- the coordinator repeats a run with one pull more


def last_pulls_found(min_batch, **secret):
    """How many of 400 last pulls the attacker finds from pairs of runs with 20 and 21 pulls."""
    right = 0
    for seed in range(400):
        sums = []
        for pulls in (20, 21):
            arms = Coins(2)
            agent = site_agent(arms, horizon=100, min_batch=min_batch, seed=seed, **secret)
            reply = agent.answer(Request(0, 1, (Pull(np.array([0]), np.array([pulls])),)))
            sums.append(reply.answer.means[0] * pulls)
        right += (sums[1] - sums[0] > 0.5) == arms.rewards[0][-1]
    return right


@pytest.mark.parametrize("min_batch", [2, 20])
def test_a_second_run_with_one_pull_more_does_not_reveal_that_pull(min_batch):
    assert last_pulls_found(min_batch) <= limit(400, share_guessed_from_a_mean(21))
    assert last_pulls_found(min_batch, secret=b"") == 400  # the attack works on a site without a secret


@pytest.mark.parametrize(
    "arms",
    [
        ct.DatasetArms([1, 2], list(range(20)), lambda treatment, patient: 0.5, replace=False),
        ct.LoggedArms([[0, 1], [1, 0]]),
        ct.FunctionArms([1, 2], lambda treatment, rng: 0.5, paired=True),
        ct.FunctionArms([1, 2], ct.replicates(lambda treatment, replicate: 0.5)),
    ],
    ids=["examples without replacement", "logged rewards", "paired pulls", "numbered replicates"],
)
def test_arms_whose_pulls_are_not_independent_are_rejected(arms, certs):
    """The mean of 20 pulls, and that of 21 pulls in the same order, reveal the 21st: in two runs or for two arms."""
    with pytest.raises(ct.InputError, match="reveal a single reward: draw independently") as caught:
        ct.join("localhost:1", arms, cert=certs / "site0.pem", min_batch=20)
    assert caught.value.argument == "arms"
    with pytest.raises(ct.SiteError, match="no coordinator"):
        ct.join("localhost:1", arms, cert=certs / "site0.pem", min_batch=1, give_up=0.1)
