"""The commands report errors in one line, before they wait for anything."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import collabtop as ct
from collabtop.cli import app
from collabtop.runs.sites_run import read_run


def run(*arguments):
    """Run the command line in this process, without a traceback."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="collabtop")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def line_of(ended, code=2):
    assert (getattr(ended, "exit_code", None) or ended.returncode, ended.stdout) == (code, "")
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1
    return ended.stderr


GOOD = 'm = 1\narms = 3\nhorizon = 300\nsites = ["north", {name = "south", agents = 2}]\n'


@pytest.fixture
def run_file(tmp_path):
    def write(text):
        path = tmp_path / "run.toml"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (GOOD + "colour = 3", "unknown field `colour` (the keys are m, sites, arms"),
        (GOOD.replace("m = 1", 'm = "one"'), "Expected `int`, got `str` - at `$.m`"),
        (GOOD.replace("m = 1\n", ""), "missing required field `m`"),
        (GOOD + 'on_lost = "cry"', "'cry'"),
        ("m = ", "invalid TOML"),
        (GOOD.replace('"north"', '"no/rth"'), "site is 'no/rth', but a name of"),
        (GOOD.replace('"north"', '"south"'), "the same name twice"),
        (GOOD.replace('"north"', '"authority"'), "choose a different name"),
        (
            GOOD.replace("agents = 2", "agents = 0"),
            "the number of agents of site 'south' is 0, but a whole number of at",
        ),
        (GOOD + "grace = inf", "grace is inf, but a positive number of seconds is needed"),
        (GOOD + "wait = -1", "wait is -1.0, but a positive number of seconds is needed"),
        (GOOD + "answer_within = 0", "answer_within is 0.0, but a positive number of seconds is needed"),
        (GOOD + "keepalive = nan", "keepalive is nan, but a positive number of seconds is needed"),
        (GOOD + "wait = true", "Expected `float"),
        (GOOD + 'direction = "min"', "Invalid enum value 'min'"),
        (GOOD + "bounds = [1, 0]", "bounds is (1.0, 0.0), but the first has to be below the second"),
        (GOOD + 'bounds = "all"', "Invalid enum value 'all'"),
        (GOOD + "weights = [1, 2, 3]", "weights only applies to arms that differ between agents"),
        (GOOD + "heterogeneous = true\nweights = [1, 2]", "weights has 2 entries, but there are 3 agents"),
        (GOOD + "heterogeneous = true\nweights = [1, 2, -1]", "weights[2] is -1.0, but a number above 0 is needed"),
        (GOOD + 'heterogeneous = true\nweights = ["x", 1, 2]', "Expected `float"),
    ],
)
def test_a_run_file_is_read_strictly(run_file, text, error):
    path = run_file(text)
    with pytest.raises(ct.FileError) as caught:
        read_run(path)
    assert str(caught.value).startswith(str(path))
    assert error in str(caught.value)


def test_a_valid_run_file_is_read(run_file):
    settings = read_run(run_file(GOOD))
    assert settings.roster() == ["north", ("south", 2)]
    assert settings.remote_arms().n == 3
    assert settings.on_lost == "fail"


def test_heterogeneous_arms_differ_between_sites(run_file):
    assert read_run(run_file(GOOD)).remote_arms().iid
    assert read_run(run_file(GOOD + "heterogeneous = true")).remote_arms().agents == 3
    weighted = read_run(run_file(GOOD + "heterogeneous = true\nweights = [1, 1, 4]"))
    assert weighted.remote_arms().weights == (0.5, 0.5, 2.0)


def test_a_run_file_has_a_unit(run_file):
    assert read_run(run_file(GOOD)).remote_arms().unit.is_default
    unit = read_run(run_file(GOOD + 'direction = "minimize"\nbounds = [0, 500]')).remote_arms().unit
    assert (unit.direction, unit.bounds) == ("minimize", (0, 500))
    assert not read_run(run_file(GOOD + 'bounds = "none"')).remote_arms().unit.bounded


def test_wrong_input_is_one_line_and_code_2(run_file, certs, tmp_path):
    good = run_file(GOOD)
    cert, means = certs / "coordinator.pem", tmp_path / "means.txt"
    means.write_text("0.5\n0.6\n")
    assert "no such file" in line_of(run("coordinate", tmp_path / "absent.toml", "--cert", cert))
    assert "collabtop certs makes the files" in line_of(run("coordinate", good, "--cert", "absent.pem"))
    assert "listen is 'here'" in line_of(run("coordinate", good, "--cert", cert, "--listen", "here"))
    both = run_file(GOOD + 'labels = ["a", "b", "c"]')
    assert "exactly one of arms" in line_of(run("coordinate", both, "--cert", cert, "--listen", "localhost:0"))
    join = ("join", "localhost:7443", "--site", "site0", "--cert", certs / "site0.pem")
    assert "exactly one of --arms and --means" in line_of(run(*join))
    assert "not a certificate in PEM format" in line_of(
        run("join", "localhost:1", "--site", "x", "--cert", good, "--means", means)
    )
    assert "--min-batch is 0" in line_of(run(*join, "--means", means, "--min-batch", 0))
    assert "--direction only applies" in line_of(run(*join, "--means", means, "--direction", "minimize"))
    assert "--bounds is 'wide', but LOW,HIGH or none" in line_of(run(*join, "--means", means, "--bounds", "wide"))
    assert "days is 0" in line_of(run("certs", tmp_path / "new", "north", "--days", 0))
    assert "site is '-'" in line_of(run("certs", tmp_path / "new", "--", "-"))


def test_a_path_where_no_result_can_be_saved_is_rejected_at_the_start(run_file, certs, tmp_path):
    coordinate = ("coordinate", run_file(GOOD), "--listen", "localhost:0", "--cert", certs / "coordinator.pem")
    for path, error in (
        (tmp_path / "nowhere" / "top.json", "no such file or directory"),
        (tmp_path / "run.toml" / "top.json", "not a directory"),
        (tmp_path, "exists and is not a file: choose a different name"),
    ):
        line = line_of(run(*coordinate, "--save", path))
        assert line.startswith(f"error: --save {str(path)!r}")
        assert error in line
    assert {path.name for path in tmp_path.iterdir()} == {"run.toml"}


@pytest.mark.parametrize("deleted", [False, True])
def test_a_result_is_saved_and_shown_even_if_its_folder_has_been_deleted(
    run_file, certs, tmp_path, monkeypatch, deleted
):
    folder = tmp_path / "results"
    folder.mkdir()

    def run_over_sites(*_, **__):
        if deleted:
            folder.rmdir()
        return ct.identify(ct.BernoulliArms([0.9, 0.5, 0.4]), 1, agents=3, horizon=300, seed=1)

    monkeypatch.setattr("collabtop.runs.sites_run.coordinate", run_over_sites)
    save = folder / "top.json"
    ended = run("coordinate", run_file(GOOD), "--cert", certs / "coordinator.pem", "--json", "--save", save)
    assert json.loads(ended.stdout)["top"] == [0]
    if deleted:
        assert (ended.exit_code, ended.stderr) == (2, f"error: --save {str(save)!r}: no such file or directory\n")
    else:
        assert (ended.exit_code, ended.stderr) == (0, "")
        assert json.loads(save.read_text()) == json.loads(ended.stdout)


def test_sites_that_do_not_connect_are_named(run_file, certs):
    path = run_file(GOOD + "wait = 0.5")
    ended = run("coordinate", path, "--cert", certs / "coordinator.pem", "--listen", "localhost:0", "--json")
    assert ended.exit_code == 1
    listening, *last = ended.stderr.splitlines()
    assert re.fullmatch(r"listening on localhost:[1-9]\d*", listening)
    assert last == ["error: 2 of 2 sites did not connect within 0.5 s: north, south"]


def test_a_site_without_a_coordinator_gives_up(certs, tmp_path):
    (tmp_path / "means.txt").write_text("0.5\n0.6\n")
    join = ("join", "localhost:1", "--site", "site0", "--cert", certs / "site0.pem", "--means", tmp_path / "means.txt")
    ended = run(*join, "--give-up", 0.3)
    assert ended.exit_code == 1
    assert ended.stderr.splitlines() == [
        "connection refused; retrying",  # only once
        "error: no coordinator at localhost:1 for 0.3 s: connection refused",
    ]


WITHOUT_GRPC = (
    "import sys; sys.modules['grpc'] = None\nfrom collabtop.cli import main; sys.argv = ['collabtop', *{!r}]; main()"
)


def test_without_grpc_one_line_states_what_to_install(run_file, certs):
    script = WITHOUT_GRPC.format(["coordinate", str(run_file(GOOD)), "--cert", str(certs / "coordinator.pem")])
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (
        line_of(ended) == "error: a run over sites needs grpc, which is not installed: pip install 'collabtop[sites]'\n"
    )


@pytest.mark.parametrize("command", ["certs", "join"])
def test_without_cryptography_one_line_states_what_to_install(certs, tmp_path, monkeypatch, command):
    means = tmp_path / "means.txt"
    means.write_text("0.5\n0.6\n")
    arguments = {
        "certs": [tmp_path / "new", "north"],
        "join": ["localhost:1", "--site", "site0", "--cert", certs / "site0.pem", "--means", means],
    }
    monkeypatch.setitem(sys.modules, "cryptography", None)
    ended = run(command, *arguments[command])
    assert "needs cryptography, which is not installed: pip install 'collabtop[sites]'" in line_of(ended)


def test_keys_are_readable_by_their_owner_only_and_existing_files_are_kept(tmp_path):
    folder = tmp_path / "certs"
    assert "made authority.pem, coordinator.pem, north.pem" in run("certs", folder, "north").stdout
    keys = {path: path.read_bytes() for path in folder.glob("*.key")}
    assert len(keys) == 3
    assert all(path.stat().st_mode & 0o077 == 0 for path in keys)
    assert "made south.pem" in run("certs", folder, "north", "south").stdout
    assert "made nothing" in run("certs", folder, "north", "south").stdout
    assert all(path.read_bytes() == key for path, key in keys.items())
