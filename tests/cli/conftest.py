import pytest
from typer.testing import CliRunner

from collabtop.cli import app


@pytest.fixture
def run():
    """Run the command line in this process; a traceback fails the test."""

    def invoke(*arguments):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="collabtop")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


@pytest.fixture
def refused(run):
    """Run the command line, see that it fails with one line on stderr and nothing on stdout, and return the line."""

    def invoke(*arguments, code=2):
        result = run(*arguments)
        assert result.exit_code == code
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        return result.stderr.removeprefix("error: ").rstrip("\n")

    return invoke


@pytest.fixture
def means(tmp_path):
    """A file of 20 means with labels, the last two the best."""
    path = tmp_path / "means.csv"
    rows = [f"film {place:02d},{0.1 + 0.02 * place:.2f}" for place in range(18)]
    path.write_text("\n".join(["title,mean", *rows, "Heat,0.8", "Ronin,0.95"]) + "\n")
    return path


@pytest.fixture
def group_means(tmp_path):
    """A file of 3 arms as 2 agents see them."""
    path = tmp_path / "group_means.txt"
    path.write_text("0.9 0.1\n0.6 0.8\n0.2 0.2\n")
    return path
