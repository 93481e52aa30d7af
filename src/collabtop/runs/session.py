"""`ask_tell`: runs whose pulls are made outside the program, and reported days later or by different processes."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from os import PathLike
from typing import Any

from collabtop.algorithms.base import Algorithm
from collabtop.arms.calls import PullAttempt
from collabtop.arms.dataset import examples_by_agent
from collabtop.arms.draws import RewardsMissing
from collabtop.arms.reported import ReportedArms
from collabtop.arms.tables import as_candidates, as_examples
from collabtop.arms.unit import Bounds, Direction, Unit
from collabtop.errors import FileError, InputError
from collabtop.protocol.messages import Reply, Request
from collabtop.runlog.file import RunLog
from collabtop.runlog.format import Header, ReportedRewards
from collabtop.runlog.log_repair import pulls_in
from collabtop.runs.budget import Cost
from collabtop.runs.checkpoint import make_header, open_checkpoint, read_header, same_value, seed_in
from collabtop.runs.execute import Execution
from collabtop.runs.peeking import peek
from collabtop.runs.reported_rows import AskedPull, OpenPulls, checked_batches
from collabtop.runs.result import Result
from collabtop.runs.resumption import logged_candidates, logged_spec
from collabtop.runs.spec import make_spec
from collabtop.teams.local import LocalTeam
from collabtop.validation import whole_number

_SECONDS_FOR_LOCK = 30.0
"""How long a session waits for a different caller that is using its log."""


def ask_tell(
    candidates: Any,
    m: int,
    *,
    log: str | PathLike[str],
    agents: int | None = None,
    horizon: int | None = None,
    budget: float | None = None,
    cost: Cost | None = None,
    confidence: float | None = None,
    tolerance: float = 0.0,
    max_horizon: int | None = None,
    examples: Any = None,
    by_agent: bool = False,
    weights: Sequence[float] | None = None,
    paired: bool = False,
    direction: Direction = "maximize",
    bounds: Bounds = (0.0, 1.0),
    algorithm: str | Algorithm = "auto",
    options: dict[str, Any] | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> "Session":
    """Start a run whose pulls are made outside the program, or continue it.

    `session.ask()` lists the pulls that can be made now, `session.tell(pulls, rewards)` reports their rewards, in any
    order and in parts. All of it is kept in `log`: the same call, or `Session(log)`, continues in a later process.
    The result is that of `identify` with the same rewards.

    Args:
        candidates: the candidates to choose from (the paper's I): a list, a generator, `rows` of a data frame, or a
            dictionary whose keys are their labels.
        m: how many are wanted (m).
        log: the file that keeps the session.
        agents: how many agents share the work (K): the tables of a tasting, the regions of a test. 1 by default.
        horizon: how many pulls each agent may make (T).
        budget: instead of a horizon: how many pulls all agents may make together, or, with `cost`, what they may cost.
        cost: the price of one pull: one number, one number per candidate, or a function of the candidate.
        confidence: instead of a horizon: stop as soon as the answer is right with this probability.
        tolerance: with a confidence: an arm worse than the m-th best by at most this much counts as right.
        max_horizon: with a confidence: the most pulls an agent may make.
        examples: what the candidates are scored on, each example at most once per candidate, or the number of examples;
            with `by_agent` one list per agent, or the number per agent.
        by_agent: whether a candidate may be worth more to one agent than to another (non-IID), as in regions that
            differ. The best m are then those with the best average over all agents.
        weights: with `by_agent`, how much each agent counts in that average, such as the number of people in its
            region; equally, if omitted.
        paired: whether pulls of different candidates with the same `replicate` are made under the same conditions.
        direction: `"maximize"`, or `"minimize"` if small rewards are better.
        bounds: the smallest and the largest possible reward, or None if there are none.
        algorithm: a name (`available_algorithms()`), an algorithm object, or `"auto"`.
        options: options of an algorithm passed by name.
        seed: the same seed and rewards give the same run; by default one is drawn.
        name: a name for the run, shown in results and logs.

    Raises:
        InputError: an argument is wrong.
        FileError: the log belongs to a different run, is damaged, or is in use.

    >>> import collabtop as ct, pathlib, tempfile
    >>> log = pathlib.Path(tempfile.mkdtemp()) / "run.ctlog"
    >>> session = ct.ask_tell(["tea", "coffee", "milk"], m=1, agents=2, horizon=24, seed=7, log=log)
    >>> liked = {"tea": 0.5, "coffee": 0.75, "milk": 0.25}
    >>> while pulls := session.ask():
    ...     session.tell(pulls, [[liked[pull.candidate]] * pull.times for pull in pulls])
    >>> session.result().top
    ['coffee']
    """
    if horizon is None and budget is None and confidence is None:
        raise InputError("give exactly one of horizon, budget and confidence: none was given")
    count, agents = _examples(examples, agents, by_agent=by_agent)
    owners = agents if by_agent else None
    unit = Unit(direction, bounds)
    arms = ReportedArms(candidates, examples=count, paired=paired, agents=owners, weights=weights, unit=unit)
    spec = make_spec(
        arms,
        m,
        agents=agents,
        horizon=horizon,
        budget=budget,
        cost=cost,
        confidence=confidence,
        tolerance=tolerance,
        max_horizon=max_horizon,
        algorithm=algorithm,
        options=options,
        seed=seed_in(log) if seed is None else seed,
        name=name,
    )
    open_checkpoint(log, make_header(spec), wait=_SECONDS_FOR_LOCK)[0].close()
    return Session(log, candidates=arms.candidates, algorithm=spec.algorithm)


def _examples(examples: Any, agents: int | None, *, by_agent: bool) -> tuple[int | None, int | None]:
    """The number of examples (per agent, with `by_agent`), and of agents."""
    if by_agent and agents is None and not isinstance(examples, Iterable):
        raise InputError(
            "agents is missing: with by_agent=True, pass how many agents there are, such as agents=3", argument="agents"
        )
    if examples is None or not isinstance(examples, Iterable):
        return None if examples is None else whole_number("examples", examples, least=1), agents
    if not by_agent:
        return len(as_examples(examples)), agents
    own = examples_by_agent(examples)
    sizes = set(map(len, own))
    if len(sizes) != 1 or agents not in (None, len(own)):
        raise InputError(
            f"examples has {len(own)} lists of {sorted(sizes)} examples, but with by_agent=True one list per "
            "agent is needed, all of the same length",
            argument="examples",
        )
    return sizes.pop(), len(own)


class Session:
    """A run whose pulls are made outside the program; `ask_tell` starts one, and this opens it again from its log.

    Several threads and processes may use the same log: each call waits for the others.

    Args:
        log: the file that `ask_tell` wrote.
        candidates: the candidates, if they are not plain data (strings, numbers, lists, dictionaries); otherwise
            `AskedPull.candidate` is the label.
        algorithm: the algorithm, if it is one of your own that is not registered.

    Raises:
        FileError: the file is missing, damaged, or not the log of a session.

    >>> import collabtop as ct, pathlib, tempfile
    >>> log = pathlib.Path(tempfile.mkdtemp()) / "run.ctlog"
    >>> pulls = ct.ask_tell(["tea", "coffee"], m=1, agents=1, horizon=8, seed=7, log=log).ask()
    >>> [(pull.candidate, pull.times) for pull in ct.Session(log).ask()]
    [('tea', 4), ('coffee', 4)]
    """

    def __init__(self, log: str | PathLike[str], *, candidates: Any = None, algorithm: Algorithm | None = None) -> None:
        self._path = log
        header = read_header(log)
        arms = _arms(header, log, candidates)
        self._spec = logged_spec(header, log, None, None, arms, None, algorithm, _WaitingTeam(), None, None)
        assert isinstance(self._spec.arms, ReportedArms)
        self._arms = self._spec.arms  # perhaps a copy
        self._lock = threading.Lock()
        self._open = OpenPulls()
        self._reported = -1
        """The pulls in the log when the open ones were determined, or -1: they have to be determined again."""
        self._result: Result | None = None

    def ask(self) -> list[AskedPull]:
        """The pulls that can be made now and have no reward yet; none when the run is complete.

        It is what the round needs. A pull that was asked for before is listed until its reward is there, so callers
        that share the work divide the list among them.
        """
        with self._lock:
            self._update().close()
            return [self._asked(attempt) for attempt in self._open.groups(single=self._arms.pull_limit is not None)]

    def tell(self, pulls: Sequence[AskedPull], rewards: Sequence[Any], *, names: Sequence[str] = ()) -> None:
        """Report rewards. All of them are taken, and are on disk when this returns; or none is, with an error.

        Args:
            pulls: pulls of `ask`, or some of them. `AskedPull.split` divides one into single pulls.
            rewards: for each of them a list of `times` rewards, or the reward itself if `times` is 1. A reward is a
                number or a `Reward` with its cost and a note.
            names: what errors call each entry, such as the line of a file.

        Raises:
            InputError: a pull was not asked for, has a reward already or is of a different candidate, or a reward is
                not valid; the error names the entry.

        >>> import collabtop as ct, pathlib, tempfile
        >>> log = pathlib.Path(tempfile.mkdtemp()) / "run.ctlog"
        >>> session = ct.ask_tell(["tea", "coffee"], m=1, agents=1, horizon=8, seed=7, log=log)
        >>> tea, coffee = session.ask()
        >>> session.tell([coffee, *tea.split()[:2]], [[1, 1, 0, 1], 0, 1])
        >>> [(pull.candidate, pull.times) for pull in session.ask()]
        [('tea', 2)]
        """
        with self._lock, closing(self._update()) as log:
            batches = checked_batches(pulls, rewards, names, self._open, self._arms, log.records)
            if not batches:
                return
            log.note_time()
            reported = ReportedRewards(batches)
            log.append(reported, sync=True)
            self._reported = self._reported + reported.pulls if self._open.remove(batches) else -1

    def best(self) -> Result:
        """The answer so far, as `peek` gives it."""
        return peek(self._path)

    def result(self) -> Result:
        """The result of the run.

        Raises:
            InputError: the run is not complete: rewards of some pulls are missing.
        """
        with self._lock:
            self._update().close()
            if self._result is None:
                raise InputError(
                    f"the run is not complete: {len(self._open.positions):,} pulls have no reward yet. ask() lists "
                    "them, and best() is the answer so far"
                )
            return self._result

    def _update(self) -> RunLog:
        """The log, open for writing, when the pulls that are open have been determined from all of it."""
        log = RunLog(self._path, advice="try again", wait=_SECONDS_FOR_LOCK)
        try:
            reported = pulls_in(log.records)
            if reported != self._reported:
                self._run(log)
                self._reported = reported
        except BaseException:
            log.close()
            raise
        return log

    def _run(self, log: RunLog) -> None:
        """Run from the beginning with the rewards of the log, until rewards are missing or the run is complete."""
        self._arms.missing = []
        try:
            self._result = Execution(self._spec, log=log).run()
        except RewardsMissing:
            self._result = None
        self._open = OpenPulls(self._arms.missing)

    def _asked(self, attempt: PullAttempt) -> AskedPull:
        arms = self._arms
        return AskedPull(
            attempt.agent,
            attempt.number,
            arms.candidates[attempt.arm],
            arms.label(attempt.arm),
            attempt.replicate,
            arms.example(attempt),
            attempt.times,
        )


def _arms(header: Header, path: str | PathLike[str], candidates: Any) -> ReportedArms:
    """The arms of a session."""
    if header.arms_class != ReportedArms.__name__:
        raise FileError(
            f"log {str(path)!r} belongs to a run on {header.arms_class}, but a session of ask_tell is needed",
            argument="log",
        )
    if candidates is None:
        candidates = header.labels if header.candidates is None else logged_candidates(header.candidates, path)
    candidates = as_candidates(candidates)
    same_value("the number of candidates", len(candidates), header.n, path)
    agents = None if header.iid else header.agents
    return ReportedArms(
        candidates,
        examples=None if header.pull_limit is None else header.pull_limit // (agents or 1),
        paired=header.paired,
        agents=agents,
        weights=header.weights,
        unit=header.unit,
        labels=header.labels,
    )


class _WaitingTeam(LocalTeam):
    """Local agents, of which those without rewards do not keep the others from asking for theirs."""

    def deliver(self, requests: Sequence[Request]) -> Sequence[Reply]:
        """Let each agent answer; raise `RewardsMissing` if one of them could not."""
        replies = list(self._replies(requests))
        if len(replies) < len(requests):
            raise RewardsMissing
        return replies

    def _replies(self, requests: Sequence[Request]) -> Iterator[Reply]:
        for request in requests:
            try:
                yield from super().deliver([request])
            except RewardsMissing:
                continue
