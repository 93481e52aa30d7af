"""The way to a Ray cluster: join one, or start one on this machine; and end only what was started."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from collabtop.errors import InputError
from collabtop.validation import require

_OBJECT_STORE = 100 << 20
"""Bytes of shared memory for a Ray of our own: agents send little, and Ray would take a third of the machine's."""

_SOCKET_PATH = 107 - 85
"""How long the name of the folder for temporary files may be: the kernel limits the names of sockets in it."""

_TOKEN = secrets.token_hex(32)
"""What processes of a Ray of our own show each other; kept in this process and those it starts, and in no file."""


class Cluster(msgspec.Struct, frozen=True):
    """A connection to Ray."""

    ray: Any
    """The package."""
    is_ours: bool
    """Whether we started it."""


def require_ray() -> None:
    """Check that Ray is installed, without importing it, which takes a while."""
    require("ray", "ray", what="team 'ray'")


def import_ray() -> Any:
    """The package ray."""
    require_ray()
    return import_module("ray")


def module_folders() -> list[str]:
    """Where this process finds modules."""
    return [str(Path(path).resolve()) for path in sys.path]


def add_folders(folders: Sequence[str]) -> None:
    """Find the user's modules where they are for the coordinator, if those folders are here too."""
    sys.path += [folder for folder in folders if folder not in sys.path and Path(folder).is_dir()]


@contextlib.contextmanager
def joined_cluster(address: str | None, cpus: float) -> Iterator[Cluster]:
    """A connection to Ray, for as long as it is needed.

    Where this process is connected already, that connection is used and left as it was. Else the cluster at
    `address` (or at the environment's RAY_ADDRESS) is joined, and left again. Else a Ray is started here, with
    at least so many CPUs, and ended.
    """
    ray = import_ray()
    if ray.is_initialized():
        _check_address(ray, address)
        yield Cluster(ray, is_ours=False)
    elif (address := address or os.environ.get("RAY_ADDRESS")) not in (None, "", "local"):
        with _signals_as_they_were(), contextlib.ExitStack() as stack:
            _join(ray, address)
            stack.callback(ray.shutdown)
            yield Cluster(ray, is_ours=False)
    else:
        with _signals_as_they_were(), _private_folder() as folder, contextlib.ExitStack() as stack:
            stack.callback(ray.shutdown)  # also when Ctrl-C comes while it starts
            _start(ray, folder, cpus)
            yield Cluster(ray, is_ours=True)


def _check_address(ray: Any, address: str | None) -> None:
    here = ray.get_runtime_context().gcs_address
    if address not in (None, "auto", here):
        raise InputError(
            f"address is {address!r}, but this process is connected to the Ray at {here}: leave the address out, "
            "or call ray.shutdown() first",
            argument="address",
        )


def _join(ray: Any, address: str | None) -> None:
    try:
        _init(ray, address=address)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        said = str(error).strip().splitlines()
        raise InputError(
            f"address is {address!r}, but no Ray can be joined there: {said[0] if said else error!r}",
            argument="address",
        ) from None


def _start(ray: Any, folder: Path, cpus: float) -> None:
    settings = {"RAY_USAGE_STATS_ENABLED": "0"}
    # Left alone, Ray writes a token into the home folder, where everybody can read it.
    if "RAY_AUTH_TOKEN" not in os.environ and "RAY_AUTH_TOKEN_PATH" not in os.environ:
        settings["RAY_AUTH_TOKEN"] = _TOKEN
    with _environment(settings):
        _init(
            ray,
            address="local",
            num_cpus=max(os.cpu_count() or 1, int(-(-cpus // 1))),
            include_dashboard=False,
            object_store_memory=_OBJECT_STORE,
            _temp_dir=str(folder),
        )


def _init(ray: Any, **arguments: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what will be different in later versions of Ray
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **arguments)


@contextlib.contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    # Ray itself sets RAY_AUTH_MODE: that would tell a Ray that somebody else starts later what to do.
    before = {name: os.environ.get(name) for name in (*settings, "RAY_AUTH_MODE")}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _private_folder() -> Iterator[Path]:
    base = tempfile.gettempdir()
    outer = Path(tempfile.mkdtemp(prefix="ct-", dir=base if len(base) <= _SOCKET_PATH else "/tmp"))
    try:
        yield outer / "r"  # Ray lets everybody into its folder, so it is inside one that lets in nobody
    finally:
        for _ in range(3):  # a process that is about to end may still write
            shutil.rmtree(outer, ignore_errors=True)
            if not outer.exists():
                break


@contextlib.contextmanager
def _signals_as_they_were() -> Iterator[None]:
    """Take back what Ray does to this process: how it ends when told to, and how errors are shown."""
    in_main = threading.current_thread() is threading.main_thread()
    handler, hook = signal.getsignal(signal.SIGTERM), sys.excepthook
    try:
        yield
    finally:
        sys.excepthook = hook
        if in_main and handler is not None:
            signal.signal(signal.SIGTERM, handler)


@contextlib.contextmanager
def placed(cluster: Cluster, hosts: int, resources: Mapping[str, float], limit: float) -> Iterator[Any]:
    """Room for so many hosts, spread over the nodes; given back at the end."""
    ray = cluster.ray
    util = import_module("ray.util")
    group = util.placement_group([dict(resources)] * hosts, strategy="SPREAD")
    try:
        if not group.wait(timeout_seconds=limit):
            there = {name: amount for name, amount in ray.cluster_resources().items() if ":" not in name}
            raise InputError(
                f"the Ray cluster has no room for {hosts} hosts with {dict(resources)} each (waited {limit:g} s): it "
                f"has {_amounts(there)} in all; ask for fewer hosts or resources, or add nodes"
            )
        yield group
    finally:
        if ray.is_initialized():  # else the group is gone, and asking would start another Ray
            with contextlib.suppress(Exception):
                util.remove_placement_group(group)


def _amounts(resources: Mapping[str, float]) -> dict[str, float]:
    return {name: resources[name] for name in sorted(resources) if name not in ("memory", "object_store_memory")}


def actor_options(group: Any, resources: Mapping[str, float], runtime_env: Mapping[str, Any] | None) -> dict[str, Any]:
    """How a host's actor is made: in its place, and never restarted behind our back."""
    strategies = import_module("ray.util.scheduling_strategies")
    others = {name: amount for name, amount in resources.items() if name not in ("CPU", "GPU", "memory")}
    options: dict[str, Any] = {
        "num_cpus": resources.get("CPU", 0),
        "num_gpus": resources.get("GPU", 0),
        "resources": others,
        "max_restarts": 0,
        "max_task_retries": 0,
        "max_concurrency": 32,  # signs of life must get through while agents answer
        "scheduling_strategy": strategies.PlacementGroupSchedulingStrategy(placement_group=group),
    }
    if "memory" in resources:
        options["memory"] = resources["memory"]
    if runtime_env is not None:
        options["runtime_env"] = dict(runtime_env)
    return options


def reason(error: Exception) -> str:
    r"""What an error of Ray says last, which is why; but not that an actor never ran, which its caller knows.

    >>> reason(RuntimeError("The actor died.\n\tpid: 7\nIts node has died.\nThe actor never ran - cancelled."))
    'Its node has died.'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if not line.startswith("The actor never ran")), repr(error))


def what_to_do(error: Exception) -> str:
    """What helps when a host could not be started.

    A process that has once had a token asks for it ever after. A cluster without one then cannot ask it whether an
    actor is still needed, takes that for a no, and ends the actor before it has begun.
    """
    if "all references to the actor were removed" in str(error):
        return (
            "if a Ray has been started and ended in this process before, Ray keeps asking for that one's token: use "
            "the cluster from a fresh process"
        )
    return (
        "it needs collabtop, and what your arms import: install that on all nodes, or send modules with "
        'runtime_env={"working_dir": "."}'
    )
