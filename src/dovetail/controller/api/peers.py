"""Connections: who is at the other end of a UNIX socket, and no patience with those who say
nothing.

The server knows neither by itself. A connection that does not come to the point in time is closed,
or a thousand silent ones would keep everybody else out.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 15.0
"""Seconds a connection may take to say what it wants."""

_CREDENTIALS = struct.Struct("3i")


def peer_uid(connection: socket.socket) -> int | None:
    """The user at the other end of a UNIX socket; None: it is another kind of socket."""
    if connection.family != socket.AF_UNIX:
        return None
    said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(said)[1])


class PeerProtocol(H11Protocol):
    """HTTP that tells the application who is there."""

    _silent: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Ask the system before anything is said."""
        super().connection_made(transport)
        connection: Any = transport.get_extra_info("socket")
        uid = peer_uid(connection) if connection is not None else None
        # The state is copied into each request of this connection.
        self.app_state = {**self.app_state, "peer": uid}
        self._watch()

    def handle_events(self) -> None:
        """Something was said, perhaps a whole request."""
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        """The next request is waited for, or the rest of one that has its answer."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is waited for any more."""
        self._hush()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Saying a little more is not enough: the time runs from when we began to wait."""
        said = self.conn.their_state
        late = said is h11.IDLE or (said is h11.SEND_BODY and self.conn.our_state is h11.DONE)
        if not late:
            self._hush()
        elif self._silent is None:
            self._silent = self.loop.call_later(PATIENCE, self.transport.close)

    def _hush(self) -> None:
        if self._silent is not None:
            self._silent.cancel()
            self._silent = None
