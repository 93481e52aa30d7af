import json

import pytest

import collabtop as ct


def test_it_prints_the_best_arms_by_label_and_what_they_cost(run, means):
    result = run("identify", "--means", means, "-m", 2, "--agents", 3, "--horizon", 2_000, "--seed", 7)
    assert result.exit_code == 0
    assert result.stdout.index("Ronin") < result.stdout.index("Heat")
    assert "words" in result.stdout
    assert result.stderr == ""


def test_json_is_the_result_and_nothing_else(run, means):
    result = run("identify", "--means", means, "-m", 2, "--agents", 3, "--horizon", 2_000, "--seed", 7, "--json")
    expected = ct.identify(ct.read_arms(means), m=2, agents=3, horizon=2_000, seed=7)
    assert json.loads(result.stdout) == json.loads(expected.to_json())


def test_an_algorithm_and_its_options_are_passed_on(run, means):
    common = ("identify", "--means", means, "-m", 2, "--agents", 3, "--horizon", 2_000, "--seed", 7, "--json")
    found = json.loads(run(*common, "--algorithm", "collab-top-iid", "--option", "schedule=full").stdout)
    assert (found["algorithm"], found["options"]) == ("collab-top-iid", {"schedule": "full"})
    found = json.loads(run(*common, "--algorithm", "kzz", "--option", "balanced=True").stdout)
    assert found["algorithm"] == "kzz-balanced"
    found = json.loads(run(*common, "--algorithm", "kzz", "--option", "balanced=no").stdout)
    assert found["algorithm"] == "kzz"
    found = json.loads(run(*common, "--algorithm", "frugal-top", "--option", "round_trips=1").stdout)
    assert (found["options"]["round_trips"], found["round_trips"]) == (1, 1)


def test_a_non_iid_file_knows_its_agents(run, group_means):
    found = json.loads(run("identify", "--means", group_means, "-m", 1, "--horizon", 5_000, "--json").stdout)
    assert (found["agents"], found["algorithm"], found["top"]) == (2, "frugal-top-noniid", [1])


def test_without_a_seed_one_is_drawn_and_reported_and_repeats_the_run(run, means):
    common = ("identify", "--means", means, "-m", 1, "--agents", 2, "--horizon", 500, "--json")
    first = run(*common)
    assert first.stdout == run(*common, "--seed", json.loads(first.stdout)["seed"]).stdout


def test_a_private_run_is_that_of_python(run, means):
    asked = ("identify", "--means", means, "-m", 2, "--agents", 3, "--horizon", 5_000, "--seed", 7)
    private = json.loads(run(*asked, "--privacy", "0.5,1e-6,reward", "--json").stdout)
    privacy = ct.Privacy(epsilon=0.5, delta=1e-6, unit="reward")
    expected = ct.identify(ct.read_arms(means), 2, agents=3, horizon=5_000, seed=7, privacy=privacy)
    assert private == json.loads(expected.to_json())
    assert "epsilon 0.5 per reward (delta 1e-06)" in run(*asked, "--privacy", "0.5,1e-6,reward").stdout


def test_a_dry_run_forecasts_the_algorithm_of_a_private_or_robust_run(run, means):
    asked = ("identify", "--means", means, "-m", 2, "--agents", 3, "--horizon", 5_000, "--dry-run", "--json")
    forecasts = [run(*asked, *more) for more in (("--privacy", "1,1e-6,reward"), ("--robust", 1))]
    assert [json.loads(shown.stdout)["algorithm"] for shown in forecasts] == ["kzz-balanced", "robust-top"]


@pytest.mark.parametrize("command", ["identify", "plan"])
def test_the_help_explains_privacy(run, command):
    text = " ".join(run(command, "--help").stdout.replace("│", " ").split())
    assert "EPS,DELTA,UNIT" in text
    assert "smaller EPS is more private" in text
    assert "--privacy 1,1e-6," in text


def test_labels_in_square_brackets_are_shown_as_they_are(run, tmp_path):
    path = tmp_path / "means.csv"
    path.write_text("title,mean\n[rec],0.9\n[/b] odd,0.1\n")
    result = run("identify", "--means", path, "-m", 2, "--agents", 1, "--horizon", 10)
    assert "[rec]" in result.stdout
    assert "[/b] odd" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-m", 0], "-m is 0, but a whole number of at least 1 is needed"),
        (["-m", 21], "there are only 20 arms"),
        (["--horizon", 1], "--horizon is 1, but 20 arms and 3 agents need at least"),
        (["--agents", 0], "--agents is 0, but"),
        (["--seed", -1], "--seed is -1, but"),
        (["--algorithm", "kz"], "--algorithm is 'kz' (did you mean 'kzz'?)"),
        (["--algorithm", "sar"], "--agents is 3, but sar runs with 1 agent"),
        (["--algorithm", "kzz", "--option", "schedule=full"], "--option schedule is not an option of kzz"),
        (
            ["--algorithm", "frugal-top", "--option", "round_trips=few"],
            "--option round_trips is 'few', but a whole number of at least 1 is needed",
        ),
        (
            ["--algorithm", "kzz", "--option", "balanced=maybe"],
            "--option balanced is 'maybe', but true or false is needed",
        ),
        (["--algorithm", "kzz", "--option", "balanced"], "--option is 'balanced', but NAME=VALUE is needed"),
        (
            ["--algorithm", "kzz", "--option", "balanced=1", "--option", "balanced=0"],
            "--option balanced is given twice",
        ),
        (["--algorithm", "collab-top-iid", "--option", "schedule=half"], "--option schedule is 'half', but"),
        (["--option", "schedule=full"], "--option has ['schedule'], but algorithm is 'auto': name the algorithm"),
        (["--privacy", "1"], "--privacy is '1', but EPS,DELTA,UNIT is needed, such as 1,1e-6,reward"),
        (["--privacy", "much,1e-6,reward"], "--privacy is 'much,1e-6,reward', but EPS,DELTA,UNIT is needed"),
        (["--privacy", "0,1e-6,reward"], "--privacy is '0,1e-6,reward': epsilon is 0.0, but a positive number is"),
        (["--privacy", "1,2,reward"], "delta is 2.0, but a probability between 0 and 1 is needed, such as 1e-6"),
        (["--privacy", "1,1e-6,patient"], "unit is 'patient', but 'example' or 'reward' is needed"),
        (["--privacy", "1,1e-6,example"], "--privacy: unit is 'example', but BernoulliArms may use an example"),
        (["--privacy", "1,1e-6,reward", "--robust", 1], "algorithm is 'robust-top', whose messages have no noise"),
        (["-m", "two"], "-m"),
        (["--colour", "red"], "--colour"),
    ],
)
def test_bad_arguments_get_one_line_and_exit_code_2(refused, means, arguments, message):
    good = ["--means", means, "-m", 2, "--agents", 3, "--horizon", 2_000]
    assert message in refused("identify", *good, *arguments)


def test_a_missing_argument_gets_one_line_that_names_it_and_the_help(refused):
    line = refused("identify", "-m", 2)
    assert "--means" in line
    assert "collabtop identify --help" in line


def test_iid_arms_need_the_number_of_agents(refused, means):
    assert "agents is missing" in refused("identify", "--means", means, "-m", 2, "--horizon", 2_000)


def test_an_iid_algorithm_is_refused_for_a_non_iid_file(refused, group_means):
    line = refused("identify", "--means", group_means, "-m", 1, "--horizon", 900, "--algorithm", "kzz")
    assert "differ from agent to agent" in line


def test_a_malformed_file_is_named_with_its_line(refused, tmp_path):
    path = tmp_path / "means.txt"
    path.write_text("0.5\nhalf\n")
    line = refused("identify", "--means", path, "-m", 1, "--agents", 2, "--horizon", 100)
    assert line == f"{path}, line 2: found 'half', but a number is needed"


def test_a_failed_run_has_exit_code_1(refused, means, monkeypatch):
    def broken(*_, **__):
        raise ct.PullError("pull of candidate 'x' raised\nZeroDivisionError", "x")

    monkeypatch.setattr("collabtop.identify", broken)
    line = refused("identify", "--means", means, "-m", 1, "--agents", 2, "--horizon", 100, code=1)
    assert line == "pull of candidate 'x' raised ZeroDivisionError"


@pytest.fixture
def table(tmp_path):
    """A file in which plain averages favour Heat, and the third agent Ronin."""
    path = tmp_path / "table.csv"
    path.write_text("title,a,b,c\nHeat,0.9,0.8,0.1\nRonin,0.4,0.4,0.7\nGigli,0.1,0.2,0.1\n")
    return path


def test_agents_of_a_non_iid_file_count_by_their_weights(run, table, tmp_path):
    common = ("identify", "--means", table, "-m", 1, "--horizon", 4_000, "--seed", 1, "--json")
    assert json.loads(run(*common).stdout)["top"] == ["Heat"]
    log = tmp_path / "run.ctlog"
    weighted = run(*common, "--weights", "0.1,0.1,0.4", "--checkpoint", log)
    assert json.loads(weighted.stdout)["top"] == ["Ronin"]
    assert run("resume", log, "--means", table, "--json").stdout == weighted.stdout
    extended = run("extend", log, "--means", table, "--horizon", 6_000, "--json")
    assert json.loads(extended.stdout)["top"] == ["Ronin"]


def test_agents_of_logged_rewards_count_by_their_weights(run, tmp_path):
    rewards = {("x", "north"): "1", ("x", "south"): "0", ("y", "north"): "0", ("y", "south"): "1"}
    rows = [f"{name},{agent},{reward}" for (name, agent), reward in rewards.items() for _ in range(20)]
    path, log = tmp_path / "rewards.csv", tmp_path / "run.ctlog"
    path.write_text("candidate,agent,reward\n" + "\n".join(rows))
    common = ("identify", "--csv", path, "-m", 1, "--horizon", 40, "--seed", 1, "--json")
    for weights, best in (("3,1", "x"), ("1,3", "y")):
        found = run(*common, "--weights", weights, "--checkpoint", log)
        assert json.loads(found.stdout)["top"] == [best]
        assert run("resume", log, "--csv", path, "--json").stdout == found.stdout
        log.unlink()


@pytest.mark.parametrize(
    ("weights", "error"),
    [
        ("1,1", "--weights has 2 entries, but there are 3 agents"),
        ("1,1,0", "--weights[2] is 0.0, but a number above 0 is needed"),
        ("1,1,nan", "--weights[2] is nan, but a number above 0 is needed"),
        ("1,1,x", "--weights is '1,1,x', but one number per agent is needed, separated by commas, such as 1,1,4"),
    ],
)
def test_wrong_weights_are_named(refused, table, weights, error):
    assert refused("identify", "--means", table, "-m", 1, "--horizon", 400, "--weights", weights) == error
    assert refused("plan", "--means", table, "-m", 1, "--weights", weights) == error


def test_weights_that_apply_to_nothing_are_refused(refused, means):
    common = ("-m", 1, "--agents", 2, "--horizon", 2_000, "--weights", "1,2")
    line = "--weights only applies to arms that differ between agents (non-IID); these are the same for all"
    assert refused("identify", "--means", means, *common) == line
    assert "--weights only applies with --means or --csv" in refused("identify", "--arms", "math:pi", *common)
    assert refused("plan", "-n", 8, "-m", 1, "--agents", 2, "--gap", 0.4, "--weights", "1,2") == (
        "--weights only applies with --means"
    )


def test_a_plan_is_made_for_weighted_values(run, table):
    common = ("plan", "--means", table, "-m", 1, "--no-simulation", "--json")
    gaps = [json.loads(run(*common, *more).stdout)["gap"] for more in ((), ("--weights", "1,1,4"))]
    assert gaps == pytest.approx([0.1, 0.25])
