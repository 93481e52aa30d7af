"""Logs of an unfinished run over sites, with the status of its agents."""

from __future__ import annotations

import numpy as np
import pytest

import collabtop as ct
from collabtop.runlog.file import RunLog, read_log
from collabtop.runlog.format import Exchange, RemoteRun

MEANS = np.linspace(0.1, 0.9, 12)


def logged(path, **more):
    arms = ct.HeterogeneousArms(np.tile(MEANS[:, None], (1, 4)))
    return ct.identify(arms, 2, horizon=4_000, seed=5, algorithm="collab-top-noniid", checkpoint=path, **more)


def rewritten(source, path, change):
    """A log with the records of `source` after `change`."""
    log = RunLog(path)
    for record in change(read_log(source)):
        log.append(record)
    return log


@pytest.fixture
def half(tmp_path):
    """Makes logs of a run over sites that is half way, followed by more records; in use until `end` is called."""
    logs = []

    def make(*more, name="half.ctlog"):
        logged(tmp_path / "whole.ctlog")

        def change(records):
            header, *rest = records
            exchanges = [record for record in rest if isinstance(record, Exchange)]
            return [header, RemoteRun("r", (("north", 2), ("south", 2))), *rest[: rest.index(exchanges[1])], *more]

        logs.append(rewritten(tmp_path / "whole.ctlog", tmp_path / name, change))
        return tmp_path / name

    def end():
        for log in logs:
            log.close()

    make.end = end  # type: ignore[attr-defined]
    yield make
    end()
