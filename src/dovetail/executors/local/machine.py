"""This machine as a node: its cores, its memory, its GPUs, and who else is on them.

Only what this process may use is counted: the cores it may run on, the memory its container has.
On machines without GPUs any number of virtual ones can be made up. Knows no jobs.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection
from dataclasses import dataclass

import psutil

from dovetail.executors.local import cgroup_v1, cgroup_v2
from dovetail.executors.local.gpus import Gpu, gpus, users, utilisation
from dovetail.model.errors import UserError
from dovetail.model.node import VIRTUAL, Capabilities, Node

MIB = 2**20
MOST_GPUS = 64
START_LATENCY = 0.2
"""Seconds from a start to the job's first instruction, about."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What was found."""

    node: Node
    #: numbers of the cores, as the system counts them
    cores: tuple[int, ...]
    #: real devices in the order of the node's device mask; none where they are virtual
    gpus: tuple[Gpu, ...] = ()
    #: MiB kept for the system, which the node does not have
    reserved: int = 0

    @property
    def capabilities(self) -> Capabilities:
        """A suspended process keeps its GPU memory, unless there is no GPU."""
        return Capabilities(suspend_frees_gpu=not self.gpus, start_latency=START_LATENCY)

    def numbers(self, mask: int) -> list[int]:
        """The devices of a mask as the driver counts them, or plainly where they are virtual."""
        positions = [place for place in range(self.node.gpus) if mask >> place & 1]
        return [self.gpus[place].number for place in positions] if self.gpus else positions

    def used_by_others(self, ours: Collection[int], held: int = 0) -> int:
        """The mask of devices that computing processes other than ours are on.

        Devices `held` by our jobs are left out: in a container the driver's process numbers are
        not those we know.
        """
        mask = 0
        for place, there in enumerate(users(self.gpus) if self.gpus else ()):
            if not held >> place & 1 and there - set(ours):
                mask |= 1 << place
        return mask

    def memory_of_others(self, ours: int) -> int:
        """MiB that others use beyond what is kept for the system; `ours` are bytes."""
        return max(0, (_used() - ours) // MIB - self.reserved)

    def utilisation(self, mask: int) -> float | None:
        """Percent of time that the busiest of these devices computed lately."""
        chosen = [gpu for place, gpu in enumerate(self.gpus) if mask >> place & 1]
        found = [each for each in utilisation(chosen) if each is not None] if chosen else []
        return max(found, default=None)


def detect(virtual: int | None = None, reserved: float = 0.0) -> Machine:
    """Look around; `virtual` GPUs instead of real ones, a share of memory is kept for others."""
    if virtual is not None and not 0 <= virtual <= MOST_GPUS:
        raise UserError(f"{virtual} virtual GPUs asked for; 0 to {MOST_GPUS} are possible")
    real = [] if virtual is not None else gpus(os.environ.get("CUDA_VISIBLE_DEVICES"))
    cores = tuple(sorted(os.sched_getaffinity(0)))
    memory = _memory()
    kept = int(memory * reserved)
    node = Node(
        socket.gethostname(),
        len(real) if virtual is None else virtual,
        _processing(len(cores)),
        memory - kept,
        VIRTUAL if virtual is not None else _type(real),
        min((gpu.memory for gpu in real), default=0),
    )
    return Machine(node, cores, tuple(real), kept)


def _processing(cores: int) -> int:
    """Thousandths of cores: all there are, or what the container's quota lets us use."""
    quotas = [cgroup_v2.own_quota(), cgroup_v1.own_quota()]
    return min([cores * 1000, *(quota for quota in quotas if quota)])


def _memory() -> int:
    """MiB: all there is, or what the container has."""
    limits = [cgroup_v2.own_memory(), cgroup_v1.own_memory()]
    total = int(psutil.virtual_memory().total)
    return min([total, *(limit for limit in limits if limit)]) // MIB


def _used() -> int:
    """Bytes in use, of the machine or of the container where that has less."""
    whole = psutil.virtual_memory()
    groups = (
        (cgroup_v2.own_memory(), cgroup_v2.own_use),
        (cgroup_v1.own_memory(), cgroup_v1.own_use),
    )
    for limit, own_use in groups:
        if limit is not None and limit < whole.total and (used := own_use()) is not None:
            return used
    return int(whole.total - whole.available)


def _type(real: list[Gpu]) -> str:
    """One name for the node; a machine of mixed GPUs has all of their names."""
    return "+".join(dict.fromkeys(gpu.type for gpu in real)) or "cpu"
