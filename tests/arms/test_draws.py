"""Agents and pulls draw from streams that depend on nothing but the seed and their numbers."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabtop.arms.draws import Draws, pull_rng


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


def stream(seed, agent, number, attempt):
    """The stream of a pull, from a generator made for it alone."""
    key = np.random.SeedSequence(seed, spawn_key=(2,)).generate_state(2, np.uint64)
    counter = np.array([0, number, attempt, agent], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def sample(rng):
    """Draws that leave part of a 64-bit word and of a block of the generator unused."""
    return rng.integers(9, size=3, dtype=np.uint32).tolist(), rng.random(), rng.normal()


PULLS = st.tuples(st.integers(0, 2**128), st.integers(0, 2**32 - 1), st.integers(0, 2**63), st.integers(0, 9))


@given(st.lists(PULLS, min_size=2, max_size=8))
def test_every_pull_draws_from_its_own_stream_whatever_was_drawn_before(pulls):
    for pull in pulls:
        assert sample(pull_rng(*pull)) == sample(stream(*pull))


@pytest.mark.parametrize(
    "part",
    [
        lambda rng: rng,
        lambda rng: rng.random,
        lambda rng: np.random.Generator(rng.bit_generator),
        lambda rng: rng.bit_generator.seed_seq,
    ],
    ids=["generator", "method", "bit generator", "seed sequence"],
)
def test_a_function_that_keeps_its_generator_has_it_for_itself(part):
    def use(kept):
        if isinstance(kept, np.random.Generator):
            return sample(kept)
        return kept() if callable(kept) else kept.spawn(1)[0].generate_state(2).tolist()

    kept = [part(pull_rng(7, 0, number)) for number in range(3)]
    undisturbed = []
    for number in range(3):
        undisturbed.append(use(part(pull_rng(7, 0, number))))
    assert [use(one) for one in kept] == undisturbed


def test_generators_that_a_pull_spawns_depend_on_the_pull_alone():
    first = [child.random() for child in pull_rng(7, 0, 1).spawn(2)]
    other = pull_rng(7, 0, 2).spawn(1)[0].random()
    assert [child.random() for child in pull_rng(7, 0, 1).spawn(2)] == first
    assert other not in first


def test_pulls_of_coroutines_that_take_turns_in_a_thread_do_not_share_a_generator():
    async def pull(number):
        rng = pull_rng(7, 0, number)
        draws = []
        for _ in range(3):
            draws.append(rng.random())
            await asyncio.sleep(0)
        return draws

    async def together():
        return await asyncio.gather(*(pull(number) for number in range(4)))

    assert asyncio.run(together()) == [stream(7, 0, number, 0).random(3).tolist() for number in range(4)]
