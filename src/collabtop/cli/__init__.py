"""The command line: one thin file per command."""

from collabtop.cli.application import app as app
from collabtop.cli.application import main as main
