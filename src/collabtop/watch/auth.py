"""Access to the page: open on this machine, with a token from elsewhere."""

import asyncio
import hashlib
import hmac
import math
import secrets
import time
from collections import Counter
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_FORM = 1 << 12
"""The most bytes of a form with a token."""
SECONDS_OF_FORM = 10.0
"""How long a form may take to arrive."""
MAX_GUESSES, MAX_GUESSES_BY_ALL = 10, 1_000
"""The most wrong tokens per minute, from one address and from all addresses."""
_SECONDS_OF_GUESSES = 60.0
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors {ancestors}",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_TOKEN_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>collabtop: token required</title><link rel="stylesheet" href="/page/style.css"></head>
<body><main class="token-form"><h1>Token required</h1>
<p>The program that serves this page has printed the token.</p>{alert}
<form method="post" action="/enter"><label>Token <input name="token" type="password" autofocus required
autocomplete="off"></label> <button>Open</button></form></main></body></html>"""


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Guesses:
    """Counts wrong tokens, minute by minute, so that a token cannot be found by trying.

    >>> guesses = Guesses()
    >>> for _ in range(MAX_GUESSES):
    ...     guesses.add("203.0.113.7")
    >>> guesses.seconds_left("203.0.113.7") > 0, guesses.seconds_left("198.51.100.1")
    (True, 0.0)
    """

    def __init__(self) -> None:
        self._began = 0.0
        self._by_client: Counter[str] = Counter()  # of at most as many clients as there may be guesses

    def seconds_left(self, host: str) -> float:
        """Seconds for which no further token from this host is looked at; 0 if one is."""
        left = self._began + _SECONDS_OF_GUESSES - time.monotonic()
        if left <= 0:
            self._by_client.clear()
        spent = self._by_client[_client(host)] >= MAX_GUESSES or self._by_client.total() >= MAX_GUESSES_BY_ALL
        return max(left, 0.0) if spent else 0.0

    def add(self, host: str) -> None:
        """Count a wrong token."""
        if not self._by_client:
            self._began = time.monotonic()
        self._by_client[_client(host)] += 1


def _client(host: str) -> str:
    """The part of an address that a client cannot choose: in IPv6, its network.

    >>> _client("2001:db8:1:2:3:4:5:6"), _client("192.0.2.1")
    ('2001:db8:1:2', '192.0.2.1')
    """
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if address.version == 4:
        return str(address)
    return ":".join(part.lstrip("0") or "0" for part in address.exploded.split(":")[:4])


class Guard:
    """Answers permitted requests only, and sets the headers that restrict what a browser may do with the page.

    Without a token, only requests whose host is this machine are answered. This protects against DNS rebinding: a web
    site whose name resolves to this machine gets nothing.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, token
        # A notebook on this machine may show a page of this machine (`Run.view`); one with a token is never framed.
        ancestors = "'none'" if token is not None else "'self' http://localhost:* http://127.0.0.1:*"
        self._headers = [(name.encode(), text.format(ancestors=ancestors).encode()) for name, text in _HEADERS.items()]
        self._guesses = Guesses()
        # The cookie holds a random number, not the token: it cannot be guessed, so it needs no limit. Cookies do not
        # distinguish ports, so each page has a name of its own.
        self._session = secrets.token_hex(32)
        self._cookie = "collabtop-" + hashlib.sha256(self._session.encode()).hexdigest()[:16]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or refuse it."""
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in message["headers"]}
                extra = [header for header in self._headers if header[0] not in names]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        request = Request(scope, receive)
        refusal = await self._refuse(request)
        await (refusal or self._app)(scope, receive, send_with_headers)

    async def _refuse(self, request: Request) -> Response | None:
        """The response to a request that is not permitted, or None if it is."""
        if request.method not in ("GET", "HEAD") and request.url.path != "/enter":
            return Response("this page is read-only", 405)
        if self._token is None:
            is_local = is_loopback(_host(request.headers.get("host", "")))
            return None if is_local else Response("this page is only available on this machine", 421)
        if request.url.path == "/enter":
            form = await _read_form(request) if request.method == "POST" else b""
            if form is None:
                return Response("the form is too large or too slow", 413, headers={"connection": "close"})
            return self._enter(request, parse_qs(form.decode("latin-1")).get("token", [""])[0], "/")
        if "token" in request.query_params:  # from the printed address; the redirect removes it from the address bar
            rest = urlencode([pair for pair in request.query_params.multi_items() if pair[0] != "token"])
            path = request.url.path + (f"?{rest}" if rest else "")
            return self._enter(request, request.query_params["token"], path)
        if self._has_session(request) or request.url.path == "/page/style.css":
            return None
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        return self._refuse_token(request, token) if kind.lower() == "bearer" else _token_page()

    def _enter(self, request: Request, token: str, location: str) -> Response:
        if (refusal := self._refuse_token(request, token)) is not None:
            return refusal
        response = RedirectResponse("/" + location.lstrip("/"), 303)
        response.set_cookie(self._cookie, self._session, httponly=True, samesite="strict")
        return response

    def _refuse_token(self, request: Request, token: str) -> Response | None:
        """The response to a wrong token, or to any token after too many wrong ones; None if it is right."""
        host = request.client.host if request.client else ""
        if (seconds := self._guesses.seconds_left(host)) > 0:
            wait = {"retry-after": str(math.ceil(seconds))}
            return _token_page("<p role='alert'>Too many wrong tokens: try again in a minute.</p>", 429, wait)
        if self._is_token(token):
            return None
        self._guesses.add(host)
        return _token_page("<p role='alert'>Wrong token.</p>")

    def _has_session(self, request: Request) -> bool:
        # Not with http.cookies, which stops at the first cookie of another program that it does not like.
        pairs = (part.strip().partition("=") for part in request.headers.get("cookie", "").split(";"))
        sessions = [value for name, _, value in pairs if name == self._cookie]
        return any(hmac.compare_digest(value.encode(), self._session.encode()) for value in sessions)

    def _is_token(self, token: str) -> bool:
        assert self._token is not None
        return hmac.compare_digest(token.encode(), self._token.encode())


async def _read_form(request: Request) -> bytes | None:
    """The body of a request, or None if it is too large or does not arrive in time; no more is ever kept of it."""
    body = b""
    try:
        async with asyncio.timeout(SECONDS_OF_FORM):
            async for part in request.stream():
                body += part
                if len(body) > LARGEST_FORM:
                    return None
    except TimeoutError:
        return None
    return body


def _token_page(alert: str = "", status: int = 401, headers: Mapping[str, str] | None = None) -> Response:
    return HTMLResponse(
        _TOKEN_PAGE.format(alert=alert), status, headers={"www-authenticate": "Bearer", **(headers or {})}
    )


def _host(header: str) -> str:
    """The host in a request's Host header, without the port.

    >>> _host("127.0.0.1:8000"), _host("[::1]:8000"), _host("example.org")
    ('127.0.0.1', '::1', 'example.org')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]
