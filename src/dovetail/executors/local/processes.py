"""Processes by what cannot be mistaken: a number and the moment it was given out.

A number alone is soon somebody else's. Everything here is read from /proc and may be gone a moment
later; a process that is gone is no error. Knows neither jobs nor fences.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import psutil

REMAINS = (b"Z", b"X")
GONE = (ProcessLookupError, PermissionError, FileNotFoundError)


class Identity(NamedTuple):
    """One process of one boot of the machine."""

    pid: int
    #: clock ticks after the boot
    started: int
    #: which boot
    boot: str


@cache
def boot() -> str:
    """What tells this run of the machine from the one before."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def identify(pid: int) -> Identity | None:
    """The process that has this number now, or its remains; None: there is none."""
    found = _look(pid)
    return None if found is None else found[0]


def alive(process: Identity) -> bool:
    """Does it still run? The remains of a child of ours are cleared away."""
    try:
        found = _look(process.pid)
    except OSError:
        # Too many files are open, perhaps. Who cannot be looked at is not gone.
        return True
    if found is None or found[0] != process:
        return False
    if found[1]:
        with suppress(OSError):
            os.waitpid(process.pid, os.WNOHANG)
    return not found[1]


def runs(pid: int) -> bool:
    """Is there such a process, more than its remains?"""
    found = _look(pid)
    return found is not None and not found[1]


def _look(pid: int) -> tuple[Identity, bool] | None:
    """A process, and whether only its remains are there."""
    fields = _fields(pid)
    if fields is None:
        return None
    return Identity(pid, int(fields[19]), boot()), fields[0] in REMAINS


def _fields(pid: int) -> list[bytes] | None:
    """What /proc says of a process, from its state on."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def families() -> dict[int, list[int]]:
    """Every process's children, those that have ended left out."""
    found: dict[int, list[int]] = {}
    for pid in psutil.pids():
        with suppress(OSError):
            fields = _fields(pid)
            if fields is not None and fields[0] not in REMAINS:
                found.setdefault(int(fields[1]), []).append(pid)
    return found


def below(pid: int, children: Mapping[int, list[int]]) -> list[int]:
    """All descendants of a process."""
    found = list(children.get(pid, ()))
    for each in found:
        # Numbers given out anew while the list was made could lead round in a circle.
        found += [child for child in children.get(each, ()) if child not in found]
    return found


def of_session(session: int) -> list[int]:
    """The processes of a session, except the one that leads it."""
    found = []
    for pid in psutil.pids():
        with suppress(OSError):
            if pid != session and os.getsid(pid) == session and runs(pid):
                found.append(pid)
    return found


def threads(pid: int) -> list[int]:
    """The threads of a process."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Signal each of these processes that is still there."""
    for pid in pids:
        with suppress(*GONE):
            os.kill(pid, number)


def resident(pids: Iterable[int]) -> int:
    """Bytes in memory, pages that several processes share counted for each of them."""
    return sum(_bytes(pid, "memory_info", "rss") for pid in pids)


def proportional(pids: Iterable[int]) -> int:
    """Bytes in memory, shared pages counted once among them; slow for large processes."""
    return sum(_bytes(pid, "memory_full_info", "pss") for pid in pids)


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time of these processes so far, and of their children that ended."""
    total = 0.0
    for pid in pids:
        with suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def _bytes(pid: int, measure: str, field: str) -> int:
    try:
        return int(getattr(getattr(psutil.Process(pid), measure)(), field))
    except (psutil.Error, AttributeError):
        return 0
