"""Processes that start in milliseconds: they are forked from one that has already imported the package."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

FORKS = multiprocessing.get_context("forkserver")
# Typer imports `_adapters` lazily (a version without it does no harm). gRPC is not preloaded: forking it after it has
# started is not safe.
FORKS.set_forkserver_preload(["collabtop.cli", "typer._adapters"])


class Forked:
    """The command line in a separate process, with the methods of `subprocess.Popen` that tests use.

    `prepare` is called there before the command; it must be a function of a module.
    """

    def __init__(self, arguments, *, cwd, out, err, environment, prepare=None):
        self._process = FORKS.Process(target=_run, args=(arguments, cwd, out, err, environment, prepare), daemon=True)
        self._process.start()
        self.pid = self._process.pid

    def send_signal(self, number):
        os.kill(self._process.pid, number)

    def kill(self):
        self._process.kill()

    def poll(self):
        return self._process.exitcode

    def wait(self, seconds=None):
        self._process.join(seconds)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, seconds)
        return self._process.exitcode


def _run(arguments, cwd, out, err, environment, prepare):
    os.chdir(cwd)
    os.environ.update(environment)
    for descriptor, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), descriptor)
    sys.argv = ["collabtop", *arguments]
    from collabtop.cli import main

    if prepare is not None:
        prepare()

    main()
