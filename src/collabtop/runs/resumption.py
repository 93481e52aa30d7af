"""`resume`: continue a run from its checkpoint."""

from os import PathLike
from typing import Any, cast

import msgspec

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.registry import available_algorithms, make_algorithm
from collabtop.arms import Arms, FunctionArms, PullPolicy
from collabtop.arms.function import Pull
from collabtop.arms.policy import Failures
from collabtop.arms.rate import RateLimit
from collabtop.arms.tables import as_candidates
from collabtop.coordination.team import Team
from collabtop.errors import FileError, InputError
from collabtop.events import OnEvent
from collabtop.runlog.file import read_log
from collabtop.runlog.format import Header
from collabtop.runlog.logged_pulls import failure_mode_in
from collabtop.runs.checkpoint import other_run, read_header, same_value
from collabtop.runs.execute import Execution, OnInterrupt, Timeout
from collabtop.runs.result import Result
from collabtop.runs.spec import RunSpec, TeamName, make_team, with_workers
from collabtop.validation import wrong_value


def resume(
    checkpoint: str | PathLike[str],
    *,
    pull: Pull | None = None,
    candidates: Any = None,
    arms: Arms | None = None,
    policy: PullPolicy | None = None,
    workers: int | None = None,
    rate: RateLimit | None = None,
    algorithm: Algorithm | None = None,
    team: TeamName | Team = "local",
    timeout: Timeout | None = None,
    on_event: OnEvent | None = None,
    on_interrupt: OnInterrupt = "raise",
    progress: bool = False,
    watch: bool = False,
) -> Result:
    """Continue a run from its checkpoint: no completed pull is made again.

    The answer and the ledger are those of an uninterrupted run with the same seed. A finished run is returned again
    without a pull.

    Args:
        checkpoint: the file that `identify(..., checkpoint=...)` wrote.
        pull: the function that tries a candidate.
        candidates: the candidates, if they are not plain data (strings, numbers, lists, dictionaries), which the
            checkpoint holds itself.
        arms: instead of `pull`: the arms, if the run was started with arms.
        policy: what happens to pulls that fail from now on. By default the run stops at a failed pull, unless the
            checkpoint holds failed pulls; then they are handled as before.
        workers: how many pulls run at once; it may differ from the first run's.
        rate: how many calls may begin per second, or a `Rate`; it may differ from the first run's.
        algorithm: the algorithm, if it is one of your own that is not registered.
        team: where the agents run; it may differ from the first run's.
        timeout: as in `identify`.
        on_event: called with every event.
        on_interrupt: as in `identify`.
        progress: show the progress on stderr.
        watch: show the run on a page in the browser (needs the `watch` extra).

    Raises:
        FileError: the checkpoint is missing, damaged, or belongs to different arms.

    >>> import collabtop as ct, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "run.ctlog"
    >>> def score(prompt, rng):
    ...     return rng.random() < len(prompt) / 20
    >>> prompts = ["short", "polite", "step by step"]
    >>> first = ct.identify(prompts, 1, pull=score, agents=2, horizon=60, seed=1, checkpoint=path)
    >>> ct.resume(path, pull=score) == first
    True
    """
    header = read_header(checkpoint)
    spec = logged_spec(header, checkpoint, pull, candidates, arms, policy, algorithm, team, workers, rate)
    execution = Execution(
        spec,
        checkpoint=checkpoint,
        on_event=on_event,
        progress=progress,
        watch=watch,
        timeout=timeout,
        on_interrupt=on_interrupt,
    )
    return execution.run()


def logged_spec(
    header: Header,
    checkpoint: str | PathLike[str],
    pull: Pull | None,
    candidates: Any,
    arms: Arms | None,
    policy: PullPolicy | None,
    algorithm: Algorithm | None,
    team: TeamName | Team,
    workers: int | None,
    rate: RateLimit | None,
) -> RunSpec:
    """The run that a checkpoint holds, with what has to be passed again; what differs is refused."""
    arms = _arms(header, checkpoint, pull, candidates, arms, policy)
    same_value("the number of candidates", arms.n, header.n, checkpoint)
    same_value("direction", arms.unit.direction, header.direction, checkpoint)
    if arms.unit.bounds != header.bounds:
        raise other_run(checkpoint, f"bounds is {header.bounds} there and {arms.unit.bounds} here")
    if arms.fingerprint() != header.arms:
        raise other_run(checkpoint, "its candidates are different")
    chosen = _algorithm(header, checkpoint, algorithm)
    arms = with_workers(arms, workers, rate)
    if header.charge != "reported":
        arms = arms.with_calls(charge=header.charge)
    return RunSpec(
        arms=arms,
        problem=header.problem,
        algorithm=chosen,
        why=header.why,
        seed=header.seed,
        team=make_team(team, workers),
        budget=header.budget,
        costs=header.costs,
        name=header.name,
        notes=header.notes,
        doubling=header.doubling,
        extensions=header.extensions,
        workers=workers,
        privacy=header.privacy,
    )


def _arms(
    header: Header,
    path: str | PathLike[str],
    pull: Pull | None,
    candidates: Any,
    arms: Arms | None,
    policy: PullPolicy | None,
) -> Arms:
    if arms is not None:
        if pull is not None or candidates is not None or policy is not None:
            raise InputError("pull, candidates and policy do not apply with arms=: leave them out", argument="arms")
        return arms
    if not header.takes_pull:
        raise InputError(
            f"arms is missing: checkpoint {str(path)!r} belongs to a run on {header.arms_class}; pass them as arms=",
            argument="arms",
        )
    if pull is None:
        raise InputError(
            f"pull is missing: checkpoint {str(path)!r} belongs to a run on a function; pass it as pull=",
            argument="pull",
        )
    if candidates is None:
        if header.candidates is None:
            raise InputError(
                f"candidates is missing: those of checkpoint {str(path)!r} are not plain data, so it lacks them; "
                "pass the same ones again",
                argument="candidates",
            )
        candidates = logged_candidates(header.candidates, path)
    candidates = as_candidates(candidates)
    same_value("the number of candidates", len(candidates), header.n, path)
    if policy is None and (failures := failure_mode_in(read_log(path))) is not None:
        policy = PullPolicy(failures=cast(Failures, failures))
    return FunctionArms(
        candidates,
        pull,
        paired=header.paired,
        direction=header.direction,
        bounds=header.bounds,
        labels=header.labels,
        policy=policy,
    )


def logged_candidates(data: bytes, path: str | PathLike[str]) -> Any:
    """The candidates of a logged run that are plain data."""
    try:
        return msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise FileError(
            f"checkpoint {str(path)!r}: its candidates cannot be read ({error})", argument="checkpoint"
        ) from None


def _algorithm(header: Header, path: str | PathLike[str], algorithm: Algorithm | None) -> Algorithm:
    if algorithm is not None:
        if not isinstance(algorithm, Algorithm):
            raise wrong_value("algorithm", algorithm, "an algorithm object is needed")
        same_value("algorithm", algorithm.title, header.algorithm, path)
        return algorithm
    if header.algorithm not in available_algorithms():
        raise InputError(
            f"algorithm is missing: {header.algorithm!r} is not registered; pass it as algorithm=", argument="algorithm"
        )
    return make_algorithm(header.algorithm, **header.options)
