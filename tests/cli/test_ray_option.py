"""`--team ray` on the command line: the output of any other team."""

from __future__ import annotations

import json

import pytest


@pytest.mark.slow
def test_identify_and_resume_print_what_they_print_on_the_local_team(run, means, tmp_path, three_nodes):
    asked = ("identify", "--means", means, "-m", 2, "--agents", 3, "--horizon", 600, "--seed", 5, "--json")
    log = tmp_path / "run.ctlog"
    there = run(*asked, "--team", "ray", "--address", three_nodes.address, "--checkpoint", log)
    assert there.exit_code == 0
    assert json.loads(there.stdout) == json.loads(run(*asked).stdout)
    again = run("resume", log, "--means", means, "--team", "ray", "--json")
    assert again.stdout == there.stdout


@pytest.mark.slow
def test_a_study_prints_what_it_prints_on_this_machine(run, tmp_path, three_nodes):
    grid = tmp_path / "grid.toml"
    grid.write_text(
        'algorithms = ["kzz"]\nagents = 2\nhorizon = 40\nruns = 10\n'
        'arms.hard = {instance = "equal_gaps", n = 4, m = 1, gap = 0.2}\n'
    )
    there = run("study", grid, "--out", tmp_path / "there", "--team", "ray", "--json")
    here = run("study", grid, "--out", tmp_path / "here", "--jobs", 1, "--json")
    assert json.loads(there.stdout)["points"] == json.loads(here.stdout)["points"]


def test_an_address_without_ray_is_refused(refused, means, tmp_path):
    asked = ("--means", means, "-m", 2, "--agents", 3, "--horizon", 600, "--address", "10.0.0.1:6379")
    assert refused("identify", *asked) == "--address only applies with --team ray, but --team is local"
