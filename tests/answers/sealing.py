"""Notices whatever leaves the process, or touches an engine or a data base, while it is sealed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from sqlalchemy import event

from dovetail.controller.store import Store
from dovetail.executors.fake import FakeExecutor

OUT = {
    *("os.chmod", "os.chown", "os.exec", "os.fork", "os.kill", "os.killpg", "os.mkdir"),
    *("os.posix_spawn", "os.remove", "os.rename", "os.system", "os.truncate", "subprocess.Popen"),
    *("signal.pthread_kill", "socket.bind", "socket.connect", "socket.sendto", "sqlite3.connect"),
}
CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Seal:
    """What was tried in a sealed thread."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self._thread: int | None = None
        # A hook stays for ever; it does nothing while nothing is sealed.
        sys.addaudithook(self._hear)

    def note(self, what: str) -> None:
        if self._thread == get_ident():
            self.tried.append(what)

    def _hear(self, name: str, arguments: tuple[Any, ...]) -> None:
        if self._thread is None:
            return
        if name in OUT or (name == "open" and arguments[2] and arguments[2] & CHANGES):
            self.note(f"{name} {arguments[0]}")

    @contextmanager
    def sealed(self) -> Iterator[None]:
        self._thread = get_ident()
        try:
            yield
        finally:
            self._thread = None

    def guard(self, store: Store) -> None:
        """Statements, reading ones too, are told."""

        @event.listens_for(store._engine, "before_cursor_execute")
        def told(_c: Any, _k: Any, statement: str, *_: Any) -> None:
            self.note(statement)


SEAL = Seal()


class Watched(FakeExecutor):
    """An engine that tells of everything it is asked, questions included."""

    def __getattribute__(self, name: str) -> object:
        if not name.startswith("_"):
            SEAL.note(f"engine.{name}")
        return super().__getattribute__(name)
