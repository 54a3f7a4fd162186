"""Access to the server: with the token, from a page of this server, on this machine.

The printed address has a random token. It is exchanged for a cookie that no script can read and no
other site can make the browser send (``HttpOnly``, ``SameSite=Strict``). Frames in notebooks, whose
cookies browsers withhold, have the token in their path instead. Requests under another host name
are refused, so that no other site can impersonate this one (DNS rebinding). POST requests from
other pages are refused as well (cross-site request forgery).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.responses import HTMLResponse, PlainTextResponse, Response

from odefit.common.option_checks import natural_in

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 1 << 22
"""Largest number of bytes of a request: the values of 100,000 unknowns and the page's options."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'"
)
"""The content security policy: nothing comes from elsewhere, and no script or style is inline."""

NO_FRAME = "; frame-ancestors 'none'"
"""Headers for pages with the cookie. Frames of notebooks have the token in their address, and may
be in any page, such as one on disk or in an editor with its own scheme."""

REFUSAL = "Refused. Please open the address that 'odefit explore' has printed, with its token.\n"

ENTRANCE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=./">
<title>odefit explore</title><p><a href="./">Continue to the page.</a></p></html>
"""
"""The page that sets the cookie. It forwards by itself: a redirection by status would still count
as coming from the page of the link, without any cookie of ``SameSite=Strict``."""


class Access:
    """The guard before an ASGI application, with the secret `token` of the address."""

    def __init__(self, application: ASGIApp, port: int, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(32)
        self._application = application
        self._cookie = secrets.token_urlsafe(32)
        # All ports of a host share cookies: each server has its own name.
        self._cookie_name = f"odefit_explore_{port}"
        self.opened = False  # by anyone with the token
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            return  # there are no web sockets, and start and end need no action
        framed = scope["path"].startswith("/t/")
        guarded = _with_headers(send, framed)
        response = self._verdict(scope)
        if isinstance(response, Response):
            await response(scope, receive, guarded)
        else:
            await self._application(response, receive, guarded)

    def _verdict(self, scope: Scope) -> Scope | Response:
        """Return the request as the application sees it, or the answer to it."""
        headers = _single_headers(scope)
        if headers is None or headers.get("host") not in self._hosts:
            return _refused()
        path = scope["path"]
        if path.startswith("/t/"):
            token, _, rest = path.removeprefix("/t/").partition("/")
            if not _same(token, self.token):
                return _refused()
            scope = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
        elif not self._has_cookie(headers):
            asked = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
            if path == "/" and scope["method"] == "GET" and _same(asked[0], self.token):
                return self._entrance()
            return _refused()
        if scope["method"] not in ("GET", "HEAD"):
            origin = headers.get("origin", "")
            if origin != f"http://{headers['host']}":
                return _refused()
            if headers.get("content-type", "").partition(";")[0] != "application/json":
                return PlainTextResponse("expected application/json\n", 415)
            length = natural_in(headers.get("content-length", ""))
            if length is None or length > LARGEST_BODY:
                return PlainTextResponse("the request is too long\n", 413)
        return scope

    def _has_cookie(self, headers: Mapping[str, str]) -> bool:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie_name)
        except CookieError:
            return False
        return cookie is not None and _same(cookie.value, self._cookie)

    def _entrance(self) -> Response:
        self.opened = True
        response = HTMLResponse(ENTRANCE)
        response.set_cookie(
            self._cookie_name, self._cookie, path="/", httponly=True, samesite="strict"
        )
        return response


def _same(text: str, secret: str) -> bool:
    """Compare in a time that does not reveal the number of equal characters."""
    return secrets.compare_digest(text.encode(), secret.encode())


def _single_headers(scope: Scope) -> dict[str, str] | None:
    """Return the headers by name; None if an important one is given twice."""
    by_name: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in by_name and key in ("host", "origin", "content-length", "content-type"):
            return None
        text = value.decode("latin-1")
        by_name[key] = f"{by_name[key]}; {text}" if key == "cookie" and key in by_name else text
    return by_name


def _refused() -> Response:
    return PlainTextResponse(REFUSAL, 403)


def _with_headers(send: Send, framed: bool) -> Send:
    """Return `send` with the protective headers on every answer."""
    headers = {
        "content-security-policy": POLICY if framed else POLICY + NO_FRAME,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        "cross-origin-resource-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
    }
    if not framed:
        headers["x-frame-options"] = "DENY"
    extra = [(k.encode(), v.encode()) for k, v in headers.items()]

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            others: list[Any] = [h for h in message["headers"] if h[0].decode() not in headers]
            message = {**message, "headers": [*others, *extra]}
        await send(message)

    return guarded
