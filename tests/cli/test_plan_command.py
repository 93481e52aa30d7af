import json

import pytest

import collabtop as ct

QUICK = ("--algorithm", "uniform", "--runs", 600, "--seconds", 20, "--jobs", 1)


def test_it_prints_a_row_for_each_error_within_the_width(run):
    result = run("plan", "-n", 8, "-m", 1, "--agents", 2, "--gap", 0.4, "--error", 0.2, "--error", 0.05, *QUICK)
    assert result.exit_code == 0
    simulated, proved = result.stdout.split("By proof")
    assert simulated.count("uniform") == proved.count("uniform") == 2
    assert "equal gaps of 0.4" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_json_is_the_plan_and_nothing_else(run):
    result = run("plan", "-n", 8, "-m", 1, "--agents", 2, "--gap", 0.4, *QUICK, "--json")
    expected = ct.plan(8, 1, 2, gap=0.4, error=[0.01], algorithms=["uniform"], runs=600, seconds=20, jobs=1)
    assert json.loads(result.stdout) == json.loads(expected.to_json())
    assert result.stderr == ""


def test_a_plan_has_the_noise_of_privacy(run):
    asked = ("plan", "-n", 8, "-m", 1, "--agents", 2, "--gap", 0.4, *QUICK, "--json")
    privacy = ct.Privacy(epsilon=0.5, delta=1e-6, unit="reward")
    expected = ct.plan(
        8, 1, 2, gap=0.4, error=[0.01], privacy=privacy, algorithms=["uniform"], runs=600, seconds=20, jobs=1
    )
    plain, private = (json.loads(run(*asked, *more).stdout) for more in ((), ("--privacy", "0.5,1e-6,reward")))
    assert private == json.loads(expected.to_json())
    assert private["rows"][0]["horizon"] > plain["rows"][0]["horizon"]


def test_without_simulation_there_are_bounds_only(run, means):
    result = run("plan", "--means", means, "-m", 1, "--agents", 3, "--no-simulation", "--json")
    told = json.loads(result.stdout)
    assert told["n"] == 20
    assert told["rows"][0]["bound_horizon"] > 0
    assert {row["horizon"] for row in told["rows"]} == {None}


def test_without_simulation_words_and_round_trips_are_shown(run):
    shown = run("plan", "-n", 588, "-m", 8, "--agents", 10, "--gap", 0.05, "--no-simulation").stdout
    rows = [line.split() for line in shown.splitlines()]
    assert ["kzz", "0.01", "-", "17,540", "9"] in rows
    assert ["uniform", "0.01", "-", "5,880", "1"] in rows


def test_a_non_iid_file_knows_its_agents(run, group_means):
    told = json.loads(run("plan", "--means", group_means, "-m", 1, "--no-simulation", "--json").stdout)
    assert (told["n"], told["agents"], told["rows"][0]["algorithm"]) == (3, 2, "frugal-top-noniid")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "neither was given"),
        (["--gap", 0.1], "-n is missing: a gap"),
        (["-n", 8, "--gap", 0], "--gap is 0"),
        (["-n", 8, "--gap", "wide"], "--gap"),
        (["-n", 8, "--gap", 0.1, "--error", 2], "--error is 2"),
        (["-n", 8, "--gap", 0.1, "--algorithm", "kz"], "--algorithm is 'kz' (did you mean 'kzz'?)"),
        (["-n", 8, "--gap", 0.1, "--seconds", 0], "--seconds is 0"),
        (["--means", "nowhere.txt"], "nowhere.txt"),
    ],
)
def test_bad_arguments_get_one_line_and_exit_code_2(refused, arguments, message):
    assert message in refused("plan", "-m", 1, "--agents", 2, *arguments)


def test_help_has_examples(run):
    assert "collabtop plan -n 588 -m 8" in " ".join(run("plan", "--help").stdout.split())


def test_a_budget_shows_what_it_buys(run, tmp_path):
    pilot = tmp_path / "pilot.csv"
    rows = "".join(f"c{arm},{reward}\n" for arm in range(6) for reward in (0, 1, arm % 2, arm % 3 == 0))
    pilot.write_text("candidate,reward\n" + rows.replace("True", "1").replace("False", "0"))
    arguments = ("--budget", 2_000, "-n", 20, "-m", 2, "--pilot", pilot, "--algorithm", "uniform", "--jobs", 1)
    shown = run("plan", *arguments, "--tolerance", 0.05).stdout
    assert "exactly right" in shown
    assert "within 0.05" in shown
    assert max(map(len, shown.splitlines())) <= 100
    data = json.loads(run("plan", *arguments, "--json").stdout)
    assert data == ct.plan(budget=2_000, n=20, m=2, pilot=pilot, algorithms=["uniform"], jobs=1).to_dict()
    stated = ("--budget", 10, "--cost", 0.01, "-n", 20, "-m", 2, "--spread", 0.2, 0.6, "--pull-seconds", 3, "--jobs", 1)
    assert json.loads(run("plan", *stated, "--json").stdout)["rows"][0]["seconds"] > 0


def test_a_pilot_may_have_columns_and_units_of_its_own(run, refused, tmp_path):
    pilot = tmp_path / "latencies.csv"
    rows = "".join(f"9:00,s{arm},{arm * 40 + number}\n" for arm in range(6) for number in range(9))
    pilot.write_text("time,server,ms\n" + rows)
    assert "--candidate" in refused("plan", "--budget", 2_000, "-m", 2, "--pilot", pilot)
    named = ("--candidate", "server", "--reward", "ms", "--direction", "minimize", "--bounds", "0,500")
    arguments = ("--budget", 2_000, "-m", 2, "--pilot", pilot, *named, "--algorithm", "uniform", "--jobs", 1)
    data = json.loads(run("plan", *arguments, "--json").stdout)
    arms = ct.read_rewards(pilot, candidate="server", reward="ms", direction="minimize", bounds=(0, 500))
    assert data == ct.plan(budget=2_000, m=2, pilot=arms, algorithms=["uniform"], jobs=1).to_dict()
    assert "candidate is 'host', but the columns are 'time, server, ms'" in refused(
        "plan", *arguments, "--candidate", "host"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budget", 100], "none was given"),
        (["--budget", 100, "-n", 8, "--spread", 0.6, 0.2], "--spread is (0.6, 0.2)"),
        (["--spread", 0.2, 0.6], "--spread only applies with --budget"),
        (["--budget", 100, "--cost", "nan", "-n", 8, "--gap", 0.1], "--cost of candidate '0' is nan, but a positive"),
        (["--budget", 100, "--cost", -1, "-n", 8, "--gap", 0.1], "--cost of candidate '0' is -1.0, but a positive"),
        (["--budget", 100, "--reward", "r"], "--reward only applies with a CSV file as --pilot, which was not given"),
        (["--budget", 100, "--bounds", "0,9", "--pilot", "a.ctlog"], "as --pilot, but --pilot is 'a.ctlog'"),
    ],
)
def test_a_budget_that_cannot_be_planned_gets_one_line(refused, arguments, message):
    assert message in refused("plan", "-m", 1, *arguments)
