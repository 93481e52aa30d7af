"""The command line as a whole, part of it as a real process."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import collabtop as ct

COMMAND = Path(sys.executable).with_name("collabtop")


def process(*arguments, **settings):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, check=False, timeout=60, **settings)


def test_help_teaches_every_command_with_examples(run):
    for command in ("identify", "algorithms", "demo"):
        assert command in run("--help").stdout
        help_text = run(command, "--help").stdout
        assert "Examples" in help_text
        assert f"collabtop {command}" in help_text


def test_no_arguments_show_the_help(run):
    result = run()
    assert result.exit_code == 0
    assert "identify" in result.output
    assert "error:" not in result.output


def test_version_is_the_packages(run):
    assert run("--version").stdout == f"collabtop {ct.__version__}\n"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["identify", "--help"], ["certs", "make", "--help"]])
def test_help_and_version_do_not_wait_for_numpy(arguments):
    script = "import atexit, sys; atexit.register(lambda: print('numpy' in sys.modules))"
    script += "; from collabtop.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "False"


def test_unknown_commands_and_options_get_one_line(refused):
    assert "nonsense" in refused("nonsense")
    assert "--nonsense" in refused("--nonsense")


def test_the_installed_command_runs_and_prints_json(means):
    result = process("identify", "--means", means, "-m", 2, "--agents", 3, "--horizon", 2_000, "--seed", 7, "--json")
    assert result.returncode == 0
    assert result.stderr == b""
    assert json.loads(result.stdout)["top"] == ["Ronin", "Heat"]


def test_the_installed_command_fails_with_one_line_and_no_traceback(tmp_path):
    result = process("identify", "--means", "absent.txt", "-m", 1, "--agents", 2, "--horizon", 10, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr == b"error: absent.txt: no such file or directory\n"


@pytest.mark.slow
def test_a_terminal_without_unicode_gets_plain_characters_and_json_stays_utf_8(tmp_path):
    path = tmp_path / "means.csv"
    path.write_text("title,mean\nAmélie,0.9\nHeat,0.1\n", encoding="utf-8")
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    common = ("identify", "--means", path, "-m", 1, "--agents", 1, "--horizon", 50)
    table = process(*common, env=ascii_only)
    assert table.returncode == 0
    assert "Am?lie" in table.stdout.decode("ascii")
    assert json.loads(process(*common, "--json", env=ascii_only).stdout)["top"] == ["Amélie"]
    assert process("demo", env=ascii_only).stdout.isascii()


def test_a_reader_that_stops_early_gets_no_traceback():
    with subprocess.Popen([COMMAND, "demo", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.close()
        complaint = child.stderr.read()
    assert b"Traceback" not in complaint


def test_ctrl_c_ends_with_130_and_one_line(tmp_path):
    pipe = tmp_path / "means.txt"
    os.mkfifo(pipe)
    arguments = ["identify", "--means", pipe, "-m", "1", "--agents", "1", "--horizon", "100"]
    child = subprocess.Popen([COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with child, pipe.open("w"):  # waits for the command to open the other end: it is at work, and blocked
        child.send_signal(signal.SIGINT)
        out, complaint = child.communicate(timeout=30)
    assert (child.returncode, out, complaint) == (130, b"", b"error: interrupted\n")
