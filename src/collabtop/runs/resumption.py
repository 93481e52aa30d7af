"""Going on with a run from its checkpoint."""

from __future__ import annotations

from os import PathLike
from typing import Any, cast

import msgspec

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.registry import available_algorithms, make_algorithm
from collabtop.arms import Arms, FunctionArms, PullPolicy
from collabtop.arms.function import Pull, as_candidates
from collabtop.arms.policy import Failures
from collabtop.coordination.team import Team
from collabtop.errors import InputError
from collabtop.events import OnEvent
from collabtop.runlog.file import read_log
from collabtop.runlog.format import Header
from collabtop.runlog.recorder import failure_mode_in
from collabtop.runs.checkpoint import other_run, read_header, same_value
from collabtop.runs.execute import execute
from collabtop.runs.result import Result
from collabtop.runs.spec import RunSpec, make_problem, make_team


def resume(
    checkpoint: str | PathLike[str],
    *,
    pull: Pull | None = None,
    candidates: Any = None,
    arms: Arms | None = None,
    policy: PullPolicy | None = None,
    algorithm: Algorithm | None = None,
    team: str | Team = "local",
    on_event: OnEvent | None = None,
    progress: bool = False,
    watch: bool = False,
) -> Result:
    """Go on with a run from its checkpoint: nothing that was paid for is pulled again.

    The answer and the ledger are those of an undisturbed run with the same seed. A run that was finished is
    told again without a pull.

    Args:
        checkpoint: the file that `identify(..., checkpoint=...)` wrote.
        pull: the function that tries a candidate.
        candidates: the candidates, where they are not plain data (texts, numbers, lists, dictionaries), which
            the checkpoint holds itself.
        arms: instead of `pull`: the arms, where the run was given arms.
        policy: what happens to pulls that fail from now on; left out, the run stops at one, unless the
            checkpoint holds failed pulls, which are then treated as they were.
        algorithm: the algorithm, where it is one of your own that is not registered.
        team: where the agents run; need not be what it was.
        on_event: called with every event.
        progress: show how far the run is, on stderr.
        watch: show the run on a page in the browser (needs the `watch` extra).

    Raises:
        FileError: the checkpoint is missing, damaged, or of other arms.

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
    known = _arms(header, checkpoint, pull, candidates, arms, policy)
    same_value("the number of candidates", known.n, header.n, checkpoint)
    if known.fingerprint() != header.arms:
        raise other_run(checkpoint, "these are not the candidates that it is for")
    chosen = _algorithm(header, checkpoint, algorithm)
    problem = make_problem(known, header.m, header.agents, header.horizon)
    spec = RunSpec(known, problem, chosen, header.why, header.seed, make_team(team), header.budget, header.costs)
    return execute(spec, checkpoint=checkpoint, on_event=on_event, progress=progress, watch=watch)


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
            raise InputError("arms stand for themselves: leave out pull, candidates and policy")
        return arms
    if not header.takes_pull:
        raise InputError(
            f"arms is missing: checkpoint {str(path)!r} is of a run on {header.arms_class}, give them as arms="
        )
    if pull is None:
        raise InputError(f"pull is missing: checkpoint {str(path)!r} is of a run on a function, give it as pull=")
    if candidates is None:
        if header.candidates is None:
            raise InputError(
                f"candidates is missing: those of checkpoint {str(path)!r} are no plain data, so it cannot hold them; "
                "give the same ones again"
            )
        candidates = msgspec.msgpack.decode(header.candidates)
    candidates = as_candidates(candidates)
    same_value("the number of candidates", len(candidates), header.n, path)
    if policy is None and (failures := failure_mode_in(read_log(path))) is not None:
        policy = PullPolicy(failures=cast(Failures, failures))
    return FunctionArms(candidates, pull, labels=header.labels, policy=policy)


def _algorithm(header: Header, path: str | PathLike[str], algorithm: Algorithm | None) -> Algorithm:
    if algorithm is not None:
        same_value("algorithm", algorithm.title, header.algorithm, path)
        return algorithm
    if header.algorithm not in available_algorithms():
        raise InputError(f"algorithm is missing: {header.algorithm!r} is not registered here, give it as algorithm=")
    return make_algorithm(header.algorithm, **header.options)
