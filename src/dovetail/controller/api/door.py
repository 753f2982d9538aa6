"""The door: nothing gets in, not even the body of a request, before we know who asks.

A layer around the application. It turns away what a web page in somebody's browser could send to a
port of this machine, asks the doorkeeper who is there, and takes no body that is too large or comes
too slowly.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dovetail.controller.api.listening import is_loopback
from dovetail.controller.api.people import Doorkeeper
from dovetail.controller.api.refusing import Refused

MOST_BYTES = 8 * 1024 * 1024
SLOWEST = 60.0
"""Seconds a whole body may take."""


class Door:
    """A layer around the application."""

    def __init__(
        self, app: ASGIApp, keeper: Doorkeeper, most: int = MOST_BYTES, slowest: float = SLOWEST
    ) -> None:
        self._app = app
        self._keeper = keeper
        self._most = most
        self._slowest = slowest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let somebody in with what they brought, or refuse in one sentence."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        try:
            _check_site(scope, headers)
            state = scope.setdefault("state", {})
            peer: int | None = state.get("peer")
            state["person"] = self._keeper.recognise(peer, headers.get("authorization"))
            body = await self._body(headers, receive)
        except Refused as refused:
            await refused.answer()(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, _replayed(body, receive), send)

    async def _body(self, headers: Headers, receive: Receive) -> bytes | None:
        """All of it; None: they have gone."""
        stated = headers.get("content-length", "0")
        if stated.isdecimal() and int(stated) > self._most:
            raise self._too_large()
        pieces, size = [], 0
        try:
            async with asyncio.timeout(self._slowest):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return None
                    pieces.append(message.get("body", b""))
                    size += len(pieces[-1])
                    if size > self._most:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return b"".join(pieces)
        except TimeoutError:
            raise Refused(408, "the request came too slowly") from None

    def _too_large(self) -> Refused:
        return Refused(413, f"a request has at most {self._most // 2**20} MiB")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body once; after that, only whether the other side is still there."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _check_site(scope: Scope, headers: Headers) -> None:
    """Refuse what comes from a web page of somewhere else.

    A browser says where a page is from. A page that had its own name point here gives itself away
    by that name, where only this machine can be meant.
    """
    host, server = headers.get("host", ""), scope.get("server")
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != host:
        raise Refused(403, "requests from web pages of other sites are refused")
    here = server is not None and server[1] is not None and is_loopback(str(server[0]))
    if here and not is_loopback(_name(host)):
        raise Refused(403, f"{_name(host)!r} is not this machine: ask for 127.0.0.1 or localhost")


def _name(host: str) -> str:
    """Without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
