"""A Ray cluster of three nodes on this machine, started once for all tests that need one."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

SYSTEM = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}


class ThreeNodes:
    """A head and two more nodes; one that was killed is replaced by `mend`."""

    def __init__(self) -> None:
        from collabtop.teams.ray_cluster import import_ray

        self.ray = import_ray()
        from ray.cluster_utils import Cluster

        self._size: dict[str, Any] = {"num_cpus": 4, "object_store_memory": 80 << 20}
        head = {**self._size, "include_dashboard": False, "_system_config": SYSTEM}
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
        self.ray.shutdown()
        self._cluster.shutdown()


@pytest.fixture(scope="session")
def three_nodes() -> Iterator[ThreeNodes]:
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
