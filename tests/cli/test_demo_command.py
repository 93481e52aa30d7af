import json
import shlex

import pytest


def test_it_shows_what_each_algorithm_found_what_it_cost_and_every_round(run):
    result = run("demo")
    assert result.exit_code == 0
    for text in (
        "frugal-top",
        "collab-top-iid",
        "kzz",
        "words",
        "bits",
        "round trips",
        "8 of 8",
        "movie 527",
        "round by round",
    ):
        assert text in result.stdout


def test_json_shows_all_right_and_frugal_top_with_far_fewer_words(run):
    runs = json.loads(run("demo", "--json").stdout)["runs"]
    assert [run["algorithm"] for run in runs] == ["frugal-top", "collab-top-iid", "kzz"]
    assert [run["right"] for run in runs] == [8, 8, 8]
    frugal, paper, kzz = (run["words"] for run in runs)
    assert 2 * frugal < paper < kzz / 5
    assert all(sum(step["words"] for step in run["rounds"]) == run["words"] for run in runs)


def test_the_line_to_try_next_works_with_a_module_of_ones_own(run, tmp_path, monkeypatch):
    line = run("demo").stdout.strip().splitlines()[-1]
    command = shlex.split(line.partition(": ")[2])
    assert command[:2] == ["collabtop", "identify"]
    score = "def score(prompt, rng):\n    return rng.random() < len(prompt) / 5\n"
    (tmp_path / "prompts.py").write_text(f"candidates = ['a', 'bb', 'ccc', 'dddd']\n\n{score}")
    monkeypatch.syspath_prepend(tmp_path)
    result = run(*command[1:], "--json")
    assert result.exit_code == 0
    assert set(json.loads(result.stdout)["top"]) == {"bb", "ccc", "dddd"}


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
