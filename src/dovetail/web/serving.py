"""Serves the dashboard's files beside the API: plain HTML, CSS and modules, as they are.

Nothing is fetched from elsewhere and nothing is inline, so that the browser can be told to run
only what comes from here. The page itself is open to everybody; what it shows needs a token.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

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


def attach(app: FastAPI) -> None:
    """Put the dashboard at the application's address."""

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html", headers=HEADERS)

    app.mount("/static", Guarded(directory=STATIC), name="static")
