"""Shared by all tests: Hypothesis profiles, a clean algorithm registry, and a Ray cluster with three nodes."""

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

collect_ignore = ["docs/site_doctests.py"]  # needs the docs extra; building the site runs it

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile("short", derandomize=True, deadline=None, max_examples=8, suppress_health_check=_SLOW)
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=200, suppress_health_check=_SLOW)
settings.register_profile("thorough", deadline=None, max_examples=5_000, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))


@pytest.fixture(autouse=True)
def _restore_registry() -> Iterator[None]:
    """Remove the algorithms that a test or a doctest registered."""
    before = dict(registry._catalogue)
    yield
    registry._catalogue.clear()
    registry._catalogue.update(before)


@pytest.fixture
def left_behind() -> Callable[[], list[str]]:
    """List the names of collabtop's threads and child processes that this test started and that still run."""

    def running() -> list[Any]:
        threads = [thread for thread in threading.enumerate() if thread.name.startswith("collabtop")]
        return threads + multiprocessing.active_children()

    before = running()
    return lambda: [task.name for task in running() if task not in before]


# Examples of checks that make hundreds of runs, and all tests that start a Ray cluster.
_SLOW_EXAMPLES = ("testing/__init__.py", "docs/extending.md", "docs/ray.md")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what takes long as slow, where a decorator cannot."""
    for item in items:
        path = item.nodeid.partition("::")[0]
        if path.endswith(_SLOW_EXAMPLES) or "ray" in Path(path).stem.split("_"):
            item.add_marker(pytest.mark.slow)


# Test files with a module-scoped fixture that takes seconds.
_FILES_WITH_SLOW_FIXTURES = ("test_reproduce.py", "test_planner.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Under pytest-xdist, run tests that share an expensive fixture in the same process, so it is created once."""
    from xdist.scheduler import LoadScopeScheduling

    class GroupBySharedFixture(LoadScopeScheduling):  # type: ignore[misc]
        """One group for all files with "ray" in their name, one per file with a slow fixture; other tests singly."""

        def _split_scope(self, nodeid: str) -> str:
            file = Path(nodeid.partition("::")[0]).name
            if "ray" in file:
                return "ray"
            return file if file in _FILES_WITH_SLOW_FIXTURES else nodeid

    return GroupBySharedFixture(config, log)


# With its defaults, Ray takes a minute to notice that a node is gone.
_HEALTH_CHECKS = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 1000,
    "health_check_failure_threshold": 3,
}


class RayCluster:
    """A Ray cluster on this machine: a head node and two worker nodes."""

    def __init__(self) -> None:
        self.ray = import_module("ray")
        Cluster = import_module("ray.cluster_utils").Cluster  # noqa: N806
        self._size: dict[str, Any] = {"num_cpus": 4, "object_store_memory": 80 << 20}
        head = {**self._size, "include_dashboard": False, "_system_config": _HEALTH_CHECKS}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address = self._cluster.address
        self._workers = [self._cluster.add_node(**self._size) for _ in range(2)]
        self.ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)

    def kill(self, node: str) -> None:
        """Kill a worker node and all its processes, as a power cut would."""
        (worker,) = (worker for worker in self._workers if worker.node_id.startswith(node))
        self._workers.remove(worker)
        psutil = import_module("psutil")  # a dependency of Ray
        (raylet,) = worker.all_processes["raylet"]
        processes = psutil.Process(raylet.process.pid).children(recursive=True)
        self._cluster.remove_node(worker, allow_graceful=False)
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def workers(self) -> list[str]:
        """The ids of the worker nodes, shortened to eight characters."""
        return [worker.node_id[:8] for worker in self._workers]

    def replace_killed(self) -> None:
        """Add worker nodes until there are two again."""
        while len(self._workers) < 2:
            self._workers.append(self._cluster.add_node(**self._size))

    def close(self) -> None:
        """Disconnect and stop all nodes."""
        self.ray.shutdown()
        self._cluster.shutdown()


@pytest.fixture(scope="session")
def three_nodes() -> Iterator[RayCluster]:
    """A Ray cluster, started once for all tests in files with "ray" in their name."""
    with (
        tempfile.TemporaryDirectory(prefix="ct-", dir="/tmp", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_TMPDIR", folder)
        (Path(folder) / "ray").mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # caused by Ray itself
            nodes = RayCluster()
        try:
            yield nodes
        finally:
            nodes.close()
