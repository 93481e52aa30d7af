"""The command line: one thin file per command.

What a command needs besides Typer and the public names is imported when it runs, so that help and errors are quick.
"""

from collabtop.cli.application import app as app
from collabtop.cli.application import main as main
