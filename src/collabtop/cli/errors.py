"""How the command line ends when something is wrong: one line on stderr and an exit code, no traceback."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from collabtop.errors import CollabtopError, InputError

BAD_INPUT, FAILED, INTERRUPTED = 2, 1, 130
_PACKAGE = Path(__file__).parent.parent

# Typer shows its own complaints in a box; they are all of this class, which it gives no name to.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class OneLineErrors(TyperGroup):
    """Commands whose errors are one line: `error: ...`."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run, and end the process with the right code."""
        kwargs["standalone_mode"] = False
        try:
            code = super().main(*args, **kwargs)
        except _UsageError as error:
            if not str(error):  # no command at all: the help was shown instead
                sys.exit(0)
            _end(_usage(error), BAD_INPUT)
        except typer.Abort:
            _end("interrupted", INTERRUPTED)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run a command, and turn what it raises into one line."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            _end(str(error), BAD_INPUT)
        except CollabtopError as error:
            _end(f"{error}{_place(error.__cause__)}", FAILED)
        except KeyboardInterrupt:
            _end("interrupted", INTERRUPTED)


@contextmanager
def resumable() -> Iterator[None]:
    """Say at Ctrl-C that what is done is kept."""
    try:
        yield
    except KeyboardInterrupt:
        _end("interrupted: the same command goes on where it stopped", INTERRUPTED)


def _place(cause: BaseException | None) -> str:
    """Where in the user's own code an exception came from."""
    frames = traceback.extract_tb(cause.__traceback__) if cause is not None else []
    theirs = [frame for frame in frames if _PACKAGE not in Path(frame.filename).parents]
    return f" ({Path(theirs[-1].filename).name}, line {theirs[-1].lineno}, in {theirs[-1].name})" if theirs else ""


def _usage(error: Any) -> str:
    message = " ".join(error.format_message().split()).rstrip(".")
    return f"{message} ({error.ctx.command_path} --help)" if error.ctx else message


def _end(message: str, code: int) -> NoReturn:
    typer.echo(f"error: {' '.join(message.splitlines())}", err=True)
    sys.exit(code)
