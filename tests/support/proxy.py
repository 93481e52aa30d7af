"""A TCP proxy for tests: delays, cuts and resets links, and counts what crosses."""

from __future__ import annotations

import asyncio
import math
import random
import socket
import struct

from collabtop.arms.event_loop import EventLoopThread


class Proxy:
    """Stands between sites and a coordinator.

    `reset_after` gives the seconds a connection lives, at random; after `most_resets` they are left alone.
    """

    def __init__(self, target_port, *, delay=0.0, reset_after=None, most_resets=math.inf, seed=0):
        self.target, self.delay, self.reset_after, self.most_resets = target_port, delay, reset_after, most_resets
        self.rng = random.Random(seed)
        self.bytes = self.resets = self.connections = 0
        self.loop = EventLoopThread("proxy")
        self.port = self.loop.run(self._start())

    async def _start(self):
        self.whole = asyncio.Event()
        self.whole.set()
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    def cut(self):
        """Nothing crosses from now on, in either direction, and nobody is told."""
        self.loop.loop.call_soon_threadsafe(self.whole.clear)

    def heal(self):
        self.loop.loop.call_soon_threadsafe(self.whole.set)

    def close(self):
        self.loop.run(self._stop())
        self.loop.close()

    async def _stop(self):
        self.server.close()

    async def _serve(self, reader, writer):
        self.connections += 1
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        tasks = [asyncio.ensure_future(self._pass(reader, back)), asyncio.ensure_future(self._pass(there, writer))]
        spared = self.reset_after is None or self.resets >= self.most_resets
        limit = None if spared else self.rng.uniform(*self.reset_after)
        try:
            _, late = await asyncio.wait(tasks, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if len(late) == 2:
                self.resets += 1
                for one in (writer, back):
                    _reset_when_closed(one)
        finally:
            for task in tasks:
                task.cancel()
            for one in (writer, back):
                one.close()

    async def _pass(self, reader, writer):
        """Pass bytes on, each so much later; reading and writing apart, so that a delay is no bottleneck."""
        line = asyncio.Queue()
        writing = asyncio.ensure_future(self._write(line, writer))
        try:
            while data := await reader.read(1 << 16):
                self.bytes += len(data)
                line.put_nowait((asyncio.get_running_loop().time() + self.delay, data))
            line.put_nowait((0.0, b""))
            await writing
        except OSError:
            pass
        finally:
            writing.cancel()

    async def _write(self, line, writer):
        while True:
            when, data = await line.get()
            if not data:
                return
            wait = when - asyncio.get_running_loop().time()
            if wait > 0:
                await asyncio.sleep(wait)
            await self.whole.wait()
            try:
                writer.write(data)
                await writer.drain()
            except OSError:
                return


def _reset_when_closed(writer):
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
