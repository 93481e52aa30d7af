import json

import pytest


def test_it_shows_what_each_algorithm_found_what_it_cost_and_every_round(run):
    result = run("demo")
    assert result.exit_code == 0
    for text in ("collab-top-iid", "kzz", "words", "bits", "round trips", "8 of 8", "movie 527", "round by round"):
        assert text in result.stdout


def test_json_shows_both_right_and_collab_top_iid_with_far_fewer_words(run):
    ours, theirs = json.loads(run("demo", "--json").stdout)["runs"]
    assert (ours["algorithm"], theirs["algorithm"]) == ("collab-top-iid", "kzz")
    assert ours["right"] == theirs["right"] == 8
    assert 5 * ours["words"] < theirs["words"]
    assert sum(step["words"] for step in ours["rounds"]) == ours["words"]


def test_the_seed_decides_the_run(run):
    assert run("demo", "--json", "--seed", 3).stdout == run("demo", "--json", "--seed", 3).stdout
    assert run("demo", "--json", "--seed", 3).stdout != run("demo", "--json", "--seed", 4).stdout


@pytest.mark.parametrize(("name", "begins"), [("d.png", b"\x89PNG"), ("d.SVG", b"<?xml"), ("d.pdf", b"%PDF")])
def test_out_draws_the_picture_in_each_format(run, tmp_path, name, begins):
    result = run("demo", "--out", tmp_path / name)
    assert result.exit_code == 0
    assert (tmp_path / name).read_bytes().startswith(begins)
    assert name in result.stdout


def test_with_json_the_picture_is_drawn_without_a_word(run, tmp_path):
    result = run("demo", "--json", "--out", tmp_path / "demo.png")
    assert json.loads(result.stdout)
    assert (tmp_path / "demo.png").exists()


def test_a_picture_that_cannot_be_written_is_refused_before_anything_runs(refused, tmp_path):
    assert "a name that ends in .png, .svg or .pdf is needed" in refused("demo", "--out", tmp_path / "demo.gif")
    assert "there is no folder" in refused("demo", "--out", tmp_path / "nowhere" / "demo.png")


def test_a_picture_whose_place_is_taken_by_a_folder_is_refused_by_name(refused, tmp_path):
    (tmp_path / "demo.png").mkdir()
    assert "demo.png: is a directory" in refused("demo", "--out", tmp_path / "demo.png")
