"""The command line for the user's own functions: identify, resume, show."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import collabtop as ct

MODULE = """
import time
import collabtop as ct

candidates = [0.2, 0.35, 0.5, 0.65, 0.8]

class Model:
    def __init__(self, mean):
        self.mean = mean

models = [Model(mean) for mean in candidates]
arms = ct.BernoulliArms(candidates)

def score(mean, rng):
    return rng.random() < mean

def slow(mean, rng):
    time.sleep(0.02)
    return rng.random() < mean

def score_model(model, rng):
    return rng.random() < model.mean

def flaky(mean, rng):
    if rng.random() < 0.3:
        raise ConnectionError("busy")
    return mean

def breaks(mean, rng):
    raise ZeroDivisionError("no")

def price(mean):
    return 10 * mean

def latency(mean, rng):
    return 100 * mean + rng.standard_normal()

def noted(mean, rng):
    return ct.Reward(rng.random() < mean, cost=mean, note=f"trace of {mean}")
"""

COMMON = ("-m", 2, "--agents", 3, "--horizon", 60, "--seed", 5)


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "mymodule.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("mymodule", None)


def expected(**more):
    asked = {"agents": 3, "horizon": 60, "seed": 5, **more}
    return ct.identify([0.2, 0.35, 0.5, 0.65, 0.8], 2, pull=lambda mean, rng: rng.random() < mean, **asked)


@pytest.mark.parametrize("team", ["local", "threads"])
def test_candidates_and_a_function_are_found_in_a_module(run, here, team):
    found = run(
        "identify", "--arms", "mymodule:candidates", "--pull", "mymodule:score", *COMMON, "--team", team, "--json"
    )
    assert found.exit_code == 0, found.stderr
    assert json.loads(found.stdout) == json.loads(expected().to_json())


def test_arms_of_ones_own_need_no_function(run, here):
    found = run("identify", "--arms", "mymodule:arms", *COMMON, "--json")
    arms = ct.BernoulliArms([0.2, 0.35, 0.5, 0.65, 0.8])
    assert json.loads(found.stdout) == json.loads(ct.identify(arms, 2, agents=3, horizon=60, seed=5).to_json())


def test_a_policy_can_be_said(run, here):
    common = ("identify", "--arms", "mymodule:candidates", "--pull", "mymodule:flaky", *COMMON, "--json")
    assert run(*common, "--retries", 20, "--wait", 0, "--time-limit", 20).exit_code == 0
    assert run(*common, "--failures", "zero").exit_code == 0
    assert run(*common).exit_code == 1


@pytest.mark.parametrize(("typed", "bounds"), [("none", None), ("-100,200", (-100, 200))])
def test_rewards_have_a_direction_and_bounds(run, here, typed, bounds):
    common = ("identify", "--arms", "mymodule:candidates", "--pull", "mymodule:latency", *COMMON)
    unit = ("--direction", "minimize", "--bounds", typed)
    found = run(*common, *unit, "--json", "--checkpoint", "run.ctlog")
    assert found.exit_code == 0, found.stderr
    result = json.loads(found.stdout)
    assert set(result["top"]) == {"0.2", "0.35"}
    assert result["estimates"][0]["mean"] == pytest.approx(20, abs=2)
    assert result["bounds"] == (None if bounds is None else list(bounds))
    resumed = run("resume", "run.ctlog", "--pull", "mymodule:latency", "--json")
    assert json.loads(resumed.stdout) == result
    shown = " ".join(run("show", "run.ctlog").stdout.split())
    assert "rewards minimize, " in shown
    assert run(*common, *unit, "--dry-run").exit_code == 0


def test_logged_rewards_have_a_direction_and_bounds(run, here):
    rows = [f"{name},{base + i % 7}" for name, base in (("a", 120), ("b", 90)) for i in range(100)]
    (here / "rewards.csv").write_text("candidate,reward\n" + "\n".join(rows))
    common = ("-m", 1, "--agents", 2, "--horizon", 40, "--seed", 1, "--csv", "rewards.csv", "--json")
    unit = ("--direction", "minimize", "--bounds", "0,500", "--checkpoint", "run.ctlog")
    found = run("identify", *common, *unit)
    assert json.loads(found.stdout)["top"] == ["b"]
    assert run("resume", "run.ctlog", "--csv", "rewards.csv", "--json").stdout == found.stdout


@pytest.mark.parametrize(
    ("unit", "error"),
    [
        (("--direction", "min"), "--direction is 'min', but 'maximize' or 'minimize' is needed"),
        (("--bounds", "1,0"), "--bounds is (1.0, 0.0), but the first has to be below the second"),
        (("--bounds", "0,nan"), "--bounds is nan, but a number is needed"),
        (("--bounds", "0"), "--bounds is '0', but LOW,HIGH or none is needed, such as 0,500"),
    ],
)
def test_a_wrong_direction_or_wrong_bounds_are_named(refused, here, unit, error):
    common = ("identify", "--arms", "mymodule:candidates", "--pull", "mymodule:latency", *COMMON)
    assert error in refused(*common, *unit)
    assert error in refused(*common, *unit, "--dry-run")


def test_a_budget_with_a_price_and_a_dry_run(run, here):
    common = ("identify", "--arms", "mymodule:candidates", "--pull", "mymodule:score", "-m", 1, "--agents", 2)
    budget = (*common, "--budget", 2_000, "--cost", "mymodule:price", "--algorithm", "kzz", "--json")
    forecast = json.loads(run(*budget, "--dry-run").stdout)
    assert forecast["most_cost"] <= 2_000
    assert json.loads(run(*budget).stdout)["horizon"] == forecast["horizon"]
    assert "A dry run of" in run(*common, "--horizon", 100, "--dry-run").stdout


def test_a_confidence_can_be_asked_for(run, here):
    found = run(
        "identify", "--arms", "mymodule:arms", "-m", 1, "--agents", 2, "--confidence", 0.9, "--seed", 1, "--json"
    )
    assert json.loads(found.stdout)["sure"]


def test_logged_rewards_are_drawn_from_or_replayed(run, here):
    rows = [f"{name},{(i * step) % 10 / 10}" for name, step in (("a", 1), ("b", 0)) for i in range(100)]
    (here / "rewards.csv").write_text("\n".join(["candidate,reward", *rows]) + "\n")
    common = (
        "identify",
        "--csv",
        "rewards.csv",
        "-m",
        1,
        "--agents",
        2,
        "--horizon",
        40,
        "--algorithm",
        "uniform",
        "--json",
    )
    drawn, replayed = json.loads(run(*common).stdout), json.loads(run(*common, "--replay").stdout)
    assert drawn["top"] == replayed["top"] == ["a"]
    assert replayed["estimates"][0]["mean"] == pytest.approx(0.45)


def test_progress_goes_to_stderr(run, here):
    found = run("identify", "--arms", "mymodule:arms", *COMMON, "--progress", "--json")
    assert "pulls made, done" in found.stderr
    json.loads(found.stdout)


def test_a_checkpoint_is_written_shown_and_resumed(run, here):
    first = run(
        "identify",
        "--arms",
        "mymodule:candidates",
        "--pull",
        "mymodule:score",
        *COMMON,
        "--checkpoint",
        "run.ctlog",
        "--json",
    )
    shown = run("show", "run.ctlog")
    assert shown.exit_code == 0
    for needed in ("the best 2 of 5 candidates, 3 agents, horizon 60, seed 5", "0 failed", "answer"):
        assert needed in " ".join(shown.stdout.split())
    told = json.loads(run("show", "run.ctlog", "--json").stdout)
    assert told["finished"]
    assert told["pulls"] == sum(told["pulls_by_candidate"]) == json.loads(first.stdout)["pulls"]
    assert told["top"] == json.loads(first.stdout)["top"]
    data = (here / "run.ctlog").read_bytes()
    (here / "run.ctlog").write_bytes(data[: len(data) * 2 // 3])
    assert not json.loads(run("show", "run.ctlog", "--json").stdout)["finished"]
    assert "not yet" in run("show", "run.ctlog").stdout
    assert run("resume", "run.ctlog", "--pull", "mymodule:score", "--json").stdout == first.stdout


def test_an_answer_that_was_known_is_said_to_be_one(run, here):
    mine = ("--arms", "mymodule:candidates", "--pull", "mymodule:score")
    command = ("identify", *mine, *COMMON, "--checkpoint", "a.ctlog")
    first, again = run(*command), run(*command)
    assert (first.stdout, first.stderr) == (again.stdout, "")
    assert again.stderr == "a.ctlog held the answer already: nothing was pulled (use a new file for a new run)\n"
    resumed = run("resume", "a.ctlog", "--pull", "mymodule:breaks", "--json")
    assert resumed.stderr == again.stderr
    assert json.loads(resumed.stdout)


def test_candidates_that_a_checkpoint_cannot_hold_are_given_again(run, refused, here):
    common = ("--arms", "mymodule:models", "--pull", "mymodule:score_model")
    first = run("identify", *common, *COMMON, "--checkpoint", "run.ctlog", "--json")
    assert "candidates is missing" in refused("resume", "run.ctlog", "--pull", "mymodule:score_model")
    assert run("resume", "run.ctlog", *common, "--json").stdout == first.stdout


def test_simulations_and_logged_rewards_are_resumed_with_their_files(run, here, means):
    (here / "rewards.csv").write_text("candidate,reward\n" + "a,1\na,0\nb,0\nb,0\n" * 50)
    for source in (("--means", means), ("--csv", "rewards.csv"), ("--csv", "rewards.csv", "--replay")):
        asked = (
            "-m",
            1,
            "--agents",
            2,
            "--horizon",
            40,
            "--algorithm",
            "uniform",
            "--checkpoint",
            f"{len(source)}{source[0]}.ctlog",
        )
        first = run("identify", *source, *asked, "--json")
        assert first.exit_code == 0, first.stderr
        assert run("resume", asked[-1], *source, "--json").stdout == first.stdout


def test_the_columns_of_a_log_are_named(run, here, refused):
    (here / "clicks.csv").write_text("page,clicked,region\n" + "a,1,n\na,0,s\nb,0,n\nb,0,s\n" * 50)
    columns = ("--csv", "clicks.csv", "--candidate", "page", "--reward", "clicked", "--agent", "region")
    found = run("identify", *columns, "-m", 1, "--horizon", 40, "--seed", 1, "--checkpoint", "run.ctlog", "--json")
    assert (json.loads(found.stdout)["top"], json.loads(found.stdout)["agents"]) == (["a"], 2)
    assert run("resume", "run.ctlog", *columns, "--json").stdout == found.stdout
    assert json.loads(run("extend", "run.ctlog", *columns, "--horizon", 80, "--json").stdout)["horizon"] == 80
    line = refused("identify", *columns[:4], "-m", 1, "--agents", 2, "--horizon", 40)
    assert (
        "clicks.csv, line 1: no column 'reward': the columns are 'page, clicked, region'. Name it with --reward" in line
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give exactly one of --means, --arms and --csv: none was given"),
        (["--arms", "mymodule:candidates", "--csv", "x.csv"], "--arms and --csv were given"),
        (["--csv", "x.csv", "--pull", "mymodule:score"], "--pull only applies with --arms"),
        (["--arms", "mymodule:arms", "--replay"], "--replay only applies with --csv"),
        (["--arms", "mymodule:arms", "--reward", "clicked"], "--reward only applies with --csv"),
        (["--csv", "x.csv"], "x.csv: no such file"),
        (["--arms", "mymodule:arms", "--seed", "-1"], "--seed is -1, but"),
        (["--arms", "mymodule"], "--arms is 'mymodule', but MODULE:NAME is needed"),
        (["--arms", "nomodule:x"], "--arms: 'nomodule' cannot be imported (ModuleNotFoundError"),
        (["--arms", "mymodule:candidate"], "'mymodule' has no 'candidate' (did you mean 'candidates'?)"),
        (["--arms", "mymodule:candidates"], "with --pull"),
        (
            ["--arms", "mymodule:candidates", "--pull", "mymodule:price"],
            "--pull is price(mean), but it has to be callable as pull(candidate, rng)",
        ),
        (["--arms", "mymodule:arms", "--budget", "5"], "horizon and budget were given"),
        (["--arms", "mymodule:arms", "--team", "mars"], "--team"),
        (["--arms", "mymodule:candidates", "--pull", "mymodule:score", "--retries", "-1"], "--retries is -1, but"),
    ],
)
def test_bad_arguments_get_one_line_and_exit_code_2(refused, here, arguments, message):
    assert message in refused("identify", *COMMON, *arguments)


def test_a_function_that_fails_is_exit_code_1_and_names_the_candidate(refused, here):
    line = refused("identify", "--arms", "mymodule:candidates", "--pull", "mymodule:breaks", *COMMON, code=1)
    assert "raised ZeroDivisionError: no" in line
    assert "pull of candidate '0." in line
    assert line.endswith("(mymodule.py, line 30, in breaks)")


def test_show_refuses_what_is_no_checkpoint(refused, here):
    assert "no such file" in refused("show", "none.ctlog")
    assert "is not a collabtop log" in refused("show", "mymodule.py")


@pytest.mark.slow
def test_ctrl_c_says_that_the_same_command_goes_on_and_it_does(run, here):
    command = ["identify", "--arms", "mymodule:candidates", "--pull", "mymodule:slow", *map(str, COMMON)]
    command += ["--team", "threads", "--checkpoint", "run.ctlog", "--json"]
    start = [sys.executable, "-c", "from collabtop.cli import main; main()"]
    process = subprocess.Popen([*start, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        deadline = time.monotonic() + 30
        while not (here / "run.ctlog").exists() or os.path.getsize(here / "run.ctlog") < 1_500:  # noqa: PTH202
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert process.wait(10) == 130
        assert time.monotonic() - began < 2
        assert process.stderr.read() == "error: interrupted: run the same command again to continue\n"
        so_far = json.loads(process.stdout.read())
    assert not so_far["complete"]
    assert so_far["pulls"] > 0
    assert json.loads(run(*command).stdout) == json.loads(expected().to_json())


def test_show_prints_the_cost_of_a_run_and_the_notes_of_a_candidate(run, refused, here):
    source = ("--arms", "mymodule:candidates", "--pull", "mymodule:noted")
    assert run("identify", *source, "--checkpoint", "run.ctlog", *COMMON).exit_code == 0
    assert "cost" in run("show", "run.ctlog").stdout
    shown = run("show", "run.ctlog", "--notes", "0.5").stdout
    assert "trace of 0.5" in shown
    assert "trace of 0.2" not in shown
    notes = json.loads(run("show", "run.ctlog", "--notes", "0.5", "--json").stdout)
    assert {(note["note"], note["cost"]) for note in notes} == {("trace of 0.5", 0.5)}
    assert "0.7', but the label of a candidate is needed" in refused("show", "run.ctlog", "--notes", "0.7")


def test_a_timeout_prints_the_best_answer_so_far(run, here):
    command = [
        "identify",
        "--arms",
        "mymodule:candidates",
        "--pull",
        "mymodule:slow",
        *map(str, COMMON),
        "--name",
        "trial",
    ]
    result = json.loads(run(*command, "--timeout", "0.1", "--checkpoint", "run.ctlog", "--json").stdout)
    assert not result["complete"]
    assert len(result["top"]) == 2
    shown = run("show", "run.ctlog").stdout
    assert "trial" in shown
    assert "not yet, the best so far: " in shown
    assert "warning: not complete: " in shown


def test_a_timeout_of_0_is_refused(refused, here):
    line = refused("identify", "--arms", "mymodule:candidates", "--pull", "mymodule:score", *COMMON, "--timeout", "0")
    assert line == "--timeout is 0.0, but a positive number of seconds is needed"
