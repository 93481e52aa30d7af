"""Access to the page: open on this machine, with a token from elsewhere."""

import hmac
from http.cookies import SimpleCookie
from ipaddress import ip_address
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_COOKIE = "collabtop"
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
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


class Guard:
    """Answers permitted requests only, and sets the headers that restrict what a browser may do with the page.

    Without a token, only requests whose host is this machine are answered. This protects against DNS rebinding: a web
    site whose name resolves to this machine gets nothing.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or refuse it."""
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in message["headers"]}
                extra = [(k.encode(), v.encode()) for k, v in _HEADERS.items() if k.encode() not in names]
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
            form = parse_qs((await request.body())[:4096].decode("latin-1")) if request.method == "POST" else {}
            return self._enter(form.get("token", [""])[0], "/")
        if "token" in request.query_params:  # from the printed address; the redirect removes it from the address bar
            rest = urlencode([pair for pair in request.query_params.multi_items() if pair[0] != "token"])
            return self._enter(request.query_params["token"], request.url.path + (f"?{rest}" if rest else ""))
        return None if self._has_token(request) or request.url.path == "/page/style.css" else _token_page()

    def _enter(self, token: str, location: str) -> Response:
        if not self._is_token(token):
            return _token_page("<p role='alert'>Wrong token.</p>")
        response = RedirectResponse("/" + location.lstrip("/"), 303)
        response.set_cookie(_COOKIE, token, httponly=True, samesite="strict")
        return response

    def _has_token(self, request: Request) -> bool:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._is_token(given):
            return True
        cookie = SimpleCookie(request.headers.get("cookie", "")).get(_COOKIE)
        return cookie is not None and self._is_token(cookie.value)

    def _is_token(self, token: str) -> bool:
        assert self._token is not None
        return hmac.compare_digest(token.encode(), self._token.encode())


def _token_page(alert: str = "") -> Response:
    return HTMLResponse(_TOKEN_PAGE.format(alert=alert), 401, headers={"www-authenticate": "Bearer"})


def _host(header: str) -> str:
    """The host in a request's Host header, without the port.

    >>> _host("127.0.0.1:8000"), _host("[::1]:8000"), _host("example.org")
    ('127.0.0.1', '::1', 'example.org')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]
