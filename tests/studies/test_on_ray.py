"""A study on a Ray cluster: the very files that a study on this machine's cores writes."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

import collabtop as ct
from collabtop.testing import ConstantArms


def make_study(arms=None, runs=30):
    arms = arms or ct.BernoulliArms([0.9, 0.6, 0.5, 0.3])
    return ct.Study(arms=arms, algorithms=["kzz", "uniform"], agents=2, horizon=[8, 40], runs=runs, seed=1)


@pytest.mark.slow
def test_the_files_are_those_of_a_study_on_one_core(tmp_path, three_nodes):
    study = make_study()
    there, here = study.run(tmp_path / "ray", team="ray"), study.run(tmp_path / "local", jobs=1)
    assert there.points() == here.points()
    names = sorted(path.name for path in (tmp_path / "local").iterdir())
    assert sorted(path.name for path in (tmp_path / "ray").iterdir()) == names
    for name in names:
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()
    assert study.run(team="ray", jobs=2).points() == here.points()


class SlowArms(ConstantArms):
    """Arms that say which process pulls them, and take their time."""

    def __init__(self, means, folder):
        super().__init__(means)
        self.folder = str(folder)

    def pull(self, arms, times, draws):
        with open(f"{self.folder}/{os.getpid()}", "a"):  # noqa: PTH123  (its name is a text: it travels)
            time.sleep(0.02)
        return super().pull(arms, times, draws)


@pytest.mark.slow
def test_a_process_that_is_killed_costs_no_row(tmp_path, three_nodes):
    workers = tmp_path / "workers"
    workers.mkdir()
    study = make_study(SlowArms([0.75, 0.5], workers), runs=25)

    def kill_one():
        deadline = time.monotonic() + 30
        while not (found := list(workers.iterdir())) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(int(found[0].name), signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    table = study.run(team="ray", jobs=2)
    killer.join()
    assert len(list(workers.iterdir())) >= 2
    assert len(table) == 25 * 4


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"team": "mars"}, "team is 'mars', but 'local' or 'ray' is needed for a study"),
        ({"address": "1.2.3.4:5"}, "address only applies with team 'ray'"),
    ],
)
def test_wrong_arguments_are_refused(asked, said):
    with pytest.raises(ct.InputError, match=said):
        make_study().run(**asked)
