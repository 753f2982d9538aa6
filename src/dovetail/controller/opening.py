"""Opens a controller over a data folder: data base, engine, parts, and the service around them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dovetail.controller.api.people import Doorkeeper
from dovetail.controller.api.service import Limits, Service
from dovetail.controller.journal import Journal
from dovetail.controller.loop import Controller, Settings
from dovetail.controller.parts import Parts, composer
from dovetail.controller.store import Store
from dovetail.controller.tokens import Tokens
from dovetail.executors.local import Local
from dovetail.executors.local.machine import detect
from dovetail.executors.protocol import Executor
from dovetail.model.errors import UserError

DATABASE = "dovetail.db"
RESERVED = 1024
"""MiB of memory that are left to the system and to us."""


@dataclass(frozen=True)
class Opening:
    """What an admin may choose."""

    folder: Path
    parts: Parts
    #: virtual GPUs instead of real ones
    gpus: int | None = None
    #: another data base than the file in the folder
    database: str | None = None
    admins: frozenset[str] = frozenset()
    settings: Settings = field(default_factory=Settings)
    limits: Limits = field(default_factory=Limits)


@contextmanager
def opened(opening: Opening) -> Iterator[tuple[Service, Doorkeeper]]:
    """The service over a folder; its data base is let go of at the end."""
    folder = prepared(opening.folder)
    store = Store(opening.database or f"sqlite:///{folder / DATABASE}")
    try:
        executor = local(folder, opening.gpus)
        controller = Controller(
            composer(opening.parts, executor),
            Journal(store),
            executor,
            opening.settings,
            parts=opening.parts,
        )
        tokens = Tokens(store)
        service = Service(
            controller, tokens, opening.parts.policy, opening.limits, os.geteuid() == 0
        )
        yield service, Doorkeeper(tokens, controller.time.wall, opening.admins)
    finally:
        store.close()


def prepared(folder: Path) -> Path:
    """The data folder, made if need be: closed, but for root's, where others reach their own."""
    mode = 0o711 if os.geteuid() == 0 else 0o700
    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
        folder.chmod(mode)
    except OSError as error:
        raise UserError(f"{folder}: cannot be used as a data folder ({error.strerror})") from None
    return folder.resolve()


def local(folder: Path, gpus: int | None) -> Executor:
    """This machine as an engine."""
    return Local(folder, detect(gpus, RESERVED))
