"""Where control groups are on this machine, and how a branch of ours is grown and cut.

Only folders made here are ever written to or removed. Knows neither limits nor jobs.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from dovetail.executors.local.mechanism import counted, read, write

TRIAL = "trial"


def mounts(kind: str) -> Iterator[tuple[Path, list[str]]]:
    """Mounted hierarchies of a kind (`cgroup` or `cgroup2`) with their options."""
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            fields = line.split()
            if fields[2] == kind:
                yield Path(fields[1]), fields[3].split(",")


def own_path(controller: str) -> str:
    """Where this process is in the hierarchy of a controller; an empty name: in version 2."""
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controller in controllers.split(","):
                return path
    return "/"


def own_folders(mount: Path, controller: str) -> list[Path]:
    """This process's folder in a hierarchy and those above, nearest first."""
    folder = mount / own_path(controller).lstrip("/")
    if ".." in folder.parts or not folder.is_dir():
        # In a container the path may be told as seen from outside.
        return [mount]
    return [folder, *(above for above in folder.parents if above.is_relative_to(mount))]


def in_use(folder: Path, total: str, droppable: Sequence[str]) -> int | None:
    """Bytes of a group without what its statistics say could be dropped; None: it does not say."""
    current = read(folder / total)
    if not current.isdecimal():
        return None
    return max(0, int(current) - sum(counted(folder / "memory.stat", name) for name in droppable))


def lets_in(door: Path) -> bool:
    """Can a process be put there? Tried with one, since no permission bit tells."""
    try:
        process = subprocess.Popen(["sleep", "10"], stdin=subprocess.DEVNULL)
    except OSError:
        return False
    try:
        write(door, process.pid)
    except OSError:
        return False
    finally:
        process.kill()
        process.wait()
    return True


def cut(folder: Path, tries: int = 1) -> bool:
    """Remove a folder of ours; False: there is something in it."""
    for left in reversed(range(tries)):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            # The last process is gone for us a moment before it is for the kernel.
            time.sleep(0.01 if left else 0)
        else:
            return True
    return False
