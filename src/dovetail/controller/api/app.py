"""The application: all verbs under one version, errors as one sentence each."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from dovetail import __version__
from dovetail.controller.api import (
    account,
    answers,
    cluster,
    explained,
    feed,
    foreseeing,
    history,
    jobs,
    meters,
    review,
    series,
    shadow,
    tenants,
)
from dovetail.controller.api.door import Door
from dovetail.controller.api.people import Doorkeeper
from dovetail.controller.api.refusing import Refused
from dovetail.controller.api.service import Service
from dovetail.model.errors import Missing, Unavailable, UserError

VERSION = "v1"
SAID = {
    code: {"description": text, "content": {"application/json": {"example": {"error": "…"}}}}
    for code, text in {
        400: "The request was wrong.",
        401: "Nobody we know.",
        403: "Not allowed.",
        404: "Not there.",
        408: "Too slow.",
        409: "Not possible now.",
        413: "Too large.",
        422: "A field was wrong.",
        429: "Too much.",
        503: "The controller is ending.",
    }.items()
}
CODES = {Missing: 404, Unavailable: 503}
"""Of sentences that are not about a wrong request; all others are 400."""


def make_app(service: Service, keeper: Doorkeeper) -> FastAPI:
    """All verbs on one service."""
    app = FastAPI(
        title="Dovetail",
        version=__version__,
        openapi_url=f"/{VERSION}/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.service = service
    series.attach(app, service, feed.attach(app, service, keeper))
    meters.attach(app, service)
    foreseeing.attach(app, service)
    app.include_router(meters.router, responses=SAID)  # type: ignore[arg-type]
    for module in (
        jobs,
        history,
        cluster,
        account,
        feed,
        series,
        explained,
        answers,
        foreseeing,
        shadow,
        review,
        tenants,
    ):
        app.include_router(module.router, prefix=f"/{VERSION}", responses=SAID)  # type: ignore[arg-type]
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(UserError, _wrong)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _unknown)
    app.add_exception_handler(Exception, _broken)
    app.add_middleware(Door, keeper=keeper)
    return app


def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return error.answer()


def _wrong(_: Request, error: Exception) -> JSONResponse:
    code = next((code for kind, code in CODES.items() if isinstance(error, kind)), 400)
    return Refused(code, str(error)).answer()


def _unknown(request: Request, error: Exception) -> JSONResponse:
    """What the framework itself refuses: unknown paths, methods, bodies that are no JSON."""
    assert isinstance(error, HTTPException)
    sentence = f"there is nothing at {request.url.path}"
    if error.status_code != 404:
        sentence = str(error.detail)
    answer = Refused(error.status_code, sentence).answer()
    answer.headers.update(error.headers or {})
    return answer


def _broken(_: Request, error: Exception) -> JSONResponse:
    """A defect of ours; the log has it."""
    return Refused(500, "something is wrong with the controller; its log says what").answer()


def _invalid(_: Request, error: Exception) -> JSONResponse:
    """The first field that is wrong, in one sentence."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    # Names of types that were tried are no part of where it is.
    steps = [
        str(step) for step in first["loc"][1:] if str(step).isidentifier() or type(step) is int
    ]
    said = str(first["msg"]).removeprefix("Value error, ")
    where = ".".join(steps)
    return Refused(422, f"{where}: {said}" if where else said).answer()
