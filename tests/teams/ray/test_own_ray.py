"""A private Ray is started for a run and shut down with it, however the run ends, and nothing is left behind."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import collabtop as ct
from collabtop.teams.ray import cluster

SCRIPT = """
import os, sys, time
import collabtop as ct

def score(mean, rng):
    if mean < 0:
        raise LookupError("no such model")
    if mean == 0.5:
        print("pulling", flush=True)
        time.sleep(60)
    return rng.random() < mean

print("at", os.getpid(), flush=True)
"""

WELL_THEN_BADLY = """
result = ct.identify([0.2, 0.9], 1, pull=score, agents=2, horizon=40, seed=1, team=ct.RayTeam(hosts=1))
print(result == ct.identify([0.2, 0.9], 1, pull=score, agents=2, horizon=40, seed=1))
try:
    ct.identify([-1.0, 0.9], 1, pull=score, agents=2, horizon=40, seed=1, team=ct.RayTeam(hosts=1))
except ct.PullError as error:
    print(error.candidate)
assert not any(name.startswith(("RAY_AUTH", "RAY_USAGE")) for name in os.environ)
"""

THEN_A_CLUSTER_WITHOUT_A_TOKEN = """
import ray
ct.identify([0.2, 0.9], 1, pull=score, agents=2, horizon=40, seed=1, team=ct.RayTeam(hosts=1))
os.environ["RAY_AUTH_MODE"] = "disabled"
ray.init(address="local", include_dashboard=False, num_cpus=2, log_to_driver=False, logging_level="ERROR")
try:
    ct.identify([0.2, 0.9], 1, pull=score, agents=2, horizon=40, seed=1, team=ct.RayTeam(hosts=1))
except ct.InputError as error:
    print(error)
ray.shutdown()
"""

HANGING = """
ct.identify([0.5, 0.9], 1, pull=score, agents=2, horizon=40, seed=1, team=ct.RayTeam(hosts=1))
"""


HARMED = """
import threading
from pathlib import Path

def slow(mean, rng):
    time.sleep(0.05)
    return rng.random() < mean

def harm(event, hit=[]):
    if type(event).__name__ == "PullsMade" and not hit:
        hit.append(event)
        for path in Path("/proc").glob("[0-9]*"):
            try:
                session = int((path / "stat").read_text().rpartition(")")[2].split()[3])
                program = (path / "cmdline").read_bytes().partition(bytes(1))[0]
            except OSError:
                continue
            if session == os.getpid() and program.endswith(b"/" + PROGRAM):
                os.kill(int(path.name), SIGNAL)

def run(**more):
    asked = {"agents": 4, "horizon": HORIZON, "seed": 1}
    return ct.identify([0.2, 0.9, 0.5], 1, pull=slow, **asked, **more)

began = time.monotonic()
try:
    result = run(team=ct.RayTeam(hosts=2, silence=8), on_event=harm)
    print(result == run())
except ct.AgentLostError as error:
    print(error)
print([thread.name for thread in threading.enumerate()], flush=True)
"""


@pytest.fixture
def home(tmp_path):
    """An empty home folder, in which a test sees what was written."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def temporary():
    folder = Path("/tmp") / f"cttest{os.getpid()}"  # short, since the length of socket paths is limited
    folder.mkdir()
    yield folder
    left = list(folder.iterdir())
    for path in left:
        path.unlink() if path.is_file() else path.rmdir()
    folder.rmdir()


def started(script, home, temporary):
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT + script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**quiet, "HOME": str(home), "TMPDIR": str(temporary)},
        start_new_session=True,
    )


def of_session(leader):
    """Running processes of a session."""
    processes = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == leader and fields[0] != "Z":
                processes.append((int(path.name), (path / "cmdline").read_bytes()))
    return processes


def check_nothing_is_left(process, home, temporary):
    deadline = time.monotonic() + 5
    while (left := of_session(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []
    assert list(temporary.iterdir()) == []
    assert list(home.iterdir()) == []  # where Ray would write a token that all users can read
    assert not [line for line in Path("/proc/net/unix").read_text().splitlines() if str(temporary) in line]


@pytest.mark.slow
def test_after_success_and_after_an_error_nothing_is_left(home, temporary):
    process = started(WELL_THEN_BADLY, home, temporary)
    out, err = process.communicate(timeout=300)
    assert (out.split("\n")[1:], err, process.returncode) == (["True", "-1.0", ""], "", 0)
    check_nothing_is_left(process, home, temporary)


@pytest.mark.slow
def test_after_a_private_ray_the_error_explains_why_a_cluster_without_a_token_fails(home, temporary):
    process = started(THEN_A_CLUSTER_WITHOUT_A_TOKEN, home, temporary)
    out, _ = process.communicate(timeout=300)
    shutil.rmtree(temporary / "ray")  # of the second Ray
    assert "could not be started on Ray: The actor is dead because" in out
    assert "it keeps requiring that Ray's token: use the cluster from a new process" in out


@pytest.mark.slow
def test_after_an_interrupt_nothing_is_left(home, temporary):
    process = started(HANGING, home, temporary)
    assert process.stdout.readline().startswith("at")
    deadline = time.monotonic() + 60
    while not any(b"ray::AgentHost.answer" in line for _, line in of_session(process.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    began = time.monotonic()
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 10
    assert err.strip().endswith("KeyboardInterrupt")
    assert process.returncode == -signal.SIGINT
    check_nothing_is_left(process, home, temporary)


@pytest.mark.slow
@pytest.mark.parametrize(
    "program", ["gcs_server", pytest.param("raylet", marks=pytest.mark.long)], ids=["frozen GCS", "frozen raylet"]
)
def test_a_frozen_ray_delays_the_end_of_the_run_by_a_few_seconds_and_nothing_is_left(home, temporary, program):
    settings = f"\nPROGRAM, SIGNAL, HORIZON = {program.encode()!r}, signal.SIGSTOP, 30\n"
    process = started("import signal" + settings + HARMED, home, temporary)
    out, err = process.communicate(timeout=150)
    assert out.splitlines()[1:] == ["True", "['MainThread']"]
    assert (err, process.returncode) == ("", 0)
    check_nothing_is_left(process, home, temporary)


@pytest.mark.slow
def test_a_killed_gcs_is_an_error_that_python_sees_and_nothing_is_left(home, temporary):
    settings = "import signal\nPROGRAM, SIGNAL, HORIZON = b'gcs_server', signal.SIGKILL, 2000\n"
    process = started(settings + HARMED, home, temporary)
    out, _ = process.communicate(timeout=150)
    assert re.fullmatch(
        r"all agents are lost: process \d+ of Ray has ended. With a checkpoint, resume\(\) continues the run",
        out.splitlines()[1],
    )
    check_nothing_is_left(process, home, temporary)


def test_a_shutdown_that_does_not_return_is_ended_or_abandoned_at_the_deadline(monkeypatch):
    monkeypatch.setattr(cluster, "SECONDS_TO_LEAVE", 0.2)
    monkeypatch.setattr(cluster, "_abandoned", False)
    killed, never = threading.Event(), threading.Event()
    cluster._leave(SimpleNamespace(shutdown=killed.wait), killed.set)
    assert not cluster._abandoned
    cluster._leave(SimpleNamespace(shutdown=lambda: 1 / 0))
    assert not cluster._abandoned
    began = time.monotonic()
    cluster._leave(SimpleNamespace(shutdown=never.wait))
    assert time.monotonic() - began < 5
    with pytest.raises(ct.CollabtopError, match="Ray did not shut down in this process"):
        ct.identify(ct.BernoulliArms([0.9, 0.1]), 1, agents=2, horizon=40, team="ray")
    never.set()


def test_a_placement_group_that_is_not_removed_is_left_at_the_deadline(monkeypatch):
    monkeypatch.setattr(cluster, "SECONDS_TO_LEAVE", 0.2)
    never = threading.Event()
    group = SimpleNamespace(wait=lambda timeout_seconds: True)
    util = SimpleNamespace(placement_group=lambda *_, **__: group, remove_placement_group=lambda _: never.wait(30))
    monkeypatch.setattr(cluster, "import_module", lambda name: util)
    began = time.monotonic()
    joined = cluster.Cluster(SimpleNamespace(is_initialized=lambda: True), is_ours=False)
    with cluster.reserved(joined, 2, {"CPU": 1}, 1.0) as reserved:
        assert reserved is group
    assert time.monotonic() - began < 5
    never.set()


def test_a_gcs_that_cannot_be_reached_for_long_is_a_loss(monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    context = SimpleNamespace(gcs_address=address)
    joined = cluster.Cluster(SimpleNamespace(get_runtime_context=lambda: context), is_ours=False)
    assert joined.loss() is None  # it may be restarting
    monkeypatch.setattr(cluster, "SECONDS_WITHOUT_GCS", 0.0)
    assert joined.loss().startswith(f"the GCS of Ray at {address} is unreachable (")
    with socket.create_server(("127.0.0.1", 0)) as open_port:
        context.gcs_address = f"127.0.0.1:{open_port.getsockname()[1]}"
        assert joined.loss() is None
    assert joined.unreachable_since is None


def test_without_the_extra_one_line_states_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    arms, message = ct.BernoulliArms([0.9, 0.1]), r"^team 'ray' needs ray, .*: pip install 'collabtop\[ray\]'$"
    for ask in (
        lambda: ct.RayTeam(hosts=2),
        lambda: ct.identify(arms, 1, agents=2, horizon=40, team="ray", checkpoint=tmp_path / "log"),
        lambda: ct.Study(arms=arms, algorithms="kzz", agents=2, horizon=40).run(team="ray"),
    ):
        with pytest.raises(ct.InputError, match=message):
            ask()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hosts": 0}, "hosts is 0, but a whole number of at least 1 is needed"),
        ({"hosts": 2, "agents_per_host": 5}, "give hosts or agents_per_host, not both"),
        ({"agents_per_host": 1.5}, "agents_per_host is 1.5, but a whole number"),
        ({"resources": {}}, "resources is empty"),
        ({"resources": {"GPU": -1}}, "resources has -1 of 'GPU', but a positive number is needed"),
        ({"max_concurrent_pulls": 0}, "max_concurrent_pulls is 0"),
        ({"heartbeat": 0}, "heartbeat is 0, but a positive number of seconds is needed"),
        ({"silence": 0}, "silence is 0, but a positive number of seconds is needed"),
        ({"recoveries": -1}, "recoveries is -1, but a whole number of at least 0 is needed"),
    ],
)
def test_wrong_arguments_are_rejected_before_anything_starts(arguments, message):
    with pytest.raises(ct.InputError, match=message) as caught:
        ct.RayTeam(**arguments)
    assert caught.value.argument == next(iter(arguments))
