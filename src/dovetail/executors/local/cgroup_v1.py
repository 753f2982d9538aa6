"""Fences by control groups of version 1: one hierarchy for each controller, those we may write to.

The branch is grown at the top of a hierarchy where that is allowed, else below this process. Knows
keys of attempts, not jobs.
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
"""Microseconds; the kernel takes no smaller quota."""
UNLIMITED = 2**60
"""Bytes; what the kernel says where there is no limit is larger than this."""
ABILITIES = {
    "cpuset": Ability.CORES,
    "cpu": Ability.QUOTA,
    "memory": Ability.MEMORY,
    "freezer": Ability.FREEZE,
    "cpuacct": Ability.CPU_TIME,
}


class Legacy:
    """Control groups of version 1."""

    name = "cgroup v1"

    def __init__(self, branch: str) -> None:
        self._branches: dict[str, Path] = {}
        for controller in ABILITIES:
            for folder in _candidates(controller):
                self._branches[controller] = folder / branch
                if self._works(controller):
                    break
                del self._branches[controller]
        able = {ABILITIES[controller] for controller in self._branches}
        self.abilities = frozenset(able | ({Ability.MEMBERS} if able else set()))

    def _works(self, controller: str) -> bool:
        folder = self._branches[controller] / TRIAL
        try:
            self._grow(controller, TRIAL)
            return lets_in(folder / "cgroup.procs")
        except OSError:
            return False
        finally:
            cut(folder, tries=20)
            cut(folder.parent)

    def _grow(self, controller: str, key: str) -> Path:
        branch = self._branches[controller]
        for folder in (branch, branch / key):
            folder.mkdir(exist_ok=True)
            if controller == "cpuset":
                # A new group has neither cores nor memory nodes, and takes nobody without.
                for file in ("cpuset.cpus", "cpuset.mems"):
                    if not read(folder / file):
                        write(folder / file, read(folder.parent / file))
        return branch / key

    def make(self, key: str) -> list[str]:
        """Grow a group in every hierarchy."""
        return [str(self._grow(each, key) / "cgroup.procs") for each in self._branches]

    def pin(self, key: str, cores: Sequence[int]) -> None:
        """Keep to these cores."""
        write(self._branches["cpuset"] / key / "cpuset.cpus", listed(cores))

    def quota(self, key: str, cpu: int) -> None:
        """Keep to this much of all cores together."""
        amount = max(cpu * PERIOD // 1000, SHORTEST) if cpu else -1
        folder = self._branches["cpu"] / key
        write(folder / "cpu.cfs_period_us", PERIOD)
        write(folder / "cpu.cfs_quota_us", amount)

    def limit(self, key: str, memory: int) -> None:
        """Keep to this much memory, swap included where the kernel counts it."""
        folder = self._branches["memory"] / key
        value = memory * MIB if memory else -1
        files = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
        # Memory with swap may never be less than memory: which goes first depends on the old ones.
        for file in files * 2:
            with suppress(OSError):
                write(folder / file, value)
        if memory and int(read(folder / files[0]) or 0) != value:
            raise OSError(errno.EBUSY, "more memory is in use")

    def freeze(self, key: str) -> None:
        """Stop all processes where they are."""
        write(self._branches["freezer"] / key / "freezer.state", "FROZEN")

    def thaw(self, key: str) -> None:
        """Let them go on."""
        write(self._branches["freezer"] / key / "freezer.state", "THAWED")

    def frozen(self, key: str) -> bool:
        """Do all of them stand still? The kernel takes a moment."""
        return read(self._branches["freezer"] / key / "freezer.state") == "FROZEN"

    def members(self, key: str) -> list[int]:
        """The processes."""
        branch = next(iter(self._branches.values()))
        return [int(word) for word in read(branch / key / "cgroup.procs").split()]

    def kill(self, key: str) -> None:
        """End all of them."""
        # Frozen, they cannot start others while we go through the list.
        with suppress(OSError, KeyError):
            self.freeze(key)
        send(self.members(key), signal.SIGKILL)
        with suppress(OSError, KeyError):
            self.thaw(key)

    def cpu_seconds(self, key: str) -> float:
        """Processor time used so far."""
        return int(read(self._branches["cpuacct"] / key / "cpuacct.usage") or 0) / 1e9

    def memory(self, key: str) -> int:
        """Bytes used now, without files nobody reads."""
        folder = self._branches["memory"] / key
        used = int(read(folder / "memory.usage_in_bytes") or 0)
        return used - counted(folder / "memory.stat", "total_inactive_file")

    def exceeded(self, key: str) -> bool:
        """Has the kernel ended a process for want of memory?"""
        return counted(self._branches["memory"] / key / "memory.oom_control", "oom_kill") > 0

    def remove(self, key: str) -> bool:
        """Cut the groups, and the branch with the last of them."""
        gone = [cut(branch / key) for branch in self._branches.values()]
        for branch in self._branches.values():
            cut(branch)
        return all(gone)


def own_quota() -> int | None:
    """Thousandths of cores this process may use by quota; None: not limited."""
    found = []
    for folder in _folders("cpu"):
        quota, period = read(folder / "cpu.cfs_quota_us"), read(folder / "cpu.cfs_period_us")
        if quota and period and int(quota) > 0:
            found.append(int(quota) * 1000 // int(period))
    return min(found, default=None)


def own_memory() -> int | None:
    """Bytes this process may use; None: not limited."""
    limits = [int(read(f / "memory.limit_in_bytes") or UNLIMITED) for f in _folders("memory")]
    return min((limit for limit in limits if limit < UNLIMITED), default=None)


def own_use() -> int | None:
    """Bytes in use where this process is limited, what the kernel could drop left out."""

    def limit(folder: Path) -> int:
        return int(read(folder / "memory.limit_in_bytes") or UNLIMITED)

    tightest = min(_folders("memory"), key=limit, default=None)
    if tightest is None or limit(tightest) >= UNLIMITED:
        return None
    cache = ("total_active_file", "total_inactive_file")
    return in_use(tightest, "memory.usage_in_bytes", cache)


def _folders(controller: str) -> list[Path]:
    """This process's folder and those above it."""
    for mount, options in mounts("cgroup"):
        if controller in options:
            return own_folders(mount, controller)
    return []


def _candidates(controller: str) -> list[Path]:
    """The top of the hierarchy, then our own place in it."""
    folders = _folders(controller)
    return list(dict.fromkeys([*folders[-1:], *folders[:1]]))
