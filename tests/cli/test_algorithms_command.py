import json

import collabtop as ct


def test_json_lists_every_algorithm_with_what_it_is_for_and_its_options(run):
    rows = {row["name"]: row for row in json.loads(run("algorithms", "--json").stdout)}
    assert set(rows) >= set(ct.available_algorithms())
    assert rows["collab-top-iid"]["arms"] == "IID arms"
    assert rows["collab-top-iid"]["options"] == {"schedule": "paper"}
    assert rows["uniform"]["arms"] == "all arms"
    assert rows["uniform"]["summary"] == ct.Uniform.summary
    assert rows["kzz"]["options"] == {"balanced": False}


def test_an_algorithm_with_options_fixed_by_its_name_says_which(run):
    rows = {row["name"]: row for row in json.loads(run("algorithms", "--json").stdout)}
    assert rows["kzz-balanced"]["summary"] == "kzz with balanced=True"
    assert rows["kzz-balanced"]["options"] == {}


def test_algorithms_for_one_agent_or_one_arm_say_so(run):
    limits = {row["name"]: row["limits"] for row in json.loads(run("algorithms", "--json").stdout)}
    assert limits["sar"] == ["one agent"]
    assert limits["sequential-halving"] == ["one agent", "m = 1"]
    assert limits["kzz"] == []


def test_the_table_shows_names_and_defaults_whole(run):
    result = run("algorithms")
    assert result.exit_code == 0
    for name in (*ct.available_algorithms(), "schedule=paper", "balanced=False"):
        assert name in result.stdout
