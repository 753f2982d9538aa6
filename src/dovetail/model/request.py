"""What a job can live with: alternatives of replica groups, modes, constraints.

Everything is an integer: CPU in thousandths of a core, memory in MiB, device shares in
thousandths. The plain case is `gang(n)`: n GPUs, all or nothing, split over nodes as the placement
likes. Requests are values: equal requests are interchangeable, and `gang` returns the same object
for the same arguments, so the core can group jobs by request.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

WHOLE = 1000
"""Thousandths of one device: a share of WHOLE means the device belongs to one job."""


@dataclass(frozen=True, slots=True)
class Replica:
    """The vector one replica needs on one node. `None` leaves the amount to the allocator."""

    #: devices this replica needs, all on one node
    gpus: int = 1
    #: thousandths of each device; below WHOLE the device is shared and `gpus` is 1
    share: int = WHOLE
    #: MiB needed on each device; 0 means it was not stated
    gpu_memory: int = 0
    #: thousandths of a core
    cpu: int | None = None
    #: MiB
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """`most` equal replicas; the job can also run with as few as `least`."""

    most: int
    each: Replica
    least: int

    @property
    def gpus(self) -> int:
        """Devices held at full width."""
        return self.most * self.each.gpus


@dataclass(frozen=True, slots=True)
class Mode:
    """A way of running: the memory and time of the plain way times these factors."""

    name: str
    memory_factor: float = 1.0
    time_factor: float = 1.0


PLAIN_MODE = Mode("plain")


@dataclass(frozen=True, slots=True)
class Alternative:
    """One acceptable shape: groups that start together, on one of the GPU types."""

    groups: tuple[Group, ...]
    #: acceptable GPU types in order of preference; empty means any
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """All that a job can live with, best alternative first."""

    alternatives: tuple[Alternative, ...]
    modes: tuple[Mode, ...] = (PLAIN_MODE,)
    #: labels every node must carry
    labels: tuple[str, ...] = ()
    #: data sets the job reads; placements may prefer nodes that hold them
    datasets: tuple[str, ...] = ()
    #: devices of the preferred alternative at full width: the size people speak of
    gpus: int = field(init=False, compare=False)
    #: like `gpus`, in thousandths, so that shares count as what they are
    milli_gpus: int = field(init=False, compare=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Read on every event, so computed once.
        groups = self.alternatives[0].groups
        milli = sum(group.gpus * group.each.share for group in groups)
        object.__setattr__(self, "gpus", sum(group.gpus for group in groups))
        object.__setattr__(self, "milli_gpus", milli)
        content = (self.alternatives, self.modes, self.labels, self.datasets)
        object.__setattr__(self, "_hash", hash(content))

    def __hash__(self) -> int:
        return self._hash

    @property
    def least(self) -> int:
        """Thousandths of devices that it can live with."""
        return min(
            sum(group.least * group.each.gpus * group.each.share for group in each.groups)
            for each in self.alternatives
        )

    def full(self, gpus: int) -> int:
        """Devices at full width of the alternative under which a job has so many."""
        for alternative in self.alternatives:
            most = sum(group.gpus for group in alternative.groups)
            least = sum(group.least * group.each.gpus for group in alternative.groups)
            if least <= gpus <= most:
                return most
        return gpus


@lru_cache(maxsize=65536)
def gang(
    gpus: int,
    cpu: int | None = None,
    memory: int | None = None,
    types: tuple[str, ...] = (),
    share: int = WHOLE,
    gpu_memory: int = 0,
) -> Request:
    """`gpus` GPUs as one gang. CPU and memory are for the whole job and split over its GPUs."""
    count = max(gpus, 1)
    each = Replica(
        gpus=min(gpus, 1),
        share=share,
        gpu_memory=gpu_memory,
        cpu=None if cpu is None else -(-cpu // count),
        memory=None if memory is None else -(-memory // count),
    )
    return Request((Alternative((Group(count, each, count),), types),))
