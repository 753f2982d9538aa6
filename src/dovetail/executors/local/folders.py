"""The folder of an attempt, and the files that shim, job and executor meet in.

    <data>/attempts/<job>-<number>/    of whoever runs the controller
        launch.json  claim  claim-2 ...  begun  state.json  log  log.1 ...
        job/                           of the job's owner, who alone may write here
            progress  checkpoint
    <data>/jobs/<job>/                 of the job's owner: the same for all its attempts

Where jobs belong to others than the controller, only `job/` is theirs: what a root process signals
and replaces must not be up to them. Paths are made of numbers alone.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from dovetail.executors.local.processes import Identity
from dovetail.executors.local.shim import YES
from dovetail.executors.protocol import Attempt

#: others may pass through, to their own folder, but not look around
PASSABLE, PRIVATE = 0o711, 0o700


@dataclass(frozen=True, slots=True)
class Folder:
    """The paths of one attempt."""

    path: Path

    @property
    def state(self) -> Path:
        """What the shim wrote."""
        return self.path / "state.json"

    @property
    def job(self) -> Path:
        """The owner's part."""
        return self.path / "job"

    @property
    def progress(self) -> Path:
        """Where the job says how far it is."""
        return self.job / "progress"

    @property
    def checkpoint(self) -> Path:
        """Its existence asks the job to save itself."""
        return self.job / "checkpoint"

    @property
    def kept(self) -> Path:
        """What the job keeps from one attempt to the next: its checkpoints."""
        return self.path.parents[1] / "jobs" / self.path.name.partition("-")[0]

    def logs(self) -> list[Path]:
        """What the job wrote, oldest file first."""
        older = sorted(self.path.glob("log.*"), key=lambda path: -int(path.suffix[1:]))
        return [path for path in (*older, self.path / "log") if path.is_file()]

    def make(self, owner: tuple[int, int] | None) -> None:
        """Make it, or the rest of it where that was cut short."""
        theirs = owner is not None and os.geteuid() == 0
        mode = PASSABLE if theirs else PRIVATE
        _passable(self.path.parent, mode)
        self.path.mkdir(mode, exist_ok=True)
        self.path.chmod(mode)
        _passable(self.kept.parent, mode)
        for folder in (self.job, self.kept):
            folder.mkdir(PRIVATE, exist_ok=True)
            if owner is not None and theirs:
                os.chown(folder, *owner)

    def make_log(self, owner: tuple[int, int] | None) -> None:
        """A log that its owner may write, in a folder where they may make no files."""
        os.close(os.open(self.path / "log", os.O_WRONLY | os.O_CREAT, 0o600))
        if owner is not None and os.geteuid() == 0:
            os.chown(self.path / "log", *owner)

    def write(self, launch: Mapping[str, Any]) -> None:
        """Leave word for the shim."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with open(os.open(self.path / "launch.new", flags, 0o600), "w") as text:
            json.dump(launch, text)
        os.replace(self.path / "launch.new", self.path / "launch.json")

    def began(self) -> Identity | None:
        """The shim that began; None: none did, and none that was sent until now ever will."""
        for claim in self._claims():
            with suppress(FileExistsError):
                os.close(os.open(claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                return None
            if shim := _claimant(claim):
                return shim
        return None

    def unbegun(self) -> bool:
        """Was the command certainly not started? Its process writes down that it will, before."""
        try:
            return (self.path / "begun").read_bytes() != YES
        except FileNotFoundError:
            # Shims of older releases say it by their state.
            return self.path.is_dir() and not self.state.exists()
        except OSError:
            return False

    def next_claim(self) -> str:
        """What the next shim has to take before it may begin."""
        return next(claim.name for claim in self._claims() if not claim.exists())

    def _claims(self) -> Iterator[Path]:
        """One for each time a shim is sent: one that comes late finds its own taken from it."""
        yield self.path / "claim"
        for number in count(2):
            yield self.path / f"claim-{number}"

    def ask_for_checkpoint(self) -> None:
        """Touch the file, whatever the owner has put in its place."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with suppress(OSError):
            os.close(os.open(self.checkpoint, flags, 0o644))


@dataclass(frozen=True, slots=True)
class State:
    """What the shim wrote down last."""

    phase: str
    #: the command's process group, once it runs
    group: Identity | None = None
    code: int | None = None
    signal: int | None = None
    reason: str = ""


def _claimant(claim: Path) -> Identity | None:
    """Who took it; None: a controller that gave up waiting."""
    try:
        said = json.loads(claim.read_text())
        return Identity(said["pid"], said["started"], said["boot"])
    except (ValueError, KeyError):
        return None


def folder_of(data: Path, attempt: Attempt) -> Folder:
    """Where an attempt keeps its files."""
    job, number = int(attempt.job), int(attempt.number)
    return Folder(data / "attempts" / f"{job}-{number}")


def remove(data: Path, attempts: Sequence[Attempt]) -> None:
    """Throw away what attempts left; what cannot be removed is no reason to remember them."""
    folders = [folder_of(data, attempt) for attempt in attempts]
    # All attempts of a job are forgotten together, and what it kept with them.
    for path in {each for folder in folders for each in (folder.path, folder.kept)}:
        shutil.rmtree(path, ignore_errors=True)


def read_state(path: Path) -> State | None:
    """The state in a file; None: the shim has written none."""
    try:
        said = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    group = None
    if "group" in said:
        group = Identity(said["group"], said["group_started"], said["boot"])
    how = {name: said[name] for name in ("code", "signal", "reason") if name in said}
    return State(said["phase"], group, **how)


def _passable(folder: Path, mode: int) -> None:
    folder.mkdir(mode, parents=True, exist_ok=True)
    if mode == PASSABLE and folder.stat().st_mode & 0o111 != 0o111:
        folder.chmod(PASSABLE)
