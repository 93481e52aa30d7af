"""`peek`: the answer so far of a run, from its log, while a different process may be writing it."""

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

import numpy as np

from collabtop.coordination.coordinator import Outcome
from collabtop.coordination.scoreboard import Scoreboard
from collabtop.protocol.ledger import Entry, Ledger, Round, TransportStats
from collabtop.runlog.file import read_log
from collabtop.runlog.format import Exchange, Header, Record
from collabtop.runlog.log_state import LogState, lost_in
from collabtop.runs.checkpoint import leg_of
from collabtop.runs.observed import observed_in
from collabtop.runs.partial import partial_outcome
from collabtop.runs.replay import Replay
from collabtop.runs.result import Result
from collabtop.runs.resumption import logged_candidates


def peek(checkpoint: str | PathLike[str]) -> Result:
    """The answer so far of the run that a checkpoint holds; the process that writes it is not disturbed.

    As with `Run.best`, `complete` is False until the run has ended; then it is the run's result.

    Args:
        checkpoint: the file that `identify(..., checkpoint=...)` writes.

    Raises:
        FileError: the file is missing, damaged, or holds no run yet.

    >>> import collabtop as ct, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.ctlog"
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1])
    >>> result = ct.identify(arms, m=1, agents=2, horizon=300, seed=7, checkpoint=path)
    >>> ct.peek(path) == result
    True
    """
    records = read_log(checkpoint)
    leg = leg_of(records, checkpoint)
    replay = _replayed(leg.header, leg.records)
    try:
        data = leg.header.candidates
        candidates = None if data is None else logged_candidates(data, checkpoint)
        return logged_result(LogState(records), leg.header, None if replay.error else replay, candidates)
    finally:
        replay.close()


def _replayed(header: Header, records: Iterable[Record]) -> Replay:
    exchanges = [record for record in records if isinstance(record, Exchange)]
    replay = Replay(header, tolerates_loss=any(map(lost_in, exchanges)))
    for exchange in exchanges:
        replay.add(exchange)
    return replay


def logged_result(
    state: LogState, header: Header, replay: Replay | None, candidates: Sequence[Any] | None = None
) -> Result:
    """The result of a logged run, or the answer so far; without a replay, only what the records themselves tell."""
    tally = state.tally
    seen = tally if tally.pulls.any() and header.privacy is None else None  # it has the rewards without noise
    complete = state.top is not None and (replay is None or replay.done)
    outcome = _outcome(state, header) if replay is None else replay.outcome()
    if not complete:
        outcome = partial_outcome(outcome, header.problem, header.seed, seen, under_way=not header.extensions)
    observed = None if seen is None else observed_in(seen, header.unit)
    labels = header.labels or tuple(map(str, range(header.n)))
    failures = {labels[arm]: count for arm, count in enumerate(tally.failed.tolist()) if count}
    totals = state.calls.totals()
    return Result(
        header,
        outcome,
        observe=lambda: observed,
        failures=failures,
        totals=totals,
        complete=complete,
        candidates=candidates,
    )


def _outcome(state: LogState, header: Header) -> Outcome:
    """What the records of a run tell without its algorithm."""
    board, arms = Scoreboard(header.n, bounded=header.unit.bounded), np.arange(header.n)
    if state.top is not None:
        means = state.tally.means[state.top]
        board.accept_unseen(np.array(state.top), means if header.privacy is None else np.full_like(means, np.nan), "")
        board.reject(np.setdiff1d(arms, state.top), 0, "")
    entries = (Entry(0, *key, kind.messages, kind.words, kind.bits) for key, kind in sorted(state.messages.items()))
    ledger = Ledger(tuple(entries), state.round_trips, TransportStats())
    pulls = state.agent_pulls
    totals = Round(0, "", header.n, state.pulls, int(pulls.max()), state.words, state.bits, state.round_trips)
    agent_pulls = tuple(pulls.tolist())
    return Outcome(board.verdict(unit=header.unit), (totals,), ledger, (), agent_pulls, agent_pulls)
