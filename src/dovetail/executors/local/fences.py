"""Keeps the processes of each attempt to what it was granted, by the best means the machine has.

Every ability is taken from the first mechanism that has it: control groups of version 2, of version
1, or none. `describe` says in words which it is, since what is not enforced must not look as if it
were. Knows keys of attempts, not jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from dovetail.executors.local.cgroup_v1 import Legacy
from dovetail.executors.local.cgroup_v2 import Unified
from dovetail.executors.local.mechanism import Ability, Limits, Mechanism
from dovetail.executors.local.processes import Identity
from dovetail.executors.local.unfenced import Unfenced
from dovetail.executors.protocol import Usage


class Entry(NamedTuple):
    """How a process comes inside before its first instruction."""

    #: files to write its number into
    doors: list[str]
    #: cores to set by affinity; empty: a control group does it
    cores: list[int]


class Fences:
    """All fences of one executor."""

    def __init__(self, mechanisms: Sequence[Mechanism] = ()) -> None:
        self._unfenced = Unfenced()
        self._by: dict[Ability, Mechanism] = {}
        for mechanism in (*mechanisms, self._unfenced):
            for ability in mechanism.abilities:
                self._by.setdefault(ability, mechanism)
        self._used = [each for each in mechanisms if each in self._by.values()]

    @property
    def quota(self) -> bool:
        """Is a part of a core enforced?"""
        return Ability.QUOTA in self._by

    def describe(self) -> str:
        """What is enforced, and how."""
        return f"CPU: {self._describe_cpu()}; memory: {self._describe_memory()}"

    def _describe_cpu(self) -> str:
        cores, quota = self._by[Ability.CORES], self._by.get(Ability.QUOTA)
        pinned = "affinity" if cores is self._unfenced else f"{cores.name} cpuset"
        if quota is None:
            return pinned
        return f"{pinned} and quota" if cores is quota else f"{pinned} and {quota.name} quota"

    def _describe_memory(self) -> str:
        memory = self._by[Ability.MEMORY]
        return "watched every second" if memory is self._unfenced else f"{memory.name} limit"

    def make(self, key: str, limits: Limits) -> Entry:
        """A fence for a new attempt."""
        doors = [door for mechanism in self._used for door in mechanism.make(key)]
        self.resize(key, limits)
        by_affinity = self._by[Ability.CORES] is self._unfenced
        return Entry(doors, list(limits.cores) if by_affinity else [])

    def know(self, key: str, shim: Identity) -> None:
        """Whose descendants the attempt's processes are."""
        self._unfenced.know(key, shim)

    def resize(self, key: str, limits: Limits) -> None:
        """Other limits for all its processes; memory first, since that alone may be refused."""
        self._by[Ability.MEMORY].limit(key, limits.memory)
        self._by[Ability.CORES].pin(key, limits.cores)
        if quota := self._by.get(Ability.QUOTA):
            quota.quota(key, limits.cpu)

    def freeze(self, key: str) -> None:
        """Let all its processes stand still."""
        self._by[Ability.FREEZE].freeze(key)

    def frozen(self, key: str) -> bool:
        """Do they?"""
        return self._by[Ability.FREEZE].frozen(key)

    def thaw(self, key: str) -> None:
        """Let them go on."""
        # A group that is gone holds nobody.
        with suppress(OSError):
            self._by[Ability.FREEZE].thaw(key)

    def members(self, key: str) -> list[int]:
        """Its processes; those that left their control group are found as descendants."""
        found = [*self._by[Ability.MEMBERS].members(key), *self._unfenced.members(key)]
        return sorted(set(found))

    def kill(self, key: str) -> None:
        """End all its processes; call again until there are no members."""
        for mechanism in (*self._used, self._unfenced):
            if Ability.MEMBERS in mechanism.abilities:
                mechanism.kill(key)

    def usage(self, key: str) -> Usage:
        """What it takes."""
        seconds = self._by[Ability.CPU_TIME].cpu_seconds(key)
        return Usage(seconds, self._by[Ability.MEMORY].memory(key))

    def exceeded(self, key: str) -> bool:
        """Did it want more memory than it was granted?"""
        return self._by[Ability.MEMORY].exceeded(key)

    def remove(self, key: str) -> bool:
        """Clear up after an attempt; False: try again later."""
        gone = [mechanism.remove(key) for mechanism in self._used]
        return self._unfenced.remove(key) and all(gone)


def find(branch: str) -> Fences:
    """The best fences this process can set; its control groups lie under that name."""
    return Fences([Unified(branch), Legacy(branch)])
