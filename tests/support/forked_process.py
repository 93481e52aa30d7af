"""Processes that start in milliseconds: copies of one that has imported the package and done nothing else."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

FORKS = multiprocessing.get_context("forkserver")
# Typer imports its second half when it first reads arguments (where it has no such module, nothing is lost). Not gRPC,
# which must not be forked once it has started.
FORKS.set_forkserver_preload(["collabtop.cli", "typer._adapters"])


class Forked:
    """The command line in a process of its own, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, arguments, *, cwd, out, err, environment):
        self._process = FORKS.Process(target=_run, args=(arguments, cwd, out, err, environment), daemon=True)
        self._process.start()
        self.pid = self._process.pid

    def send_signal(self, what):
        os.kill(self._process.pid, what)

    def kill(self):
        self._process.kill()

    def poll(self):
        return self._process.exitcode

    def wait(self, seconds=None):
        self._process.join(seconds)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, seconds)
        return self._process.exitcode


def _run(arguments, cwd, out, err, environment):
    os.chdir(cwd)
    os.environ.update(environment)
    for descriptor, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), descriptor)
    sys.argv = ["collabtop", *arguments]
    from collabtop.cli import main

    main()
