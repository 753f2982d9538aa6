"""What can be done to processes where no control group may be written: by asking each of them.

Cores are kept by affinity, memory is watched, standing still and ending go by signals. There is no
quota. A process that leaves its session and its parents is found through the shim, which inherits
it. Knows keys of attempts, not jobs.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress

import psutil

from dovetail.executors.local import processes
from dovetail.executors.local.mechanism import Ability
from dovetail.executors.local.processes import Identity

MIB = 2**20
FRESH = 0.3
"""Seconds for which a look at all processes is good enough to watch memory by."""
ROUNDS = 10
"""Times a list of processes is gone through again because it grew meanwhile."""


class Unfenced:
    """Affinity, signals and watching."""

    name = "no control groups"
    abilities = frozenset(Ability) - {Ability.QUOTA}

    def __init__(self) -> None:
        self._shims: dict[str, Identity] = {}
        self._limits: dict[str, int] = {}
        self._exceeded: set[str] = set()
        self._looked = float("-inf")
        self._families: dict[int, list[int]] = {}

    def know(self, key: str, shim: Identity) -> None:
        """Whose descendants the processes are."""
        self._shims[key] = shim

    def make(self, key: str) -> list[str]:
        """Nothing to enter."""
        return []

    def pin(self, key: str, cores: Sequence[int]) -> None:
        """Set the affinity of every thread."""
        done: set[int] = set()
        for _ in range(ROUNDS):
            new = {each for pid in self.members(key) for each in processes.threads(pid)} - done
            for thread in new:
                with suppress(*processes.GONE):
                    os.sched_setaffinity(thread, cores)
            done |= new
            if not new:
                break

    def quota(self, key: str, cpu: int) -> None:
        """Not possible."""
        raise NotImplementedError("a quota takes control groups")

    def limit(self, key: str, memory: int) -> None:
        """Remember it for whoever watches."""
        self._limits[key] = memory

    def freeze(self, key: str) -> None:
        """Stop all processes by signal."""
        self._signal(key, signal.SIGSTOP)

    def thaw(self, key: str) -> None:
        """Let them go on."""
        self._signal(key, signal.SIGCONT)

    def frozen(self, key: str) -> bool:
        """Have all of them stopped?"""
        return all(map(_stands, self.members(key)))

    def members(self, key: str) -> list[int]:
        """The descendants of the shim, or what is left of its session."""
        shim = self._shims.get(key)
        if shim is None:
            return []
        if processes.alive(shim):
            return processes.below(shim.pid, processes.families())
        # Without the shim only those that stayed in its session can be told from others. After a
        # reboot the number may be another session's.
        same_boot = shim.boot == processes.boot() and not processes.runs(shim.pid)
        return processes.of_session(shim.pid) if same_boot else []

    def kill(self, key: str) -> None:
        """End all of them."""
        self._signal(key, signal.SIGKILL)

    def cpu_seconds(self, key: str) -> float:
        """Processor time of the processes that are there."""
        return processes.cpu_seconds(self.members(key))

    def memory(self, key: str) -> int:
        """Bytes in memory; shared pages count for each process."""
        return processes.resident(self.members(key))

    def exceeded(self, key: str) -> bool:
        """Did it pass the limit when somebody looked?"""
        limit = self._limits.get(key, 0) * MIB
        if not limit or key in self._exceeded:
            return key in self._exceeded
        members = self._lately_members(key)
        # The exact measure is slow, and needed only where the rough one alarms.
        if processes.resident(members) > limit and processes.proportional(members) > limit:
            self._exceeded.add(key)
        return key in self._exceeded

    def remove(self, key: str) -> bool:
        """Forget the attempt."""
        self._shims.pop(key, None)
        self._limits.pop(key, None)
        self._exceeded.discard(key)
        return True

    def _lately_members(self, key: str) -> list[int]:
        """The processes as of a moment ago: one look at the machine serves all attempts."""
        now = time.monotonic()
        if now - self._looked > FRESH:
            self._looked, self._families = now, processes.families()
        shim = self._shims.get(key)
        return [] if shim is None else processes.below(shim.pid, self._families)

    def _signal(self, key: str, number: signal.Signals) -> None:
        done: set[int] = set()
        for _ in range(ROUNDS):
            new = set(self.members(key)) - done
            processes.send(new, number)
            done |= new
            if not new:
                break


def _stands(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return True
