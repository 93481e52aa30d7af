"""A man in the middle with all keys, which repeats, delays and reorders frames."""

from __future__ import annotations

import asyncio
import random

import grpc
import grpc.aio

from collabtop.arms.event_loop import EventLoopThread
from collabtop.teams.sites.frames import (
    METHOD,
    SERVICE,
    Answer,
    Ask,
    Joiner,
    encode,
    pieces,
    read_from_coordinator,
    read_from_site,
)
from collabtop.teams.sites.tls import read_files


class Middlebox:
    """Poses as the coordinator to the site and as the site to the coordinator; reorders requests and answers."""

    def __init__(self, target_port, certs, site, seed):
        self.target, self.rng = target_port, random.Random(seed)
        self.coordinator_files = read_files(certs / "coordinator.pem")
        self.site_files = read_files(certs / f"{site}.pem")
        self.repeats = 0
        self.loop = EventLoopThread("middlebox")
        self.port = self.loop.run(self._start())

    def close(self):
        self.loop.run(self.server.stop(0.1))
        self.loop.close()

    async def _start(self):
        self.server = grpc.aio.server()
        handler = grpc.stream_stream_rpc_method_handler(self._serve)
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
        files = self.coordinator_files
        credentials = grpc.ssl_server_credentials([(files.key, files.certificate)], files.authority, True)
        port = self.server.add_secure_port("localhost:0", credentials)
        await self.server.start()
        return port

    async def _serve(self, _, context):
        files = self.site_files
        credentials = grpc.ssl_channel_credentials(files.authority, files.key, files.certificate)
        async with grpc.aio.secure_channel(f"localhost:{self.target}", credentials) as channel:
            call = channel.stream_stream(f"/{SERVICE}/{METHOD}")()
            up = asyncio.ensure_future(self._forward(context.read, call.write, read_from_site, Answer))
            down = asyncio.ensure_future(self._forward(call.read, context.write, read_from_coordinator, Ask))
            await asyncio.wait([up, down], return_when=asyncio.FIRST_COMPLETED)
            for task in (up, down):
                task.cancel()
            call.cancel()

    async def _forward(self, read, write, decode, reordered):
        joiner, sending, tasks = Joiner(1 << 24), asyncio.Lock(), set()

        async def send(frame, delay):
            await asyncio.sleep(delay)
            async with sending:
                for piece in pieces(encode(frame)):
                    await write(piece)

        earlier = []
        while (piece := await read()) is not grpc.aio.EOF:
            whole = joiner.take(piece)
            if whole is None:
                continue
            frame = decode(whole)
            if not isinstance(frame, reordered):
                await send(frame, 0)
                continue
            # The frame, sometimes repeated, sometimes with an earlier one, each with its own delay.
            copies = [frame, frame] if self.rng.random() < 0.5 else [frame]
            if earlier and self.rng.random() < 0.5:
                copies.append(self.rng.choice(earlier))
            self.repeats += len(copies) - 1
            earlier.append(frame)
            for copy in copies:
                task = asyncio.ensure_future(send(copy, self.rng.uniform(0, 0.02)))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
