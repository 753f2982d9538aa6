"""Serves the API beside the controller, until it is told to end.

All is one event loop in one thread: requests are answered between two turns of the controller.
"""

from __future__ import annotations

import asyncio
import resource
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from dovetail.controller.api.listening import Listening
from dovetail.controller.api.peers import PeerProtocol
from dovetail.controller.api.service import Service
from dovetail.model.errors import UserError

BACKLOG = 1024
DESCRIPTORS = 8192
LAST_WORDS = 2
"""Seconds requests under way have when the controller ends."""


class Server(uvicorn.Server):
    """A server that leaves signals to us."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing: the controller ends in an order of its own."""
        yield


async def serve(
    service: Service, app: ASGIApp, where: Listening, ready: Callable[[int | None], None]
) -> None:
    """Run controller and servers until told to end; `ready` is called with the port, or None."""
    _allow_many_connections()
    servers = [Server(_config(app))]
    if where.port is not None:
        servers.append(Server(_config(app, where.certificate, where.key)))
    sockets = where.sockets()
    over = asyncio.Event()
    service.stop = over.set
    running = asyncio.create_task(service.controller.run())
    serving = [
        asyncio.create_task(server.serve(sockets=[each]))
        for server, each in zip(servers, sockets, strict=True)
    ]
    for task in (running, *serving):
        task.add_done_callback(lambda _: service.end())
    while not all(server.started for server in servers) and not service.ending:
        await asyncio.sleep(0.01)
    if not service.ending:
        ready(sockets[1].getsockname()[1] if len(sockets) > 1 else None)
    beside = [asyncio.ensure_future(each()) for each in service.beside]
    await over.wait()
    for each in beside:
        each.cancel()
    await asyncio.gather(*beside, return_exceptions=True)
    for server in servers:
        server.should_exit = True
    try:
        await asyncio.gather(*serving)
    finally:
        service.farewell()
        where.path.unlink(missing_ok=True)
        await running


def _config(
    app: ASGIApp, certificate: Path | None = None, key: Path | None = None
) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        http=PeerProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=LAST_WORDS,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    try:
        config.load()
    except (ssl.SSLError, OSError) as error:
        raise UserError(
            f"{certificate}: cannot be used as a certificate ({error.strerror})"
        ) from None
    return config


def _allow_many_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
