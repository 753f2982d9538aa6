"""Where the controller is: what was said, what the environment says, or the usual folders."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dovetail.model.errors import UserError

URL, TOKEN, FOLDER = "DOVETAIL_URL", "DOVETAIL_TOKEN", "DOVETAIL_DATA_DIR"
SYSTEM = Path("/var/lib/dovetail")
SOCKET = "socket"


@dataclass(frozen=True)
class Address:
    """A controller: its socket in a folder, or a URL with a token."""

    folder: Path | None = None
    url: str | None = None
    token: str | None = None

    def __str__(self) -> str:
        return self.url or str(self.folder)


def own_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where a controller started by this user keeps its data."""
    if named := environment.get(FOLDER):
        return Path(named)
    if os.geteuid() == 0:
        return SYSTEM
    home = environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "dovetail"


def in_use(folder: Path | None) -> bool:
    """Does a controller hold this data folder? Unknown, and far away, count as not."""
    if folder is None:
        return False
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def find(folder: Path | None = None, environment: Mapping[str, str] = os.environ) -> Address:
    """The controller to talk to; a folder that was named comes before everything else."""
    if folder is not None:
        return Address(folder)
    if url := environment.get(URL):
        return Address(url=url.rstrip("/"), token=environment.get(TOKEN))
    mine = own_folder(environment)
    for place in (mine,) if environment.get(FOLDER) else (mine, SYSTEM):
        if (place / SOCKET).exists():
            return Address(place)
    raise UserError("no controller runs here; start one with: dovetail up")
