"""For all tests: how hard Hypothesis tries, a registry that is as it was, and a Ray cluster of three nodes."""

from __future__ import annotations

import logging
import multiprocessing
import os
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from collabtop.algorithms import registry

collect_ignore = ["docs/site_doctests.py"]  # needs what only the site needs; building the site runs it

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile("short", derandomize=True, deadline=None, max_examples=8, suppress_health_check=_SLOW)
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=200, suppress_health_check=_SLOW)
settings.register_profile("thorough", deadline=None, max_examples=5_000, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


@pytest.fixture(autouse=True)
def _registry_as_it_was() -> Iterator[None]:
    """Take back what a test (or a doctest) registered."""
    before = dict(registry._catalogue)
    yield
    registry._catalogue.clear()
    registry._catalogue.update(before)


@pytest.fixture
def left_behind() -> Callable[[], list[str]]:
    """Threads and processes of ours that this test has started and that are still there; not those of other tests."""

    def ours() -> list[Any]:
        return [
            it for it in threading.enumerate() if it.name.startswith("collabtop")
        ] + multiprocessing.active_children()

    before = ours()
    return lambda: [it.name for it in ours() if it not in before]


# Files whose tests look at one run of a command that takes seconds.
_SHARING = ("test_reproduce.py", "test_planner.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Under pytest-xdist: tests that share something dear go to one process, so that it is made once."""
    from xdist.scheduler import LoadScopeScheduling

    class TogetherWhatShares(LoadScopeScheduling):
        """All tests one by one, but those of files named after Ray together, and of files with a dear fixture."""

        def _split_scope(self, nodeid: str) -> str:
            file = Path(nodeid.partition("::")[0]).name
            if "ray" in file:
                return "ray"
            return file if file in _SHARING else nodeid

    return TogetherWhatShares(config, log)


# Ray takes a minute to notice that a node is gone, unless it is asked to look more often.
_HEALTH = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}


class ThreeNodes:
    """A head and two more nodes; one that was killed is replaced by `mend`."""

    def __init__(self) -> None:
        self.ray = import_module("ray")
        Cluster = import_module("ray.cluster_utils").Cluster  # noqa: N806
        self._size: dict[str, Any] = {"num_cpus": 4, "object_store_memory": 80 << 20}
        head = {**self._size, "include_dashboard": False, "_system_config": _HEALTH}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address = self._cluster.address
        self._others = [self._cluster.add_node(**self._size) for _ in range(2)]
        self.ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)

    def kill(self, node: str) -> None:
        """Kill a node, its hosts and all, as a power cut would."""
        (doomed,) = (it for it in self._others if it.node_id.startswith(node))
        self._others.remove(doomed)
        psutil = import_module("psutil")  # Ray brings it
        (raylet,) = doomed.all_processes["raylet"]
        hosts = psutil.Process(raylet.process.pid).children(recursive=True)
        self._cluster.remove_node(doomed, allow_graceful=False)
        for process in hosts:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def others(self) -> list[str]:
        """The nodes that can be killed, by the first letters of their names."""
        return [it.node_id[:8] for it in self._others]

    def mend(self) -> None:
        """Have three nodes again."""
        while len(self._others) < 2:
            self._others.append(self._cluster.add_node(**self._size))

    def close(self) -> None:
        """End it all."""
        self.ray.shutdown()
        self._cluster.shutdown()


@pytest.fixture(scope="session")
def three_nodes() -> Iterator[ThreeNodes]:
    """A Ray cluster on this machine, started once for all tests that need one (in files named after Ray)."""
    with (
        tempfile.TemporaryDirectory(prefix="ct-", dir="/tmp", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_TMPDIR", folder)
        (Path(folder) / "ray").mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Ray does itself
            nodes = ThreeNodes()
        try:
            yield nodes
        finally:
            nodes.close()
