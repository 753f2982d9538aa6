"""Serves the API on a UNIX socket and, for those with tokens, on a port, beside the controller.

All is one event loop in one thread: requests are answered between two turns of the controller.
Away from loopback a port is served with TLS alone.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from dovetail.controller.api.peers import PeerProtocol
from dovetail.controller.api.service import Service
from dovetail.model.errors import UserError

SOCKET = "socket"
BACKLOG = 1024
DESCRIPTORS = 8192
LAST_WORDS = 2
"""Seconds requests under way have when the controller ends."""


@dataclass(frozen=True)
class Listening:
    """Where to listen."""

    folder: Path
    #: may other users connect to the socket?
    shared: bool = False
    #: None: no port; 0: any free one
    port: int | None = None
    host: str = "127.0.0.1"
    certificate: Path | None = None
    key: Path | None = None

    def check(self) -> None:
        """Refuse to be open to the network without TLS."""
        if self.port is not None and not is_loopback(self.host) and not self.certificate:
            raise UserError(
                f"{self.host} is not loopback: give --tls-cert and --tls-key, or leave --host out"
            )
        for file in (self.certificate, self.key):
            if file is not None and not file.is_file():
                raise UserError(f"{file}: there is no such file")


class Server(uvicorn.Server):
    """A server that leaves signals to us."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing: the controller ends in an order of its own."""
        yield


async def serve(service: Service, app: FastAPI, where: Listening, ready: Any) -> None:
    """Run controller and servers until told to end; `ready` is called with the port, or None."""
    _allow_many_connections()
    sockets = _sockets(where)
    servers = [Server(_config(app, each, where)) for each in sockets]
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    service.stop = over.set
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, service.end)
    running = asyncio.create_task(service.controller.run())
    running.add_done_callback(lambda _: service.end())
    tasks = [
        asyncio.create_task(server.serve(sockets=[each]))
        for server, each in zip(servers, sockets, strict=True)
    ]
    while not all(server.started for server in servers):
        await asyncio.sleep(0.01)
    ready(_port(sockets))
    await over.wait()
    for server in servers:
        server.should_exit = True
    await asyncio.gather(*tasks)
    service.controller.end()
    _remove(where.folder / SOCKET)
    await running


def is_loopback(host: str) -> bool:
    """Can only this machine connect there?"""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def short_path(folder: Path, name: str = SOCKET) -> Iterator[str]:
    """A path to a socket that is never too long for the system, however deep its folder is."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def _sockets(where: Listening) -> list[socket.socket]:
    where.check()
    local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    _remove(where.folder / SOCKET)
    with short_path(where.folder) as path:
        # Only this user, from the first moment on.
        mask = os.umask(0o177)
        try:
            local.bind(path)
        finally:
            os.umask(mask)
    if where.shared:
        (where.folder / SOCKET).chmod(0o666)
    if where.port is None:
        return [local]
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    public = socket.socket(family, socket.SOCK_STREAM)
    public.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        public.bind((where.host, where.port))
    except OSError as error:
        raise UserError(
            f"{where.host}:{where.port} cannot be used ({error.strerror}); choose another --port"
        ) from None
    return [local, public]


def _config(app: FastAPI, each: socket.socket, where: Listening) -> uvicorn.Config:
    tls: dict[str, Any] = {}
    if each.family != socket.AF_UNIX and where.certificate is not None:
        tls = {"ssl_certfile": where.certificate, "ssl_keyfile": where.key}
    return uvicorn.Config(
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
        **tls,
    )


def _port(sockets: list[socket.socket]) -> int | None:
    return sockets[1].getsockname()[1] if len(sockets) > 1 else None


def _allow_many_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
