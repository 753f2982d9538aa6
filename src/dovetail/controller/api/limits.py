"""No request is larger than it may be: counted as it comes, whatever its head says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES = 8 * 1024 * 1024
SLOWEST = 60.0
"""Seconds between two pieces of a body."""


class TooLarge(Exception):
    """The body is over the limit."""


class BodyLimit:
    """A layer around the application."""

    def __init__(self, app: ASGIApp, most: int = MOST_BYTES) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what fits; refuse the rest in one sentence."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        stated = dict(scope["headers"]).get(b"content-length", b"0")
        if stated.isdigit() and int(stated) > self._most:
            await self._refuse(send)
            return
        seen, whole, answered = 0, False, False

        async def counted() -> Message:
            nonlocal seen, whole
            # Once all is said, the next message is that the other side has gone.
            message = await asyncio.wait_for(receive(), None if whole else SLOWEST)
            whole = not message.get("more_body", False)
            seen += len(message.get("body", b""))
            if seen > self._most:
                raise TooLarge
            return message

        async def noted(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self._app(scope, counted, noted)
        except (TooLarge, TimeoutError):
            if not answered:
                await self._refuse(send)

    async def _refuse(self, send: Send) -> None:
        sentence = f"a request has at most {self._most // 2**20} MiB, sent without long pauses"
        body = json.dumps({"error": sentence}).encode()
        headers: list[Any] = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": body})
