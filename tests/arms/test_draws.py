"""An agent's generator is that of a seed sequence, made for many agents at once."""

from __future__ import annotations

import numpy as np
import pytest

from collabtop.arms.draws import Draws


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1, 2**32, 2**64 + 9, 2**127 + 1, 2**128 + 5, 2**200 + 11])
@pytest.mark.parametrize("agent", [0, 1, 127, 128, 999, 100_000])
def test_agents_draw_from_the_stream_of_their_spawn_key(seed, agent):
    sequence = np.random.SeedSequence(seed, spawn_key=(1, agent))
    expected = np.random.Generator(np.random.PCG64(sequence))
    bulk = Draws(seed, agent).bulk
    assert bulk.random(3).tolist() == expected.random(3).tolist()
    assert bulk.spawn(2)[1].random() == expected.spawn(2)[1].random()


def test_a_halt_is_seen_by_the_thread_that_asks_later():
    draws = Draws(1, 0)
    draws.halted.set()
    assert draws.halted.is_set()
    assert not Draws(1, 1).halted.is_set()
