"""Serves the dashboard's files in front of the API: plain HTML, CSS and modules, as they are.

Nothing is fetched from elsewhere and nothing is inline, so that the browser can be told to run
only what comes from here. The page itself is open to everybody; what it shows needs a token.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

STATIC = Path(str(files(__package__).joinpath("static")))

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    # Asked again each time, answered by "not modified".
    "Cache-Control": "no-cache",
}


class Guarded(StaticFiles):
    """Files with the headers that keep a page to itself."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """One file."""
        response = await super().get_response(path, scope)
        response.headers.update(HEADERS)
        return response


async def _page(_: Request) -> FileResponse:
    return FileResponse(STATIC / "index.html", headers=HEADERS)


class Dashboard:
    """The page and its files where they are asked for; all else goes through to the API."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        static = Mount("/static", Guarded(directory=STATIC))
        self._files = Starlette(routes=[Route("/", _page), static])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        path = scope.get("path", "")
        ours = path == "/" or path.startswith("/static/")
        await (self._files if ours else self._app)(scope, receive, send)
