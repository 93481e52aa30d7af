"""Connects to a Ray cluster, or starts one on this machine and shuts it down afterwards."""

import atexit
import contextlib
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from collabtop.errors import CollabtopError, InputError
from collabtop.validation import require, wrong_value

_OBJECT_STORE = 100 << 20
"""Bytes of shared memory for a private Ray: agents send little, and by default Ray takes a third of the memory."""

_MAX_TEMP_PATH = 107 - 85
"""The longest allowed path of the temporary folder: the kernel limits the length of socket paths in it."""

SECONDS_TO_LEAVE = 10.0
"""How long Ray may take to remove a placement group or to shut down: without its GCS it would wait forever."""

_TOKEN = secrets.token_hex(32)
"""The token of a private Ray; held only by this process and its children, never in a file."""


SECONDS_WITHOUT_GCS = 15.0
"""How long the GCS of a cluster may be unreachable: after a minute, Ray ends this process without an error."""


class Cluster(msgspec.Struct):
    """A connection to Ray."""

    ray: Any
    """The package."""
    is_ours: bool
    """Whether this process started it."""
    processes: Sequence[int] = ()
    """The GCS and the raylet, if this process started them."""
    unreachable_since: float | None = None

    def loss(self) -> str | None:
        """Why this Ray cannot be used any more, or None if it can."""
        if self.is_ours:
            ended = (number for number in self.processes if _process(number) is None)
            return next((f"process {number} of Ray has ended" for number in ended), None)
        address = self.ray.get_runtime_context().gcs_address
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=2.0).close()
            self.unreachable_since = None
        except OSError as error:
            self.unreachable_since = self.unreachable_since or time.monotonic()
            if time.monotonic() - self.unreachable_since > SECONDS_WITHOUT_GCS:
                return f"the GCS of Ray at {address} is unreachable ({error})"
        return None


def require_ray() -> None:
    """Check that Ray is installed, without importing it, which is slow."""
    require("ray", "ray", what="team 'ray'")


def import_ray() -> Any:
    """Import Ray."""
    require_ray()
    return import_module("ray")


def module_folders() -> list[str]:
    """The folders from which this process imports modules."""
    return [str(Path(path).resolve()) for path in sys.path]


def add_folders(folders: Sequence[str]) -> None:
    """Import the user's modules from the same folders as at the coordinator, if they exist on this node."""
    sys.path += [folder for folder in folders if folder not in sys.path and Path(folder).is_dir()]


@contextlib.contextmanager
def joined_cluster(address: str | None, cpus: float) -> Iterator[Cluster]:
    """Connect to Ray for the duration of the context.

    If this process is already connected, that connection is used and left open. Otherwise the cluster at
    `address` (or RAY_ADDRESS in the environment) is joined, and left at the end. Otherwise a private Ray with at
    least `cpus` CPUs is started, and shut down at the end.
    """
    ray = import_ray()
    if _abandoned:
        raise CollabtopError("Ray did not shut down in this process because its GCS was lost: use a new process")
    if ray.is_initialized():
        _check_address(ray, address)
        yield Cluster(ray, is_ours=False)
    elif (address := address or os.environ.get("RAY_ADDRESS")) not in (None, "", "local"):
        with _restored_handlers(), contextlib.ExitStack() as stack:
            _join(ray, address)
            stack.callback(_leave, ray)
            yield Cluster(ray, is_ours=False)
    else:
        with _restored_handlers(), _private_folder() as folder, contextlib.ExitStack() as stack:
            stack.callback(_shut_down, ray, folder)  # also if Ctrl-C arrives while it starts
            _start(ray, folder, cpus)
            yield Cluster(ray, is_ours=True, processes=_servers(folder))


def _in_thread(call: Callable[[], object]) -> threading.Thread:
    """Start a call that cannot be interrupted, in a thread that can be abandoned; its errors are ignored."""

    def attempt() -> None:
        with contextlib.suppress(Exception):
            call()

    thread = threading.Thread(target=attempt, name="collabtop leaves Ray", daemon=True)
    thread.start()
    return thread


def _shut_down(ray: Any, folder: Path) -> None:
    """Shut down a private Ray; processes that do not respond are killed."""
    family = _family(folder)
    try:
        _leave(ray, lambda: _kill(family | _family(folder)))
    finally:
        _kill(family | _family(folder))


def _leave(ray: Any, kill: Callable[[], None] = lambda: None) -> None:
    """Shut down or disconnect from Ray. If it does not respond, this process cannot use Ray again."""
    global _abandoned
    thread = _in_thread(ray.shutdown)
    thread.join(SECONDS_TO_LEAVE)
    if thread.is_alive():
        kill()
        thread.join(SECONDS_TO_LEAVE)
    if thread.is_alive():
        _abandoned = True
        atexit.unregister(ray.shutdown)  # it would wait again


_abandoned = False
"""Whether Ray did not shut down in this process."""


class _Process(NamedTuple):
    """A running process, as far as the system tells."""

    number: int
    parent: int
    started: str
    """When it was started: its number may be used again later."""
    arguments: bytes


def _process(number: int) -> _Process | None:
    """A running process; None if it has ended, or if this system does not list processes."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        arguments = Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return None
    return None if fields[0] in "ZX" else _Process(number, int(fields[1]), fields[19], arguments)


def _family(folder: Path) -> set[_Process]:
    """The processes of the private Ray whose files are in this folder, and their children, which name no folder."""
    numbers = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    others = {process for number in numbers if (process := _process(number)) is not None}
    family: set[_Process] = set()
    new = {process for process in others if os.fsencode(folder) in process.arguments}
    while new:
        family |= new
        parents = {process.number for process in new}
        new = {process for process in others - family if process.parent in parents}
    return family


def _servers(folder: Path) -> list[int]:
    """The GCS and the raylet of the private Ray whose files are in this folder."""
    programs = {process.number: process.arguments.partition(b"\0")[0] for process in _family(folder)}
    return [number for number, program in programs.items() if program.endswith((b"/gcs_server", b"/raylet"))]


def _kill(processes: set[_Process]) -> None:
    """Kill processes, and wait until they are gone."""
    deadline = time.monotonic() + SECONDS_TO_LEAVE
    while time.monotonic() < deadline:
        alive = [old for old in processes if (now := _process(old.number)) is not None and now.started == old.started]
        if not alive:
            break
        for process in alive:
            with contextlib.suppress(OSError):
                os.kill(process.number, signal.SIGKILL)
        time.sleep(0.05)


def _check_address(ray: Any, address: str | None) -> None:
    here = ray.get_runtime_context().gcs_address
    if address not in (None, "auto", here):
        raise InputError(
            f"address is {address!r}, but this process is connected to the Ray at {here}: omit address, or call "
            "ray.shutdown() first",
            argument="address",
        )


def _join(ray: Any, address: str | None) -> None:
    try:
        _init(ray, address=address)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        lines = str(error).strip().splitlines()
        raise wrong_value(
            "address", address, f"connecting to a Ray there failed: {lines[0] if lines else error!r}"
        ) from None


def _start(ray: Any, folder: Path, cpus: float) -> None:
    settings = {"RAY_USAGE_STATS_ENABLED": "0"}
    # By default, Ray writes a token into the home folder, in a file that all users can read.
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
        warnings.simplefilter("ignore")  # deprecation warnings of Ray
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **arguments)


@contextlib.contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    # Ray itself sets RAY_AUTH_MODE, which would affect any Ray that is started later in this process.
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
    outer = Path(tempfile.mkdtemp(prefix="ct-", dir=base if len(base) <= _MAX_TEMP_PATH else "/tmp"))
    try:
        yield outer / "r"  # Ray makes its folder accessible to all users, so it is put inside a private one
    finally:
        for _ in range(3):  # a process that is about to exit may still write
            shutil.rmtree(outer, ignore_errors=True)
            if not outer.exists():
                break


@contextlib.contextmanager
def _restored_handlers() -> Iterator[None]:
    """Restore the SIGTERM handler and the exception hook, which Ray replaces."""
    in_main = threading.current_thread() is threading.main_thread()
    handler, hook = signal.getsignal(signal.SIGTERM), sys.excepthook
    try:
        yield
    finally:
        sys.excepthook = hook
        if in_main and handler is not None:
            signal.signal(signal.SIGTERM, handler)


@contextlib.contextmanager
def reserved(cluster: Cluster, hosts: int, resources: Mapping[str, float], timeout: float) -> Iterator[Any]:
    """Reserve resources for this many hosts, spread over the nodes, for the duration of the context."""
    ray = cluster.ray
    util = import_module("ray.util")
    group = util.placement_group([dict(resources)] * hosts, strategy="SPREAD")
    try:
        if not group.wait(timeout_seconds=timeout):
            total = {name: amount for name, amount in ray.cluster_resources().items() if ":" not in name}
            raise InputError(
                f"the Ray cluster has no room for {hosts} hosts with {dict(resources)} each (waited {timeout:g} s): it "
                f"has {_amounts(total)} in total; request fewer hosts or resources, or add nodes"
            )
        yield group
    finally:
        if ray.is_initialized() and not cluster.is_ours:  # a private Ray ends with its groups
            _in_thread(lambda: util.remove_placement_group(group)).join(SECONDS_TO_LEAVE)


def _amounts(resources: Mapping[str, float]) -> dict[str, float]:
    return {name: resources[name] for name in sorted(resources) if name not in ("memory", "object_store_memory")}


def actor_options(group: Any, resources: Mapping[str, float], runtime_env: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options of a host's actor: it uses the reserved resources, and Ray never restarts it."""
    strategies = import_module("ray.util.scheduling_strategies")
    custom = {name: amount for name, amount in resources.items() if name not in ("CPU", "GPU", "memory")}
    options: dict[str, Any] = {
        "num_cpus": resources.get("CPU", 0),
        "num_gpus": resources.get("GPU", 0),
        "resources": custom,
        "max_restarts": 0,
        "max_task_retries": 0,
        "max_concurrency": 32,  # heartbeats must be handled while agents answer
        "scheduling_strategy": strategies.PlacementGroupSchedulingStrategy(placement_group=group),
    }
    if "memory" in resources:
        options["memory"] = resources["memory"]
    if runtime_env is not None:
        options["runtime_env"] = dict(runtime_env)
    return options


def reason(error: Exception) -> str:
    r"""The reason in an error of Ray: its last line, unless that only states that the actor never ran.

    >>> reason(RuntimeError("The actor died.\n\tpid: 7\nIts node has died.\nThe actor never ran - cancelled."))
    'Its node has died.'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in reversed(lines) if not line.startswith("The actor never ran")), repr(error))


def advice(error: Exception) -> str:
    """What to do if a host could not be started.

    A process that has used a token once requires it from then on. A cluster without a token can then not ask this
    process whether an actor is still needed, assumes that it is not, and kills the actor before it starts.
    """
    if "all references to the actor were removed" in str(error):
        return (
            "if this process has started a Ray before, it keeps requiring that Ray's token: use the cluster from a "
            "new process"
        )
    return (
        "it needs collabtop and everything your arms import: install these on all nodes, or send modules with "
        'runtime_env={"working_dir": "."}'
    )
