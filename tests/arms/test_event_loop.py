"""The event loop in its own thread ends cleanly, whatever runs on it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from collabtop.arms.event_loop import EventLoopThread


async def add(a: int, b: int) -> int:
    return a + b


def test_closing_the_loop_cancels_what_runs_on_it(left_behind):
    loop, started = EventLoopThread("test"), threading.Event()

    async def wait_forever() -> None:
        started.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(loop.run, wait_forever())
        assert started.wait(10)
        loop.close()
        assert isinstance(waiting.exception(10), CancelledError)
    assert left_behind() == []


def test_a_closed_loop_runs_nothing():
    loop = EventLoopThread("test")
    assert loop.run(add(1, 2)) == 3
    loop.close()
    with pytest.raises(CancelledError):
        loop.run(add(1, 2))
