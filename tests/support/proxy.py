"""A TCP proxy that delays, cuts and resets connections, and counts their bytes."""

from __future__ import annotations

import asyncio
import math
import random
import socket
import struct

from collabtop.arms.event_loop import EventLoopThread


class Proxy:
    """A proxy between sites and a coordinator.

    `reset_after` is the range of seconds after which a connection is reset, until there were `most_resets` resets.
    """

    def __init__(self, target_port, *, delay=0.0, reset_after=None, most_resets=math.inf, seed=0):
        self.target, self.delay, self.reset_after, self.most_resets = target_port, delay, reset_after, most_resets
        self.rng = random.Random(seed)
        self.bytes = self.resets = self.connections = 0
        self.loop = EventLoopThread("proxy")
        self.port = self.loop.run(self._start())

    async def _start(self):
        self.connected = asyncio.Event()
        self.connected.set()
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    def cut(self):
        """Silently drop the link: nothing is forwarded from now on, in either direction."""
        self.loop.loop.call_soon_threadsafe(self.connected.clear)

    def heal(self):
        self.loop.loop.call_soon_threadsafe(self.connected.set)

    def close(self):
        self.loop.run(self._stop())
        self.loop.close()

    async def _stop(self):
        self.server.close()

    async def _serve(self, reader, writer):
        self.connections += 1
        try:
            reader_there, writer_there = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        tasks = [
            asyncio.ensure_future(self._forward(reader, writer_there)),
            asyncio.ensure_future(self._forward(reader_there, writer)),
        ]
        keep = self.reset_after is None or self.resets >= self.most_resets
        limit = None if keep else self.rng.uniform(*self.reset_after)
        try:
            _, running = await asyncio.wait(tasks, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if len(running) == 2:
                self.resets += 1
                for stream in (writer, writer_there):
                    _reset_when_closed(stream)
        finally:
            for task in tasks:
                task.cancel()
            for stream in (writer, writer_there):
                stream.close()

    async def _forward(self, reader, writer):
        """Forward bytes with a delay; a queue separates reading and writing, so that the delay limits no bandwidth."""
        queue = asyncio.Queue()
        writing = asyncio.ensure_future(self._write(queue, writer))
        try:
            while data := await reader.read(1 << 16):
                self.bytes += len(data)
                queue.put_nowait((asyncio.get_running_loop().time() + self.delay, data))
            queue.put_nowait((0.0, b""))
            await writing
        except OSError:
            pass
        finally:
            writing.cancel()

    async def _write(self, queue, writer):
        while True:
            when, data = await queue.get()
            if not data:
                return
            wait = when - asyncio.get_running_loop().time()
            if wait > 0:
                await asyncio.sleep(wait)
            await self.connected.wait()
            try:
                writer.write(data)
                await writer.drain()
            except OSError:
                return


def _reset_when_closed(writer):
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
