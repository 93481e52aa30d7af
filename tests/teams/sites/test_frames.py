"""Frames in pieces: a peer cannot use more memory than the limit on frames allows."""

from __future__ import annotations

import tracemalloc

import pytest

from collabtop.errors import ProtocolError
from collabtop.teams.sites.frames import Joiner, pieces


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_a_frame_in_small_pieces_takes_little_more_memory_than_its_bytes(size):
    limit = 50_000
    joiner, piece = Joiner(limit), b"\1" + bytes(size)
    joiner.take(piece)
    tracemalloc.start()
    try:
        for _ in range(limit // size - 1):
            joiner.take(piece)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    with pytest.raises(ProtocolError, match="a frame is larger than 50,000 bytes"):
        joiner.take(b"\1" + bytes(size))
    assert held < 1.25 * limit
    assert most < 2.5 * limit  # while the buffer grows, it may exist twice


def test_successive_frames_are_joined_separately():
    frames = [bytes(range(256)) * 2_048, b"small", bytes(300_000)]
    joiner = Joiner(1 << 20)
    joined = [whole for frame in frames for piece in pieces(frame) if (whole := joiner.take(piece)) is not None]
    assert joined == frames
