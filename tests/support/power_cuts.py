"""Power cuts on a simulated page cache: which bytes of a file may be on disk at any moment."""

from __future__ import annotations

import os
import stat
import threading
import time
from typing import NamedTuple

import collabtop.runlog.file

PAGE = 512
"""Smaller than a real page, so that short logs have several."""


class Write(NamedTuple):
    at: float
    end: int


class Sync(NamedTuple):
    at: float
    """When it was complete."""
    size: int
    """The size of the file when it began."""


class PageCache:
    """Records what this process writes to its logs, and when it calls fsync."""

    def __init__(self, monkeypatch):
        self.writes: list[Write] = []
        self.syncs: list[Sync] = []
        self._lock = threading.Lock()
        write_all, fsync = collabtop.runlog.file.write_all, os.fsync

        def write(file, data):
            write_all(file, data)
            with self._lock:
                self.writes.append(Write(time.monotonic(), file.seek(0, os.SEEK_END)))

        def sync(descriptor):
            status = os.fstat(descriptor)
            fsync(descriptor)
            if stat.S_ISREG(status.st_mode):  # and not a folder
                with self._lock:
                    self.syncs.append(Sync(time.monotonic(), status.st_size))

        monkeypatch.setattr(collabtop.runlog.file, "write_all", write)
        monkeypatch.setattr(os, "fsync", sync)

    def longest_risk(self, now=None):
        """The longest time that a write was not on disk, in seconds."""
        now = time.monotonic() if now is None else now
        synced = [
            min((sync.at for sync in self.syncs if sync.size >= write.end and sync.at >= write.at), default=now)
            for write in self.writes
        ]
        return max((until - write.at for write, until in zip(self.writes, synced, strict=True)), default=0.0)


def after_power_cut(data, synced, rng):
    """The contents of a file after a power cut: the first `synced` bytes, and any part of what was written later.

    The file may be too short, and each page that was not synced as a whole may lack its later bytes.
    """
    size = rng.randint(synced, len(data))
    image = bytearray(data[:size])
    survival = rng.choice([0.0, 0.5, 0.9, 1.0])
    for page in range(synced // PAGE, -(-size // PAGE)):
        if rng.random() > survival:
            start, end = max(synced, page * PAGE), min(size, (page + 1) * PAGE)
            image[start:end] = bytes(max(0, end - start))
    return bytes(image)
