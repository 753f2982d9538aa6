"""Where the controller can be asked: a UNIX socket in its folder, and a port for those with tokens.

Away from loopback a port is served with TLS alone.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from dovetail.live.finding import SOCKET
from dovetail.model.errors import UserError


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

    @property
    def path(self) -> Path:
        """The path of the UNIX socket."""
        return self.folder / SOCKET

    def check(self) -> None:
        """Refuse to be open to the network without TLS."""
        if self.port is not None and not 0 <= self.port < 2**16:
            raise UserError(
                f"--port {self.port}: a port is a number below 65536; 0 is any free one"
            )
        if self.port is not None and not is_loopback(self.host) and not self.certificate:
            raise UserError(
                f"{self.host} is not loopback: give --tls-cert and --tls-key, or leave --host out"
            )
        for file in (self.certificate, self.key):
            if file is not None and not file.is_file():
                raise UserError(f"{file}: there is no such file")

    def sockets(self) -> list[socket.socket]:
        """The UNIX socket, and the port if there is to be one; other users' calls come later."""
        self.check()
        public = [] if self.port is None else [_public(self.host, self.port)]
        return [self._local(), *public]

    def _local(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.path.unlink(missing_ok=True)
        # By its folder's descriptor: the path itself may be too long for a socket.
        descriptor = os.open(self.folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        # Only this user, from the first moment on.
        mask = os.umask(0o177)
        try:
            made.bind(f"/proc/self/fd/{descriptor}/{SOCKET}")
        finally:
            os.umask(mask)
            os.close(descriptor)
        if self.shared:
            self.path.chmod(0o666)
        return made


def is_loopback(host: str) -> bool:
    """Can only this machine connect there?"""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _public(host: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError as error:
        made.close()
        raise UserError(
            f"{host}:{port} cannot be used ({error.strerror}); choose another --port"
        ) from None
    return made
