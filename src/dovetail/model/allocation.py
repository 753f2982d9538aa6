"""What a job holds: devices, CPU and memory on named nodes. Immutable and small.

Nodes are positions in the cluster they were placed on; devices are a bitmask, so identity and
topology survive. An allocation does not know which job holds it.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from dovetail.model.request import WHOLE


class Part(NamedTuple):
    """The piece of an allocation that lies on one node."""

    node: int
    #: bitmask of the devices held
    devices: int
    #: thousandths of a core
    cpu: int = 0
    #: MiB of host memory
    memory: int = 0
    #: thousandths of each device in the mask; below WHOLE the devices are shared
    share: int = WHOLE
    #: MiB of GPU memory on each device; only counted on shared devices
    gpu_memory: int = 0


class Allocation(NamedTuple):
    """Everything one job holds, and the mode it runs in."""

    parts: tuple[Part, ...]
    #: number of devices in all parts
    gpus: int
    #: index into the request's modes
    mode: int = 0
    #: thousandths of devices held: what utilisation counts
    milli_gpus: int = 0

    @property
    def cpu(self) -> int:
        """Thousandths of cores over all parts."""
        return sum(part.cpu for part in self.parts)

    @property
    def memory(self) -> int:
        """MiB of host memory over all parts."""
        return sum(part.memory for part in self.parts)


NOTHING = Allocation((), 0)


def allocation_of(parts: tuple[Part, ...], mode: int = 0) -> Allocation:
    """The allocation made of these parts."""
    counts = [part.devices.bit_count() for part in parts]
    milli = sum(count * part.share for count, part in zip(counts, parts, strict=True))
    return Allocation(parts, sum(counts), mode, milli)


class Difference(Enum):
    """How a new allocation differs from the old one; each kind has its own price."""

    NONE = "none"
    #: CPU, memory or share differ: done in place
    IN_PLACE = "in place"
    #: number of devices or mode differ
    RESIZE = "resize"
    #: same shape on other devices
    MOVE = "move"


def classify(old: Allocation, new: Allocation) -> Difference:
    """Name the difference between two allocations of one job."""
    if old == new:
        return Difference.NONE
    if old.gpus != new.gpus or old.mode != new.mode:
        return Difference.RESIZE
    if {(p.node, p.devices) for p in old.parts} != {(p.node, p.devices) for p in new.parts}:
        return Difference.MOVE
    return Difference.IN_PLACE
