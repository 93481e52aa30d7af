"""A local HTTP server that behaves like a chat endpoint, and an async scorer that calls it.

    python -m tests.support.chat_endpoint PORT_FILE [CALLS_PER_SECOND]

It answers after a latency, refuses calls above its rate with 429 and Retry-After, fails or hangs now and then, and
charges each candidate differently. `GET /stats` returns what it has done so far.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import sys
import time
from collections import Counter, deque
from pathlib import Path

ERRORS, HANGS = 0.05, 0.003
LATENCY = 0.05, 0.25


class Endpoint:
    """The server: a sliding window of one second, and counts of replies by status."""

    def __init__(self, rate: int) -> None:
        self.rate, self.random = rate, random.Random(7)
        self.window: deque[float] = deque()
        self.replies: Counter[str] = Counter()
        self.first = self.last = 0.0
        self.charged = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            status, headers, body = await self.answer(head.split(" ", 2)[1])
            lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def answer(self, path: str) -> tuple[str, list[str], bytes]:
        """The status, headers and body for a path."""
        if path == "/stats":
            seconds = self.last - self.first
            return "200 OK", [], json.dumps({**self.replies, "seconds": seconds, "charged": self.charged}).encode()
        now = time.monotonic()
        self.first, self.last = self.first or now, now
        while self.window and self.window[0] <= now - 1:
            self.window.popleft()
        if len(self.window) >= self.rate:
            self.replies["429"] += 1
            wait = self.window[0] + 1 - now
            return "429 Too Many Requests", [f"Retry-After: {math.ceil(wait * 100) / 100}"], b""
        self.window.append(now)
        chance = self.random.random()
        if chance < HANGS:
            self.replies["hung"] += 1
            await asyncio.sleep(3600)
        await asyncio.sleep(self.random.uniform(*LATENCY))
        if chance < HANGS + ERRORS:
            self.replies["500"] += 1
            return "500 Internal Server Error", [], b""
        self.replies["200"] += 1
        price = len(path)  # in thousandths of a cent
        self.charged += price
        return "200 OK", [], json.dumps({"answer": f"reply to {path}", "price": price}).encode()


class StatusError(Exception):
    """An exception like that of httpx: it has the response."""

    def __init__(self, status: int, headers: dict[str, str]) -> None:
        super().__init__(f"status {status}")
        self.response = Response(status, headers)


class Response:
    """The part of a response that says when to call again."""

    def __init__(self, status: int, headers: dict[str, str]) -> None:
        self.status_code, self.headers = status, headers


async def get(port: int, path: str) -> dict[str, object]:
    """The JSON at a path of the endpoint; raises `StatusError` for a status other than 200."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        body = await reader.readexactly(int(headers["content-length"]))
    finally:
        writer.close()
    if not status.startswith("HTTP/1.1 200"):
        raise StatusError(int(status.split()[1]), headers)
    answer: dict[str, object] = json.loads(body)
    return answer


async def serve(port_file: Path, rate: int) -> None:
    """Serve until the process is ended; the port is written to a file."""
    server = await asyncio.start_server(Endpoint(rate).serve, "127.0.0.1", 0)
    partial = port_file.with_suffix(".partial")
    partial.write_text(str(server.sockets[0].getsockname()[1]))
    partial.rename(port_file)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20))
