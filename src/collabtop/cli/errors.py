"""Errors on the command line: one line on stderr and an exit code, no traceback."""

import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from collabtop.errors import CollabtopError, InputError

BAD_INPUT, FAILED, INTERRUPTED = 2, 1, 130
_PACKAGE = Path(__file__).parent.parent

# The base class of Typer's own errors, which it does not export: Typer would print them in a box.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


# Arguments whose option has a different name, where the command has that option.
_OPTION_NAMES = {
    "algorithms": "algorithm",
    "options": "option",
    "simulate": "simulation",
    "hosts": "host",
    "dealt_to": "agents",
    "checkpoint": "log",
}


class Command(TyperCommand):
    """A command whose errors name options (`--agents is 0, ...`), not Python arguments."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            argument = error.argument or ""
            message = in_options(str(error), argument, self._option_for(argument, ctx))
            names = "|".join(param.name for param in self.params)
            message = re.sub(rf"\b({names})=(?=\W|$)", lambda name: self._option_for(name[1], ctx) or name[0], message)
            _end(message, BAD_INPUT)

    def _option_for(self, argument: str, ctx: Any) -> str | None:
        """The option that an argument was given by, if it was given by one."""
        if argument in [pair.partition("=")[0] for pair in ctx.params.get("option") or ()]:
            return f"--option {argument}"
        options = {param.name: param.opts[0] for param in self.params if param.param_type_name == "option"}
        return options.get(argument) or options.get(_OPTION_NAMES.get(argument, ""))


def in_options(message: str, argument: str, option: str | None) -> str:
    """A message about an argument, as a message about the option it was given by.

    >>> in_options("agents is 0, but a whole number of at least 1 is needed", "agents", "--agents")
    '--agents is 0, but a whole number of at least 1 is needed'
    >>> in_options("tolerance= only applies with confidence=", "tolerance", "--tolerance")
    '--tolerance only applies with confidence='
    >>> in_options("there is no room for so many", "agents", "--agents")
    '--agents: there is no room for so many'
    """
    if option is None or option in message:
        return message
    rest = message.removeprefix(argument).removeprefix("=")
    return f"{option}{rest}" if rest != message and rest[:1] in (" ", "[", ":") else f"{option}: {message}"


class OneLineErrors(TyperGroup):
    """Commands whose errors are one line: `error: ...`."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run, and end the process with the right code."""
        kwargs["standalone_mode"] = False
        try:
            code = super().main(*args, **kwargs)
        except _UsageError as error:
            if not str(error):  # no command was given: the help was shown instead
                sys.exit(0)
            _end(_usage(error), BAD_INPUT)
        except typer.Abort:
            _end("interrupted", INTERRUPTED)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run a command, and turn what it raises into one line."""
        try:
            return super().invoke(ctx)
        except CollabtopError as error:
            _end(f"{error}{_location(error.__cause__)}", FAILED)
        except KeyboardInterrupt:
            _end("interrupted", INTERRUPTED)


@contextmanager
def resumable(show: Callable[[Any], None] | None = None, *, logged: bool = True) -> Iterator[None]:
    """At Ctrl-C, `show` the result so far if there is one and, if the work is `logged`, print how to continue it."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        known = getattr(interrupt, "partial", None)
        if show is not None and known is not None:
            show(known)
        _end(f"interrupted{': run the same command again to continue' if logged else ''}", INTERRUPTED)


def _location(cause: BaseException | None) -> str:
    """Where in the user's own code an exception was raised."""
    frames = traceback.extract_tb(cause.__traceback__) if cause is not None else []
    own = [frame for frame in frames if _PACKAGE not in Path(frame.filename).parents]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name})" if own else ""


def _usage(error: Any) -> str:
    message = " ".join(error.format_message().split()).rstrip(".")
    return f"{message} ({error.ctx.command_path} --help)" if error.ctx else message


def _end(message: str, code: int) -> NoReturn:
    from collabtop.runs.printing import printable

    line = " ".join(message.splitlines())  # it may quote a file
    typer.echo(f"error: {printable(line, markup=False)}", err=True)
    sys.exit(code)
