"""`collabtop ask` and `collabtop tell`: a session in files, from its start to its result."""

from __future__ import annotations

import csv
import json

import pytest

import collabtop as ct


@pytest.fixture
def names(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("tea\n\ncoffee, black\n milk\n")
    return path


@pytest.fixture
def log(tmp_path):
    return tmp_path / "run.ctlog"


@pytest.fixture
def todo(run, names, log, tmp_path):
    """The first pulls of a session."""
    path = tmp_path / "todo.csv"
    ended = run("ask", log, "--candidates", names, "-m", 1, "--agents", 2, "--budget", 60, "--seed", 1, "--csv", path)
    assert ended.exit_code == 0, ended.stderr
    assert "pulls of 2 agents have no reward yet" in ended.stdout
    return path


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def fill(path, reward, only=lambda row: True):
    rows = rows_of(path)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"reward": reward(row) if only(row) else ""} for row in rows)


def by_count(row):
    times = int(row["times"])
    return f"{times if row['candidate'] == 'milk' else 0}/{times}"


def test_a_session_runs_from_file_to_file(run, log, todo):
    assert {row["candidate"] for row in rows_of(todo)} == {"tea", "coffee, black", "milk"}
    for _ in range(100):
        fill(todo, by_count)
        ended = run("tell", log, todo)
        assert ended.exit_code == 0, ended.stderr
        assert "rewards taken" in ended.stdout
        if "no reward yet" not in ended.stdout:
            break
        run("ask", log, "--csv", todo)
    assert "milk" in ended.stdout
    assert "The best 1 of 3" in run("ask", log).stdout
    assert ct.Session(log).result().top == ["milk"]


def test_rows_without_a_reward_are_left_for_later(run, log, todo):
    fill(todo, lambda row: " ".join(["0.5"] * int(row["times"])), only=lambda row: row["agent"] == "0")
    assert run("tell", log, todo).exit_code == 0
    pulls = ct.Session(log).ask()
    assert [pull.number for pull in pulls if pull.agent == 1] == [
        int(row["pull"]) for row in rows_of(todo) if row["agent"] == "1"
    ]


def test_pulls_are_listed_as_a_table_or_as_json_one_by_one_if_wanted(run, log, todo):
    assert "coffee, black" in run("ask", log).stdout
    pulls = json.loads(run("ask", log, "--single", "--json").stdout)
    assert {pull["times"] for pull in pulls} == {1}
    assert len(pulls) == sum(int(row["times"]) for row in rows_of(todo))


def test_examples_are_listed_by_their_index(run, names, log):
    options = ("-m", 1, "--agents", 1, "--horizon", 12, "--examples", 4, "--algorithm", "uniform")
    pulls = json.loads(run("ask", log, "--candidates", names, *options, "--json").stdout)
    assert sorted({pull["example"] for pull in pulls}) == [0, 1, 2, 3]


def test_agents_of_a_session_count_by_their_weights(run, names, log, tmp_path):
    todo, start = tmp_path / "todo.csv", ("-m", 1, "--agents", 2, "--horizon", 60, "--seed", 1, "--by-agent")
    assert run("ask", log, "--candidates", names, *start, "--weights", "1,4", "--csv", todo).exit_code == 0
    while ct.Session(log).ask():  # agent 0 likes tea, agent 1 milk
        run("ask", log, "--csv", todo)
        fill(todo, lambda row: f"{int(row['times']) * ((row['agent'], row['candidate']) in LIKED)}/{row['times']}")
        assert run("tell", log, todo).exit_code == 0
    assert ct.Session(log).result().top == ["milk"]
    assert ct.peek(log).estimates[2].mean == pytest.approx(0.8)


LIKED = {("0", "tea"), ("1", "milk"), ("0", "coffee, black")}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("0,0,milk,1,1", "line 2: pull 0 of agent 0 is of candidate 'tea', not of 'milk'"),
        ("0,9999,tea,1,1", "line 2: pull 9999 of agent 0 was not asked for"),
        ("0,0,tea,1,2", "line 2: the reward is 2.0, but a reward lies in [0, 1]"),
        ("0,0,tea,1,1\n0,0,tea,1,1", "line 3: pull 0 of agent 0 is in"),
        ("0,0,tea,2,1", "line 2: 2 rewards are needed, but there are 1"),
        ("0,0,tea,1,good", "line 2: the reward is 'good', but numbers are needed"),
        ("0,0,tea,4,5/4", "line 2: the reward is '5/4', but a count of 4 is needed, such as 0/4"),
        ("0,x,tea,1,1", "line 2: pull is 'x', but a whole number of at least 0 is needed"),
        ("0,0,tea,0,1", "line 2: times is '0', but a whole number of at least 1 is needed"),
        ("0,0,tea", "line 2: 3 columns, but line 1 has 5"),
    ],
)
def test_a_wrong_row_is_refused_by_its_line_and_nothing_is_taken(run, log, todo, tmp_path, row, message):
    before = ct.Session(log).ask()
    done = tmp_path / "done.csv"
    done.write_text(f"agent,pull,candidate,times,reward\n{row}\n0,1,tea,1,1\n")
    ended = run("tell", log, done)
    assert ended.exit_code != 0
    assert message in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ct.Session(log).ask() == before


def test_wrong_options_and_files_are_refused(refused, run, log, names, tmp_path):
    assert "-m is missing" in refused("ask", log, "--candidates", names)
    assert "only applies with --candidates" in refused("ask", log, "-m", 2)
    assert "--weights only applies with --candidates" in refused("ask", log, "--weights", "1,2")
    start = ("ask", log, "--candidates", names, "-m", 1, "--agents", 2, "--horizon", 9)
    assert "--weights only applies to arms that differ" in refused(*start, "--weights", "1,2")
    assert "--weights has 3 entries" in refused(*start, "--by-agent", "--weights", "1,2,3")
    assert "no such file" in run("ask", tmp_path / "none.ctlog").stderr
    empty = tmp_path / "empty.txt"
    empty.write_text("\n")
    assert "the file has no candidates" in run("ask", log, "--candidates", empty, "-m", 1).stderr
    assert run("ask", log, "--candidates", names, "-m", 1, "--agents", 1, "--horizon", 9).exit_code == 0
    assert "no column 'agent'" in run("tell", log, empty).stderr
    quoted = tmp_path / "quoted.csv"
    quoted.write_text("agent,pull,candidate,reward\n" + "x" * 200_000)
    assert "line 2: field larger than field limit" in run("tell", log, quoted).stderr
    assert "--csv" in run("ask", log, "--csv", tmp_path / "nowhere" / "todo.csv").stderr
