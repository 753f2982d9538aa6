"""A response that goes on: pieces are sent as they come, until nobody takes them any more.

The framework's own would wait for ever for somebody who has stopped reading.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

PATIENCE = 30.0
"""Seconds a listener may take to read one piece."""


class Streaming(Response):
    """Server-sent events."""

    media_type = "text/event-stream"

    def __init__(self, pieces: AsyncGenerator[bytes, None], patience: float = PATIENCE) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        # How long it will be is not known.
        del self.headers["content-length"]
        self._pieces = pieces
        self._patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until all is said, or they have gone, or stopped reading."""
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        tasks = [asyncio.ensure_future(self._tell(send)), asyncio.ensure_future(_gone(receive))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._pieces.aclose()

    async def _tell(self, send: Send) -> None:
        async for piece in self._pieces:
            async with asyncio.timeout(self._patience):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
