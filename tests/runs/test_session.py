"""Sessions: pulls that are made elsewhere, in any order, in parts, by several callers and processes."""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collabtop as ct
from collabtop.arms.draws import ALL_AGENTS, pull_rng
from collabtop.runlog.file import RunLog, read_log
from collabtop.runlog.format import Rewards
from tests.laws.test_every_algorithm import EVERY
from tests.support.accepted import accepted_setting, accepts

KINDS = ("independent", "paired", "examples", "regions", "examples of regions")
EXAMPLES = 23


class Regions(ct.FunctionArms):
    """A function whose candidates differ from agent to agent."""

    def __init__(self, *arguments: Any, agents: int, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.agents = agents


def by_rng(candidate: int, rng: Any) -> float:
    return float((candidate % 7 / 7 + rng.random()) * 50)


def by_example(candidate: int, example: int) -> float:
    return (candidate * 31 + example * 17) % 101


@dataclass
class Case:
    n: int
    m: int
    agents: int
    spare: int
    seed: int
    kind: str
    minimize: bool

    @property
    def unit(self) -> dict[str, Any]:
        return {"direction": "minimize" if self.minimize else "maximize", "bounds": (0, 100)}

    @property
    def non_iid(self) -> bool:
        return "regions" in self.kind

    def fits(self, algorithm: ct.Algorithm) -> bool:
        paired = self.kind in ("paired", "examples")
        return not (self.non_iid and algorithm.iid_only) and accepts(algorithm, 1, 1, paired=paired)

    def arms(self, agents: int) -> ct.Arms:
        candidates = range(self.n)
        match self.kind:
            case "independent" | "paired":
                return ct.FunctionArms(candidates, by_rng, paired=self.kind == "paired", **self.unit)
            case "regions":
                return Regions(candidates, by_rng, agents=agents, **self.unit)
            case "examples":
                return ct.DatasetArms(candidates, range(EXAMPLES), by_example, **self.unit)
        examples = [range(agent, agent + EXAMPLES) for agent in range(agents)]
        return ct.DatasetArms(candidates, examples, by_example, by_agent=True, **self.unit)

    def session(self, log: Path, m: int, **more: Any) -> ct.Session:
        examples = EXAMPLES if "examples" in self.kind else None
        settings: dict[str, Any] = {"examples": examples, "by_agent": self.non_iid, "paired": self.kind == "paired"}
        return ct.ask_tell(range(self.n), m, log=log, seed=self.seed, **settings, **self.unit, **more)

    def reward(self, pull: ct.AskedPull) -> float:
        """What the function returns for a single pull."""
        assert pull.times == 1
        if pull.example is not None:
            return by_example(pull.candidate, pull.example + (pull.agent if self.non_iid else 0))
        paired = self.kind == "paired"
        rng = pull_rng(self.seed, *((ALL_AGENTS, pull.replicate) if paired else (pull.agent, pull.number)))
        return by_rng(pull.candidate, rng)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n = draw(st.integers(2, 9))
    return Case(
        n=n,
        m=draw(st.integers(1, n - 1)),
        agents=draw(st.integers(1, 4)),
        spare=draw(st.integers(0, 40)),
        seed=draw(st.integers(0, 1000)),
        kind=draw(st.sampled_from(KINDS)),
        minimize=draw(st.booleans()),
    )


@pytest.mark.parametrize("algorithm", EVERY.values(), ids=EVERY.keys())
@given(case=cases(), random=st.randoms(use_true_random=False))
@settings(max_examples=max(5, settings().max_examples // 2))
def test_any_split_of_asks_tells_and_restarts_gives_the_run_of_identify(algorithm, case, random):
    if not case.fits(algorithm):
        case.kind = "independent"
    m, agents = accepted_setting(algorithm, case.m, case.agents)
    arms = case.arms(agents)
    try:
        expected = ct.identify(arms, m, agents=agents, horizon=1, algorithm=algorithm, seed=case.seed)
        horizon = 1
    except ct.HorizonError as error:
        # KL-LUCB asks for two pulls at a time, and each ask runs from the beginning.
        horizon = error.smallest + (min(case.spare, 5) if isinstance(algorithm, ct.KLLUCB) else case.spare)
        expected = ct.identify(arms, m, agents=agents, horizon=horizon, algorithm=algorithm, seed=case.seed)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "run.ctlog"
        session = case.session(log, m, agents=agents, horizon=horizon, algorithm=algorithm)
        while asked := session.ask():
            pulls = [single for pull in asked for single in pull.split()]
            random.shuffle(pulls)
            some = pulls[: random.choice((len(pulls), random.randint(1, len(pulls))))]
            if random.random() < 0.2:
                session = ct.Session(log)
            session.tell(some, [case.reward(pull) for pull in some])
        result = session.result()
        assert ct.Session(log).result() == result == ct.peek(log)
    assert result == expected
    assert result.ledger.entries == expected.ledger.entries
    assert [(round_.pulls, round_.time) for round_ in result.rounds] == [
        (round_.pulls, round_.time) for round_ in expected.rounds
    ]
    assert result.warnings == expected.warnings


def drinks(log, **more):
    return ct.ask_tell(["tea", "coffee", "milk"], 1, log=log, **{"agents": 2, "horizon": 24, "seed": 7} | more)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "run.ctlog"


def halves(pulls):
    return [[0.5] * pull.times if pull.times > 1 else 0.5 for pull in pulls]


def finish(session):
    rounds = 0
    while pulls := session.ask():
        rounds += 1
        session.tell(pulls, halves(pulls))
    return rounds


# -- batches


def test_a_pull_made_once_takes_its_reward_or_a_list_of_it(log):
    session = drinks(log)
    first, second, *_ = (pull for asked in session.ask() for pull in asked.split())
    session.tell([first, second], [[0.5], 0.25])
    with pytest.raises(ct.InputError, match=r"pulls\[0\]: 1 rewards are needed, but there are 2"):
        session.tell([pull for asked in session.ask() for pull in asked.split()][:1], [[1, 0]])


@pytest.mark.parametrize("algorithm", ["uniform", "frugal-top", "frugal-top-noniid", "paired-top"])
def test_a_batch_is_a_whole_round(log, algorithm):
    session = ct.ask_tell(range(8), 2, agents=3, horizon=200, algorithm=algorithm, seed=1, log=log)
    rounds = finish(session)
    assert rounds == session.result().round_trips


def test_a_batch_that_compares_candidates_on_examples_is_a_whole_round(log):
    session = drinks(log, examples=30, horizon=None, confidence=0.9, algorithm="confident-top")
    rounds = finish(session)
    assert rounds <= session.result().round_trips


def test_an_agent_that_is_ahead_gets_its_next_pulls_though_others_are_not(log):
    """With sar-like local work, an agent prunes its own hand without asking the coordinator."""
    session = ct.ask_tell(range(12), 1, agents=2, horizon=200, algorithm="hkk", seed=1, log=log)
    mine = [pull for pull in session.ask() if pull.agent == 0]
    session.tell(mine, halves(mine))
    later = session.ask()
    assert {pull.agent for pull in later} == {0, 1}
    assert min(pull.number for pull in later if pull.agent == 0) > max(pull.number for pull in mine)


def test_every_candidate_is_asked_for_on_each_example_once(log):
    session = drinks(log, examples=["a", "b", "c", "d"], horizon=12, algorithm="uniform")
    pulls = session.ask()
    assert {pull.times for pull in pulls} == {1}
    pairs = [(pull.candidate, pull.example) for pull in pulls]
    assert len(pairs) == len(set(pairs)) == 12


# -- several callers


def test_several_threads_report_to_one_session(log):
    session = drinks(log)
    while pulls := session.ask():
        threads = [threading.Thread(target=session.tell, args=([pull], halves([pull]))) for pull in pulls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert session.result().complete


def report_in_a_process(log, agent):
    session = ct.Session(log)
    pulls = [pull for pull in session.ask() if pull.agent == agent]
    session.tell(pulls, halves(pulls))


@pytest.mark.slow
def test_several_processes_report_to_one_log(log):
    session = drinks(log, algorithm="uniform")
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=report_in_a_process, args=(log, agent)) for agent in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert session.ask() == []
    assert session.result().pulls == 48


def test_a_log_that_is_in_use_is_waited_for(log):
    session = drinks(log)
    other = RunLog(log)
    timer = threading.Timer(0.2, other.close)
    timer.start()
    assert session.ask()
    timer.join()


# -- what is refused


def refused(session, pulls, rewards, message, **more):
    before = session.ask()
    with pytest.raises(ct.InputError) as error:
        session.tell(pulls, rewards, **more)
    assert message in str(error.value)
    assert session.ask() == before, "nothing is half taken"


def replaced(pull, **changes):
    fields = {name: getattr(pull, name) for name in pull.__struct_fields__}
    return ct.AskedPull(**fields | changes)


def test_a_pull_that_was_never_asked_for_is_refused(log):
    session = drinks(log)
    pulls = session.ask()
    for wrong in (replaced(pulls[0], number=10**6), replaced(pulls[0], agent=7)):
        entries = [*pulls[1:], wrong]
        shown = f"pulls[{len(pulls) - 1}]: pull {wrong.number} of agent {wrong.agent} was not asked for"
        refused(session, entries, halves(entries), shown)


def test_a_pull_that_is_reported_twice_is_refused(log):
    session = drinks(log)
    pull = session.ask()[0].split()[0]
    refused(session, [pull, pull], [1, 1], "pulls[1]: pull 0 of agent 0 is in pulls[0] already")
    session.tell([pull], [0.25])
    refused(session, [pull], [0.25], "pulls[0]: pull 0 of agent 0 has a reward already: 0.25")
    refused(session, [pull], [1], "done.csv, line 2: pull 0", names=["done.csv, line 2"])


def test_a_pull_with_a_different_candidate_is_refused(log):
    session = drinks(log)
    pull = session.ask()[0].split()[0]
    refused(session, [replaced(pull, label="milk")], [1], "pull 0 of agent 0 is of candidate 'tea', not of 'milk'")


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        (2, "pulls[0]: the reward is 2, but a reward lies in [0, 1]"),
        (float("nan"), "pulls[0]: the reward is nan, but a reward lies in [0, 1]"),
        (None, "pulls[0]: the reward is None, which is not a number"),
        ("1", "pulls[0]: the reward is '1', which is not a number"),
    ],
)
def test_a_wrong_reward_is_refused(log, reward, message):
    session = drinks(log)
    refused(session, session.ask()[0].split()[:1], [reward], message)


def test_a_wrong_number_of_rewards_is_refused(log):
    session = drinks(log)
    pull = session.ask()[0]
    assert pull.times > 1
    refused(session, [pull], [], "rewards has 0 entries, but there are 1 pulls")
    refused(session, [pull], [0.5], f"pulls[0]: {pull.times} rewards are needed, but 0.5 is not a list")
    refused(session, [pull], [[0.5]], f"pulls[0]: {pull.times} rewards are needed, but there are 1")
    refused(session, 3, [], "pulls is 3, but a list is needed")
    refused(session, ["tea"], [1], "pulls[0] is 'tea', but a pull of ask() is needed")


def test_nothing_is_taken_after_the_end(log):
    session = drinks(log)
    pull = session.ask()[0]
    finish(session)
    refused(session, [replaced(pull, number=500)], halves([pull]), "was not asked for")


def test_a_result_before_the_end_says_what_is_missing(log):
    session = drinks(log)
    count = sum(pull.times for pull in session.ask())
    with pytest.raises(ct.InputError, match=f"the run is not complete: {count} pulls have no reward yet"):
        session.result()
    assert not session.best().complete


def test_a_report_without_rows_changes_nothing(log):
    session = drinks(log)
    session.ask()
    before = log.read_bytes()
    session.tell([], [])
    assert log.read_bytes() == before


# -- the log


def test_a_report_that_a_power_cut_has_torn_is_not_taken_in_part(log):
    session = drinks(log)
    session.ask()
    before = log.stat().st_size
    pulls = session.ask()
    session.tell(pulls, halves(pulls))
    written = log.read_bytes()
    assert {record.agent for record in read_log(log) if isinstance(record, Rewards)} == {0, 1}
    for size in range(before + 20, len(written), 200):
        log.write_bytes(written[:size])
        rows = sum(record.pulls for record in read_log(log) if isinstance(record, Rewards))
        assert rows in (0, sum(pull.times for pull in pulls))


def test_costs_and_notes_are_kept(log):
    session = drinks(log)
    pull = session.ask()[0].split()[0]
    session.tell([pull], [ct.Reward(1, cost=0.5, note="table 3")])
    [record] = [record for record in read_log(log) if isinstance(record, Rewards)]
    assert (record.notes, record.unpack_costs().tolist()) == (((0, "table 3"),), [0.5])
    finish(session)
    assert session.result().totals.cost == 0.5


def test_the_same_call_continues_and_a_different_one_is_refused(log):
    session = drinks(log, seed=None)
    pulls = session.ask()
    assert drinks(log, seed=None).ask() == pulls
    with pytest.raises(ct.FileError, match="horizon is 24 there and 30 here"):
        drinks(log, seed=None, horizon=30)
    with pytest.raises(ct.FileError, match="its candidates are different"):
        ct.ask_tell(["tea", "coffee", "water"], 1, agents=2, horizon=24, log=log)


def test_candidates_of_any_kind_are_given_back(log):
    candidates = [object(), object()]
    session = ct.ask_tell(candidates, 1, agents=1, horizon=8, seed=1, log=log)
    assert [pull.candidate for pull in session.ask()] == candidates
    assert [pull.candidate for pull in ct.Session(log).ask()] == ["object 0", "object 1"]
    assert [pull.candidate for pull in ct.Session(log, candidates=candidates).ask()] == candidates


def test_the_log_of_a_different_run_is_no_session(tmp_path):
    path = tmp_path / "run.ctlog"
    ct.identify(ct.BernoulliArms([0.9, 0.1]), 1, agents=1, horizon=10, checkpoint=path)
    with pytest.raises(ct.FileError, match="belongs to a run on BernoulliArms, but a session of ask_tell is needed"):
        ct.Session(path)
    with pytest.raises(ct.FileError, match="no such file"):
        ct.Session(tmp_path / "none.ctlog")


# -- arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"examples": []}, "examples is empty, but at least 1 example is needed"),
        ({"examples": 0}, "examples is 0, but a whole number of at least 1 is needed"),
        ({"by_agent": True, "agents": None}, "agents is missing: with by_agent=True"),
        ({"by_agent": True, "examples": [[1], [2, 3]]}, "examples has 2 lists of [1, 2] examples"),
        ({"by_agent": True, "examples": [[1], 2]}, "examples[1] is 2, but a list of examples is needed"),
        ({"horizon": None}, "give exactly one of horizon, budget and confidence"),
        ({"direction": "up"}, "direction is 'up'"),
    ],
)
def test_wrong_arguments_are_refused_before_a_log_is_written(log, arguments, message):
    with pytest.raises(ct.InputError) as error:
        drinks(log, **arguments)
    assert message in str(error.value)
    assert not log.exists()


def test_agents_follow_from_lists_of_examples(log):
    session = drinks(log, by_agent=True, agents=None, examples=[[1, 2, 3], [4, 5, 6]])
    assert {pull.agent for pull in session.ask()} == {0, 1}


def test_budgets_and_confidence_limit_a_session(tmp_path):
    budget = drinks(tmp_path / "budget", horizon=None, budget=30)
    finish(budget)
    assert budget.result().pulls <= 30
    confident = drinks(tmp_path / "confidence", horizon=None, confidence=0.9, max_horizon=300)
    finish(confident)
    assert confident.result().confidence == 0.9
