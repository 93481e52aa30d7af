"""The command line: thin, one file a command."""

from collabtop.cli.app import app as app
from collabtop.cli.app import main as main
