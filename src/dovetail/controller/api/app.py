"""The application: all verbs under one version, errors as one sentence each."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as RawHTTPException

from dovetail import __version__
from dovetail.controller.api import account, cluster, history, jobs
from dovetail.controller.api.limits import BodyLimit
from dovetail.controller.api.people import Doorkeeper
from dovetail.controller.api.service import Service
from dovetail.model.errors import UserError

VERSION = "v1"
SAID = {
    code: {"description": text, "content": {"application/json": {"example": {"error": "…"}}}}
    for code, text in {
        400: "The request was wrong.",
        401: "Nobody we know.",
        403: "Not allowed.",
        404: "Not there.",
        409: "Not possible now.",
        413: "Too large.",
        422: "A field was wrong.",
        429: "Too much.",
    }.items()
}


def make_app(service: Service, keeper: Doorkeeper) -> FastAPI:
    """All verbs on one service."""
    app = FastAPI(
        title="Dovetail", version=__version__, openapi_url=f"/{VERSION}/openapi.json", docs_url=None
    )
    app.state.service, app.state.keeper = service, keeper
    for module in (jobs, history, cluster, account):
        app.include_router(module.router, prefix=f"/{VERSION}", responses=SAID)  # type: ignore[arg-type]
    app.add_exception_handler(UserError, _wrong)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(RawHTTPException, _refused)
    app.add_middleware(BodyLimit)
    return app


def _answer(code: int, sentence: str, headers: Any = None) -> JSONResponse:
    return JSONResponse({"error": sentence}, code, headers)


def _wrong(_: Request, error: Exception) -> JSONResponse:
    missing = str(error).startswith("there is no ")
    return _answer(404 if missing else 400, str(error))


def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException | RawHTTPException)
    return _answer(error.status_code, str(error.detail), error.headers)


def _invalid(_: Request, error: Exception) -> JSONResponse:
    """The first field that is wrong, in one sentence."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(step) for step in first["loc"] if step not in ("body", "query", "path"))
    said = str(first["msg"]).removeprefix("Value error, ")
    sentence = f"{where}: {said}" if where else said
    return _answer(422, sentence.encode("utf-8", "replace").decode())
