"""The server of the page: its files, downloads, and streams of changes. It only reads runs."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from functools import partial
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from collabtop.errors import CollabtopError
from collabtop.watch.auth import Guard
from collabtop.watch.downloads import as_csv, as_json
from collabtop.watch.pull_history import candidate_view, comparison_view
from collabtop.watch.views import Sections, changes, merged, summary, view
from collabtop.watch.watched_runs import Runs, WatchedRun
from collabtop.watch.watched_studies import Studies

_SECONDS_BETWEEN_CHANGES = 0.2
_SECONDS_BETWEEN_LISTS = 1.0
_PAUSES = 4.0
"""The pause after a view, as a multiple of the time that it took."""
_SECONDS_OF_READING = 0.5
"""How long an open page waits for the next piece of a long log."""
_SECONDS_OF_BRIEF_VIEWS = 3.0
"""How long the candidates and the answer are left out, while a long log is read."""
_SECONDS_BETWEEN_HEARTBEATS = 10.0
MAX_VIEWERS = 32
"""The most pages that are open at a time: for each, the server keeps what it sent last."""
_MAX_DIGITS = 9
"""The most digits of a number in an address."""
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class PageServer:
    """The page of a set of runs, as an ASGI application."""

    def __init__(self, runs: Runs, token: str | None = None) -> None:
        self.runs, self.studies = runs, Studies(runs.folders)
        self.viewers = 0
        """Number of pages that are open now."""
        self.app: ASGIApp = Guard(
            Starlette(
                routes=[
                    Route("/", self._index),
                    Route("/runs/{name}", self._index),
                    Route("/studies/{name}", self._index),
                    Route("/page/{name}", self._file),
                    Route("/api/runs", self._list),
                    Route("/api/runs/{name}", self._state),
                    Route("/api/studies/{name}", self._study),
                    Route("/api/studies/{name}/events", self._study_events),
                    Route("/api/events", self._list_events),
                    Route("/api/runs/{name}/events", self._run_events),
                    Route("/api/runs/{name}/candidates/{arm}", self._candidate),
                    Route("/api/runs/{name}/comparison/{first}/{second}", self._comparison),
                    Route("/api/runs/{name}/table.csv", self._csv),
                    Route("/api/runs/{name}/result.json", self._json),
                ]
            ),
            token,
        )

    async def _index(self, request: Request) -> Response:
        return HTMLResponse((files("collabtop.watch") / "page" / "index.html").read_text("utf-8"))

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        file = next((file for file in (files("collabtop.watch") / "page").iterdir() if file.name == name), None)
        if file is None:
            return Response("no such file", 404)
        return Response(file.read_bytes(), media_type=_TYPES.get(name.rpartition(".")[2], "text/plain"))

    # -- runs

    async def _list(self, request: Request) -> Response:
        return _json_response(await asyncio.to_thread(self._summaries))

    async def _state(self, request: Request) -> Response:
        run = self.runs.named(request.path_params["name"])
        return _json_response(await asyncio.to_thread(_updated_view, run)) if run else _no_such_run()

    async def _candidate(self, request: Request) -> Response:
        page = _number(request.query_params.get("page", "0"))
        return await self._pulls(request, [request.path_params["arm"]], lambda pulls: candidate_view(pulls, page or 0))

    async def _comparison(self, request: Request) -> Response:
        return await self._pulls(request, [request.path_params[name] for name in ("first", "second")], comparison_view)

    async def _pulls(self, request: Request, arms: list[str], view: Callable[..., Sections]) -> Response:
        run = self.runs.named(request.path_params["name"])
        if run is None:
            return _no_such_run()
        await asyncio.to_thread(run.update, replay=False, seconds=_SECONDS_OF_READING)
        numbers = [number for arm in arms if (number := _number(arm)) is not None and number < run.n]
        if len(numbers) < len(arms):
            return JSONResponse({"error": "no such candidate"}, 404)
        return _json_response(await asyncio.to_thread(_view_of_pulls, run, numbers, view))

    async def _csv(self, request: Request) -> Response:
        return await self._download(request, as_csv, "text/csv; charset=utf-8", "csv")

    async def _json(self, request: Request) -> Response:
        return await self._download(request, as_json, "application/json", "json")

    async def _download(
        self, request: Request, content: Callable[[WatchedRun], str | bytes], media_type: str, suffix: str
    ) -> Response:
        run = self.runs.named(request.path_params["name"])
        if run is None:
            return _no_such_run()
        await asyncio.to_thread(_updated_view, run)
        name = quote(f"{run.name.removesuffix('.ctlog')}.{suffix}")
        headers = {"content-disposition": f"attachment; filename*=utf-8''{name}"}
        return Response(await asyncio.to_thread(content, run), media_type=media_type, headers=headers)

    def _summaries(self) -> list[Sections]:
        rows = []
        for run in self.runs.all():
            run.update(replay=False, seconds=_SECONDS_OF_READING)
            rows.append(_shown(run, summary))
        return rows

    async def _study(self, request: Request) -> Response:
        study = self.studies.named(request.path_params["name"])
        return _json_response(await asyncio.to_thread(study.view)) if study else _no_such_run()

    def _study_rows(self) -> list[Sections]:
        return [study.summary() for study in self.studies.all()]

    # -- streams

    async def _list_events(self, request: Request) -> Response:
        async def updates() -> AsyncIterator[Any]:
            before = None
            while True:
                rows, studies = await asyncio.to_thread(self._summaries), await asyncio.to_thread(self._study_rows)
                yield None if (rows, studies) == before else {"runs": rows, "studies": studies}
                before = rows, studies
                await asyncio.sleep(_SECONDS_BETWEEN_LISTS)

        return self._stream(updates())

    async def _run_events(self, request: Request) -> Response:
        run = self.runs.named(request.path_params["name"])
        if run is None:
            return _no_such_run()

        async def updates() -> AsyncIterator[Any]:
            before: Sections | None = None
            complete_at = time.monotonic()
            while True:
                start = time.monotonic()
                brief_until = complete_at + _SECONDS_OF_BRIEF_VIEWS
                after = await asyncio.to_thread(_updated_view, run, _SECONDS_OF_READING, brief_until)
                yield await asyncio.to_thread(changes, before, after)
                before = merged(before, after)
                if "answer" in after:
                    complete_at = time.monotonic()
                if run.status == "reading":
                    continue
                # A run with very many candidates is shown less often, so that the page leaves the machine to the run.
                spent = _PAUSES * (time.monotonic() - start)
                await asyncio.sleep(min(_SECONDS_BETWEEN_LISTS, max(_SECONDS_BETWEEN_CHANGES, spent)))

        return self._stream(updates())

    async def _study_events(self, request: Request) -> Response:
        study = self.studies.named(request.path_params["name"])
        if study is None:
            return _no_such_run()

        async def updates() -> AsyncIterator[Any]:
            before = None
            while True:
                after = await asyncio.to_thread(study.view)
                yield None if after == before else after
                before = after
                await asyncio.sleep(_SECONDS_BETWEEN_LISTS)

        return self._stream(updates())

    def _stream(self, updates: AsyncIterator[Any]) -> Response:
        if self.viewers >= MAX_VIEWERS:
            return Response(f"{MAX_VIEWERS} pages are open already: close one", 503, headers={"retry-after": "10"})

        async def lines() -> AsyncIterator[bytes]:
            self.viewers += 1
            last_sent = time.monotonic()
            try:
                yield b"retry: 1000\n\n"
                async for update in updates:
                    if update:
                        yield b"data: " + msgspec.json.encode(update) + b"\n\n"
                        last_sent = time.monotonic()
                    elif time.monotonic() - last_sent > _SECONDS_BETWEEN_HEARTBEATS:
                        yield b": heartbeat\n\n"
                        last_sent = time.monotonic()
            finally:
                self.viewers -= 1

        return StreamingResponse(lines(), media_type="text/event-stream")


def _updated_view(run: WatchedRun, seconds: float = math.inf, brief_until: float = 0.0) -> Sections:
    run.update(replay=True, seconds=seconds)
    brief = run.status == "reading" and time.monotonic() < brief_until
    return _shown(run, partial(view, brief=brief))


def _shown(run: WatchedRun, part: Callable[[WatchedRun], Sections]) -> Sections:
    try:
        return part(run)
    except Exception as error:  # whatever a file holds, the page shows the other runs
        run.fail(error)
        return part(run)


def _view_of_pulls(run: WatchedRun, arms: list[int], view: Callable[..., Sections]) -> Sections:
    histories = [run.history(arm) for arm in sorted(set(arms))]
    with ExitStack() as stack:
        for history in histories:  # in order of their numbers, so that two requests never wait for each other
            stack.enter_context(history.lock)
        try:
            is_complete = all(history.update(_SECONDS_OF_READING) for history in histories)
        except CollabtopError as error:
            return {"error": str(error)}
        by_arm = {history.arm: history for history in histories}
        return view(*(by_arm[arm] for arm in arms)) | {"complete": is_complete}


def _number(text: str) -> int | None:
    """A whole number in an address, or None."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else None


def _json_response(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


def _no_such_run() -> Response:
    return JSONResponse({"error": "no such run"}, 404)
