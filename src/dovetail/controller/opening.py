"""Opens a controller over a data folder: data base, engine, parts, and the service around them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from dovetail.controller.api.people import Doorkeeper
from dovetail.controller.api.service import Limits, Service
from dovetail.controller.journal import Journal
from dovetail.controller.loop import Controller, Settings
from dovetail.controller.parts import Parts, composer, read_parts
from dovetail.controller.shadowing import Pace, Shadow
from dovetail.controller.store import Store
from dovetail.controller.tokens import Tokens
from dovetail.executors.local import Local
from dovetail.executors.local.machine import detect
from dovetail.executors.protocol import Executor
from dovetail.executors.slurm import Options, Slurm
from dovetail.model.errors import UserError

DATABASE = "dovetail.db"
RESERVED = 0.1
"""The share of memory that is left to the system, to us, and to those who do not ask."""


@dataclass(frozen=True)
class Opening:
    """What an admin may choose."""

    folder: Path
    parts: Parts
    #: another data base than the file in the folder
    database: str | None = None
    admins: frozenset[str] = frozenset()
    settings: Settings = field(default_factory=Settings)
    limits: Limits = field(default_factory=Limits)
    #: a policy that decides beside the real one and never acts
    shadow: str | None = None
    #: who owns what stays as it is on record where the parts do not say
    keep_tenants: bool = True


Engine = Callable[[Path], Executor]
"""What runs the jobs of a data folder."""


@contextmanager
def opened(opening: Opening, engine: Engine) -> Iterator[tuple[Service, Doorkeeper]]:
    """The service over a folder; folder and data base are let go of at the end."""
    folder = prepared(opening.folder)
    with ExitStack() as stack:
        stack.enter_context(_owned(folder))
        store = Store(opening.database or f"sqlite:///{folder / DATABASE}")
        stack.callback(store.close)
        executor = engine(folder)
        parts = replace(opening.parts, tenancy=_tenancy(opening, store))
        controller = Controller(
            composer(parts, executor), Journal(store), executor, opening.settings, parts=parts
        )
        tokens = Tokens(store)
        service = Service(
            controller,
            tokens,
            parts.policy,
            opening.limits,
            os.geteuid() == 0,
        )
        if opening.shadow is not None:
            service.keep_in_shadow(_shadow(opening.shadow, parts, controller))
        yield service, Doorkeeper(tokens, controller.time.wall, opening.admins)


def _tenancy(opening: Opening, store: Store) -> str | None:
    """Who owns what outlives the controller: only who says otherwise changes it."""
    before = store.noted("parts")
    if opening.parts.tenancy is not None or not opening.keep_tenants or before is None:
        return opening.parts.tenancy
    return read_parts(before).tenancy


def _shadow(policy: str, parts: Parts, controller: Controller) -> Shadow:
    """The candidate: all that is not part of a policy stays as it is."""
    candidate = replace(parts, policy=policy, placement=None, allocator=None)
    return Shadow(controller, candidate, parts.policy, Pace())


def prepared(folder: Path) -> Path:
    """The data folder, made if need be: closed, but for root's, where others reach their own."""
    mode = 0o711 if os.geteuid() == 0 else 0o700
    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
        folder.chmod(mode)
    except OSError as error:
        raise UserError(f"{folder}: cannot be used as a data folder ({error.strerror})") from None
    return folder.resolve()


@contextmanager
def _owned(folder: Path) -> Iterator[None]:
    """Only one controller at a time, even where their data bases differ."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with ExitStack() as stack:
        stack.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{folder}: another controller is using it; stop that one first"
            ) from None
        yield


def slurm(options: Options) -> Engine:
    """A cluster that Slurm runs."""
    return lambda folder: Slurm(folder, options)


def local(gpus: int | None) -> Engine:
    """This machine as an engine, with so many virtual GPUs instead of real ones."""
    return lambda folder: Local(folder, detect(gpus, RESERVED))
