"""Disks whose power can be cut: a file system on a loop device, or a simulated page cache."""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import struct
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.support.power_cuts import after_power_cut

_NEW_MOUNTS = 0x00020000  # CLONE_NEWNS of <sched.h>
_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
_WITHOUT_LOG_FLUSH = struct.pack("I", 2)
_SYNCED = ".synced"


class LoopDisk:
    """An ext4 file system in a file. Its shutdown call stops all writes at once, also those to its journal."""

    kind = "loop"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._image = folder.with_suffix(".img")
        with self._image.open("wb") as image:
            image.truncate(16 << 20)
        _run("mkfs.ext4", "-q", "-F", str(self._image))
        folder.mkdir()
        self._mount()

    def cut_power(self) -> None:
        """Let no write reach the disk from now on."""
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUTDOWN, _WITHOUT_LOG_FLUSH)
        finally:
            os.close(descriptor)

    def restore_power(self, rng: random.Random) -> None:
        """Mount it again, with what was on disk. No process may use it."""
        self.close()
        self._mount()

    def close(self) -> None:
        """Unmount it; the handles of a process that was just killed may take a moment to be closed."""
        for _ in range(100):
            if subprocess.run(["umount", self.folder], check=False, capture_output=True).returncode == 0:
                return
            time.sleep(0.05)
        _run("umount", str(self.folder))

    def _mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.folder))


class SimulatedDisk:
    """A folder in which every log has a file beside it with the size that was synced last.

    A power cut leaves the synced part, and any part of the pages after it.
    """

    kind = "simulated"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def cut_power(self) -> None:
        """Do nothing: what is written until the process is killed may also be lost."""

    def restore_power(self, rng: random.Random) -> None:
        """Tear the end of every file. No process may use it."""
        for log in self.folder.rglob("*.ctlog"):
            sizes = log.with_name(log.name + _SYNCED)
            synced = int(sizes.read_text() or 0) if sizes.exists() else 0
            data = log.read_bytes()
            log.write_bytes(after_power_cut(data, min(synced, len(data)), rng))

    def close(self) -> None:
        """Do nothing."""


Disk = LoopDisk | SimulatedDisk


def note_syncs() -> None:
    """In a process that uses simulated disks: note the size of every log when it is synced."""
    from collabtop.runlog import file as log_file

    sync_file, drop = log_file.sync_file, log_file.RunLog._drop

    def note(path: Path, size: int) -> None:
        scratch = path.with_name(f"{path.name}.new")
        scratch.write_text(str(size))
        scratch.replace(path.with_name(path.name + _SYNCED))

    def sync(file):
        size = os.fstat(file.fileno()).st_size
        sync_file(file)
        note(Path(f"/proc/self/fd/{file.fileno()}").readlink(), size)

    def drop_and_note(log, tail):
        note(log.path, 0)  # what follows is written to the same bytes again
        drop(log, tail)

    log_file.sync_file, log_file.RunLog._drop = sync, drop_and_note  # type: ignore[method-assign]


def kind_of_disks() -> type[Disk]:
    """Loop devices in a private mount namespace, where the machine allows them; otherwise simulated disks.

    Call it before any other process is started that is to use the disks.
    """
    with suppress(OSError, subprocess.CalledProcessError), tempfile.TemporaryDirectory() as scratch:
        if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS):
            raise OSError(ctypes.get_errno(), "unshare")
        _run("mount", "--make-rprivate", "/")
        disk = LoopDisk(Path(scratch) / "disk")
        try:
            disk.cut_power()
        finally:
            disk.close()
        return LoopDisk
    return SimulatedDisk


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
