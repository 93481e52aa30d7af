"""The command line: thin, one file a command."""

from collabtop.cli.application import app as app
from collabtop.cli.application import main as main
