"""Fences by control groups of version 2: one hierarchy, with the controllers it lets us have.

The branch is grown beside or above this process, at the nearest place that hands down the most
controllers: a group with processes in it cannot hand down any. Freezing and ending need none.
Knows keys of attempts, not jobs.
"""

from __future__ import annotations

import errno
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dovetail.executors.local.cgroup_tree import TRIAL, cut, in_use, lets_in, mounts, own_folders
from dovetail.executors.local.mechanism import Ability, counted, listed, read, write
from dovetail.executors.local.processes import send

MIB = 2**20
PERIOD = 100_000
"""Microseconds over which a quota holds."""
SHORTEST = 1_000
ABILITIES = {"cpuset": Ability.CORES, "cpu": Ability.QUOTA, "memory": Ability.MEMORY}


class Unified:
    """Control groups of version 2."""

    name = "cgroup v2"

    def __init__(self, branch: str) -> None:
        self.abilities: frozenset[Ability] = frozenset()
        for folder in _places():
            self._branch = folder / branch
            if self._works():
                break

    def _works(self) -> bool:
        folder = self._branch / TRIAL
        try:
            self._grow(TRIAL)
            if not lets_in(folder / "cgroup.procs"):
                return False
            self.abilities = self._found(folder)
        except OSError:
            return False
        finally:
            cut(folder, tries=20)
            cut(folder.parent)
        return True

    def _found(self, folder: Path) -> frozenset[Ability]:
        controllers = read(folder / "cgroup.controllers").split()
        able = {ability for name, ability in ABILITIES.items() if name in controllers}
        # Processor time is counted even without a controller.
        able |= {Ability.MEMBERS, Ability.CPU_TIME}
        return frozenset(
            able | ({Ability.FREEZE} if (folder / "cgroup.freeze").exists() else set())
        )

    def _grow(self, key: str) -> Path:
        self._branch.mkdir(exist_ok=True)
        for controller in read(self._branch / "cgroup.controllers").split():
            if controller in ABILITIES:
                with suppress(OSError):
                    write(self._branch / "cgroup.subtree_control", f"+{controller}")
        (self._branch / key).mkdir(exist_ok=True)
        return self._branch / key

    def make(self, key: str) -> list[str]:
        """Grow a group."""
        return [str(self._grow(key) / "cgroup.procs")]

    def pin(self, key: str, cores: Sequence[int]) -> None:
        """Keep to these cores."""
        write(self._branch / key / "cpuset.cpus", listed(cores))

    def quota(self, key: str, cpu: int) -> None:
        """Keep to this much of all cores together."""
        amount = max(cpu * PERIOD // 1000, SHORTEST) if cpu else "max"
        write(self._branch / key / "cpu.max", f"{amount} {PERIOD}")

    def limit(self, key: str, memory: int) -> None:
        """Keep to this much memory, without swap, and end all processes when it is passed."""
        folder = self._branch / key
        if memory and self.memory(key) > memory * MIB:
            # The kernel would make room by ending processes.
            raise OSError(errno.EBUSY, "more memory is in use")
        write(folder / "memory.max", memory * MIB if memory else "max")
        for file, value in (("memory.swap.max", 0), ("memory.oom.group", 1)):
            with suppress(OSError):
                write(folder / file, value)

    def freeze(self, key: str) -> None:
        """Stop all processes where they are."""
        write(self._branch / key / "cgroup.freeze", 1)

    def thaw(self, key: str) -> None:
        """Let them go on."""
        write(self._branch / key / "cgroup.freeze", 0)

    def frozen(self, key: str) -> bool:
        """Do all of them stand still?"""
        return counted(self._branch / key / "cgroup.events", "frozen") == 1

    def members(self, key: str) -> list[int]:
        """The processes."""
        return [int(word) for word in read(self._branch / key / "cgroup.procs").split()]

    def kill(self, key: str) -> None:
        """End all of them, and those they are about to start."""
        door = self._branch / key / "cgroup.kill"
        if door.exists():
            write(door, 1)
        else:
            # Before Linux 5.14. Called again until all are gone, it catches those they start.
            send(self.members(key), signal.SIGKILL)

    def cpu_seconds(self, key: str) -> float:
        """Processor time used so far."""
        return counted(self._branch / key / "cpu.stat", "usage_usec") / 1e6

    def memory(self, key: str) -> int:
        """Bytes used now, without files nobody reads."""
        folder = self._branch / key
        used = int(read(folder / "memory.current") or 0)
        return used - counted(folder / "memory.stat", "inactive_file")

    def exceeded(self, key: str) -> bool:
        """Has the kernel ended a process for want of memory?"""
        return counted(self._branch / key / "memory.events", "oom_kill") > 0

    def remove(self, key: str) -> bool:
        """Cut the group, and the branch with the last of them."""
        gone = cut(self._branch / key)
        cut(self._branch)
        return gone


def own_quota() -> int | None:
    """Thousandths of cores this process may use by quota; None: not limited."""
    found = []
    for folder in _folders():
        quota, _, period = read(folder / "cpu.max").partition(" ")
        if quota.isdecimal() and period.isdecimal():
            found.append(int(quota) * 1000 // int(period))
    return min(found, default=None)


def own_memory() -> int | None:
    """Bytes this process may use; None: not limited."""
    limits = [read(folder / "memory.max") for folder in _folders()]
    return min((int(limit) for limit in limits if limit.isdecimal()), default=None)


def own_use() -> int | None:
    """Bytes in use where this process is limited, what the kernel could drop left out."""
    limited = [folder for folder in _folders() if read(folder / "memory.max").isdecimal()]
    if not limited:
        return None
    tightest = min(limited, key=lambda folder: int(read(folder / "memory.max")))
    return in_use(tightest, "memory.current", ("active_file", "inactive_file"))


def _folders() -> list[Path]:
    """This process's folder and those above it."""
    for mount, _ in mounts("cgroup2"):
        return own_folders(mount, "")
    return []


def _places() -> list[Path]:
    """Where a branch may grow: most controllers first, then nearest."""

    def handed_down(folder: Path) -> int:
        return len(ABILITIES.keys() & set(read(folder / "cgroup.subtree_control").split()))

    return sorted(_folders(), key=handed_down, reverse=True)
