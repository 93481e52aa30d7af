"""Every code block and command in README and docs is run as written, in a fresh folder, with the files of its page."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from collabtop.cli import app
from tests.support.doc_pages import ELSEWHERE, FILES, PAGES, ROOT, SLOW, blocks, commands, files, runs_elsewhere

COMMAND = Path(sys.executable).with_name("collabtop")


def name(page):
    return page.name


# -- blocks


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_is_of_a_sort_that_is_run_or_checked(page):
    shown = blocks(page)
    assert [block.text for block in shown if block.sort == "unknown"] == []
    fences = re.findall(r"^[ \t]*(?:```|~~~)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) == 2 * len(shown), "a fence that is indented, of a different kind, or not closed is not checked"


def test_a_block_of_a_new_sort_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```yaml\na: 1\n```\n\n```console\n$ collabtop demo\n```\n\n```\nhello\n```\n")
    assert [block.sort for block in blocks(page)] == ["unknown"] * 3


def test_python_blocks_with_prompts_are_doctests_of_this_suite():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert "--doctest-glob=*.md" in settings["addopts"]
    for page in PAGES:
        assert {str(path.relative_to(ROOT)) for path in (page, page.parent)} & set(settings["testpaths"])


@pytest.mark.parametrize("excerpt", [block for page in PAGES for block in blocks(page) if block.sort == "excerpt"])
def test_an_excerpt_is_part_of_an_example_that_its_page_links_to(excerpt):
    linked = re.findall(r"\]\(\.\./((?:examples|tests/support)/\w+\.py)\)", excerpt.page.read_text(encoding="utf-8"))
    sources = [(ROOT / path).read_text(encoding="utf-8") for path in linked]
    assert any(excerpt.text in source for source in sources), (
        "the tests run examples/ and tests/support/: quote from there"
    )


def test_every_entry_of_the_package_tree_exists():
    [tree] = [block.text for page in PAGES for block in blocks(page) if block.sort == "tree"]
    for entry in re.findall(r"^  ([\w./]+) ", tree, re.MULTILINE):
        assert (ROOT / "src" / "collabtop" / entry).exists(), entry


# -- commands


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A fresh working directory, from which modules can be imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for variable in ("DISPLAY", "WAYLAND_DISPLAY"):  # no browser opens
        monkeypatch.delenv(variable, raising=False)
    before = set(sys.modules)
    yield tmp_path
    for module in set(sys.modules) - before:
        if getattr(sys.modules[module], "__file__", None) and str(tmp_path) in str(sys.modules[module].__file__):
            del sys.modules[module]


def run(command):
    program, *arguments = shlex.split(command)
    assert program == "collabtop", f"{command!r} is not run here, and doc_pages.py names no other test that runs it"
    if arguments[0] == "watch":
        look_at(arguments)
        return
    result = CliRunner().invoke(app, arguments, prog_name="collabtop")  # in this process: no start to wait for
    assert result.exit_code == 0, f"{command}\n{result.output}"


def look_at(arguments):
    """Serve the page on a free port, open it, and end the server with Ctrl-C."""
    if not arguments[1].endswith(".ctlog"):
        Path(arguments[1]).mkdir(exist_ok=True)
    command = [COMMAND, *arguments, "--port", "0", "--no-open"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            port, query = re.search(r"http://[^/]+:(\d+)/(\S*)", process.stderr.readline()).groups()
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor())
            if "--token-file" in arguments:
                opener.addheaders.append(("Authorization", f"Bearer {FILES['token.txt'].strip()}"))
            with opener.open(f"http://127.0.0.1:{port}/{query}", timeout=10) as answer:
                assert "<title>collabtop</title>" in answer.read().decode()
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
        finally:
            process.kill()


def of_page(page, *, slow):
    return [
        command for command in commands(page) if not runs_elsewhere(command) and bool(re.search(SLOW, command)) == slow
    ]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name(page), marks=() if name(page) == "README.md" else pytest.mark.slow)
        for page in PAGES
        if of_page(page, slow=False)
    ],
)
def test_the_commands_of_a_page_work_as_written(page, folder):
    for file, text in files(page).items():
        (folder / file).write_text(text)
        (folder / file).chmod(0o600)
    for command in of_page(page, slow=False):
        run(command)


@pytest.mark.long
@pytest.mark.parametrize("command", sorted({command for page in PAGES for command in of_page(page, slow=True)}))
def test_commands_that_take_a_minute_work_as_written(command, folder):
    run(command)


def test_every_extra_that_a_page_installs_exists():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    installs = [command for page in PAGES for command in commands(page) if "pip install" in command]
    assert len(installs) >= 5
    for command in installs:
        assert re.fullmatch(
            r"(python3 -m venv \.venv && \.venv/bin/)?pip install (-q -e )?('?[\w.]*(\[(\w+)\])?'?)( && .*)?", command
        ), command
        assert set(re.findall(r"\[(\w+)\]", command)) <= extras.keys()


def test_there_are_commands_to_run():
    assert sum(len(of_page(page, slow=False)) for page in PAGES) >= 15


def test_commands_that_are_run_elsewhere_are_on_a_page_and_their_tests_exist():
    for pattern, tests in ELSEWHERE.items():
        assert any(re.search(pattern, command) for page in PAGES for command in commands(page)), pattern
        assert all((ROOT / path).is_file() for path in tests), tests


# -- names and links in the text


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_programs_and_commands_that_are_named_exist(page):
    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    names |= {group.name for group in app.registered_groups}
    text = page.read_text(encoding="utf-8")
    for program in re.findall(r"`(?:\.venv/bin/)?python ((?:benchmarks|examples)/[\w.]+)", text):
        assert (ROOT / program).exists(), program
    for command in re.findall(r"`collabtop ([a-z]+)", text):
        assert command in names, command


def test_programs_that_comments_name_exist():
    for path in (ROOT / "src").rglob("*.py"):
        for program in re.findall(r"\b(?:benchmarks|examples)/\w+\.py", path.read_text(encoding="utf-8")):
            assert (ROOT / program).exists(), f"{path}: {program}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pictures_and_pages_that_are_linked_to_exist(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target
