"""The header of a checkpoint, and whether a log belongs to a run. `runlog.file` reads and writes the file itself."""

from os import PathLike
from typing import Any

import msgspec

from collabtop.arms.tables import plain_data
from collabtop.errors import FileError
from collabtop.runlog.file import RunLog, open_log, read_log
from collabtop.runlog.format import MAX_AGENTS, MAX_ARMS, MAX_HORIZON, MAX_WEIGHTED, Extended, Header, Record, answer_in
from collabtop.runlog.legs import Leg, extended_header, last_leg
from collabtop.runs.spec import RunSpec
from collabtop.validation import wrong_value

_NAMES = {"n": "the number of candidates", "arms": "the candidates", "options": "the algorithm's options"}


def make_header(spec: RunSpec, *, logged: bool = True) -> Header:
    """What a checkpoint states about its run; what takes time for many arms is left out unless it is `logged`."""
    arms, problem, algorithm = spec.arms, spec.problem, spec.algorithm
    return Header(
        n=problem.n,
        m=problem.m,
        agents=problem.agents,
        horizon=problem.horizon,
        seed=spec.seed,
        algorithm=algorithm.title,
        options=algorithm.options,
        why=spec.why,
        confidence=algorithm.options["confidence"] if algorithm.stops_early else None,
        arms=arms.fingerprint() if logged else "",
        arms_class=type(arms).__name__,
        takes_pull=arms.takes_pull,
        iid=arms.iid,
        labels=arms.labels,
        candidates=plain_data(arms.candidates) if logged and arms.candidates is not None else None,
        paired=arms.paired,
        pull_limit=arms.pull_limit,
        sample_size=arms.sample_size,
        notes=spec.notes,
        budget=spec.budget,
        costs=spec.costs,
        metered=spec.is_metered,
        charge=spec.arms.call_options.charge,
        direction=arms.unit.direction,
        bounds=arms.unit.bounds,
        name=spec.name,
        doubling=spec.doubling,
        extensions=spec.extensions,
        numbered=spec.extensions > 0 and problem.numbered,
        weights=arms.weights,
        privacy=spec.privacy,
    )


def open_checkpoint(
    path: str | PathLike[str], header: Header, extension: Extended | None = None, *, wait: float = 0.0
) -> tuple[RunLog, Leg]:
    """Open a checkpoint for this run, or for an extension of it; one that belongs to a different run is refused.

    Returns the log and its last leg. If an extension is given, it may have begun already. A log that is in use is
    waited for, up to `wait` seconds.
    """
    _check_size(header)
    log = open_log(path, header, lambda _: None, wait=wait)
    try:
        leg = last_leg(log.records or [header])
        logged: Record = log.records[0] if log.records else header
        if leg is not None and (header.extensions or not header.doubling):
            logged = leg.header
        if extension is not None and leg is not None and leg.header.extensions < header.extensions:
            logged = extended_header(leg.header, extension)
        if leg is None or _plain(logged) != _plain(header):
            raise other_run(path, _difference(logged, header))
    except BaseException:
        log.close()
        raise
    return log, leg


def _check_size(header: Header) -> None:
    """Refuse a run whose log no reader would accept."""
    cells = 0 if header.weights is None else header.n * header.agents
    for name, count, most, what in (
        ("n", header.n, MAX_ARMS, "candidates"),
        ("agents", header.agents, MAX_AGENTS, "agents"),
        ("horizon", header.horizon, MAX_HORIZON, "time steps"),
        ("the number of candidates times agents", cells, MAX_WEIGHTED, "if agents have weights"),
    ):
        if count > most:
            raise wrong_value(name, count, f"a run with a checkpoint has at most {most:,} {what}", "checkpoint")


def read_header(path: str | PathLike[str]) -> Header:
    """The header of a checkpoint: of its last leg, if the run was extended."""
    return leg_of(read_log(path), path).header


def leg_of(records: list[Record], path: str | PathLike[str]) -> Leg:
    """The last leg of the run that a log holds."""
    leg = last_leg(records)
    if leg is None:
        raise FileError(
            f"checkpoint {str(path)!r} holds no run yet: start one with identify(..., checkpoint=...)",
            argument="checkpoint",
        )
    return leg


def seed_in(path: str | PathLike[str]) -> int | None:
    """The seed of the run that a checkpoint holds, or None if there is none yet."""
    try:
        records = read_log(path)
    except FileError:
        return None
    return records[0].seed if records and isinstance(records[0], Header) else None


def is_finished(path: str | PathLike[str]) -> bool:
    """Whether a checkpoint exists and holds the answer of its run.

    >>> is_finished("never-written.ctlog")
    False
    """
    try:
        return answer_in(read_log(path)) is not None
    except FileError:
        return False


def _plain(record: Record) -> Any:
    """A header as it is on disk; the name, and why the algorithm was chosen, do not matter."""
    plain = msgspec.msgpack.decode(msgspec.msgpack.encode(record))
    return {name: value for name, value in plain.items() if name not in ("why", "name")}


def _difference(logged: Record, header: Header) -> str:
    if not isinstance(logged, Header):
        return "it is not the log of a run"
    if logged.extensions > header.extensions:
        return f"it was extended to a horizon of {logged.horizon:,}, so continue it with resume()"
    names = ("algorithm", "m", "agents", "n", "direction", "bounds", "arms", "options", "horizon", "privacy", "seed")
    for name in names:
        theirs, ours = getattr(logged, name), getattr(header, name)
        if theirs != ours:
            if name == "arms":
                return "its candidates are different"
            return f"{_NAMES.get(name, name)} is {theirs!r} there and {ours!r} here"
    return "it was started with different arguments"


def same_value(name: str, given: Any, logged: Any, path: str | PathLike[str]) -> None:
    """Refuse an argument that differs from the checkpoint's."""
    if given is not None and given != logged:
        raise other_run(path, f"{name} is {logged!r} there and {given!r} here")


def other_run(path: str | PathLike[str], why: str) -> FileError:
    """The error for a checkpoint that does not belong to this run."""
    return FileError(
        f"checkpoint {str(path)!r} belongs to a different run: {why}. Use a different file or delete this one",
        argument="checkpoint",
    )
