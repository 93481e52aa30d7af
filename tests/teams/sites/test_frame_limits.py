"""The size of a frame and the counts in a request are limited before anything is computed from them."""

from __future__ import annotations

import numpy as np
import pytest

import collabtop as ct
from collabtop.errors import ProtocolError
from collabtop.protocol.messages import Deal, Prune, Request
from collabtop.teams.sites import tls, validation
from collabtop.teams.sites.frames import BYTES_PER_ARM, PIECE, SMALL, Joiner, largest_frame, pieces


def test_a_piece_or_frame_beyond_the_limit_is_refused():
    options = dict(tls.server_options(keepalive=10))
    assert PIECE < options["grpc.max_receive_message_length"] < PIECE + 100
    assert largest_frame(1_000) == SMALL + BYTES_PER_ARM * 1_000
    for limit in (SMALL, largest_frame(1_000)):
        frame = bytes(limit)
        assert [Joiner(limit).take(piece) for piece in pieces(frame)] == [frame]
        with pytest.raises(ProtocolError, match=f"a frame is larger than {limit:,} bytes"):
            Joiner(limit).take(next(pieces(bytes(limit + 1))))


@pytest.mark.parametrize(
    ("name", "question", "error"),
    [
        ("_MOST_COEFFICIENTS", lambda count: Deal(np.ones(count, np.int64)), "a hash with no coefficients or too many"),
        (
            "_MOST_STAGES",
            lambda count: Prune(seed=1, sizes=np.arange(count, 0, -1), pulls=np.arange(count) + 1),
            "no stages, too many, or of different lengths",
        ),
    ],
)
def test_requests_beyond_the_limits_are_declined(name, question, error):
    count = getattr(validation, name) + 1
    state = validation.PublicState(0, ct.Problem(n=1_000_000, m=1, agents=1, horizon=10**12))
    with pytest.raises(ProtocolError, match=error):
        state.check_request(Request(0, 1, (question(count),)))
