"""The memory axis by calculation: what part of the dataset is cached decides how fast it is read.

With a cache that never evicts (MinIO), a cache of x of the dataset gives x hits in every pass, in
whatever order it is read. Reading and computing overlap, so the slower of the two sets the pace:

    T(cores, x) = max(T_cpu(cores), x D / B_memory(cores) + (1 - x) D / B_storage)

A loader that does not read ahead is slower than that where both take long, at most by the shorter
of the two. Knows no process and no file; sizes are GiB, bandwidths are bytes per second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dovetail.model.errors import UserError
from dovetail.model.profile import Surface

GIB = 2**30
FINE = 40
"""Steps of the cached share among which the columns are chosen."""
TOLERANCE = 0.01
"""How far a line between two columns may be off."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """What a job reads, and how fast it can."""

    #: GiB read in one pass
    size: float
    #: steps in one pass
    epoch: float
    #: bytes per second from storage
    storage: float
    #: bytes per second from memory, by one core and by all of them
    memory: float = 8e9
    memory_limit: float = 64e9

    def __post_init__(self) -> None:
        for what, value in (
            ("the dataset's size", self.size),
            ("the steps of one pass over it", self.epoch),
            ("the storage bandwidth", self.storage),
            ("the memory bandwidth", self.memory),
            ("the memory bandwidth of all cores", self.memory_limit),
        ):
            if not 0 < value < float("inf"):
                raise UserError(f"{what} must be a number above 0")

    def fetch(self, cores: float, cached: float) -> float:
        """Seconds a step's data takes to arrive when that share of the dataset is cached."""
        data = self.size * GIB / self.epoch
        memory = min(self.memory * cores, self.memory_limit)
        return cached * data / memory + (1 - cached) * data / self.storage

    def speed(self, cores: float, computed: float, cached: float) -> float:
        """Steps per second of a job that makes `computed` with all of its data in memory."""
        return min(computed, 1 / self.fetch(cores, cached))


def surface(
    points: Mapping[int, float], dataset: Dataset | None, working: float, gpus: int = 1
) -> Surface:
    """Measured speeds over cores as a surface over cores and memory, both per GPU.

    `working` are the GiB the job needs besides its data. Without a dataset there is one column.
    """
    cores = tuple(sorted(points))
    shares = (0.0,) if dataset is None else _shares(points, dataset)
    size = 0.0 if dataset is None else dataset.size
    return Surface(
        tuple(each / gpus for each in cores),
        tuple((working + share * size) / gpus for share in shares),
        tuple(_row(points[each], each, dataset, shares) for each in cores),
    )


def _row(
    computed: float, cores: int, dataset: Dataset | None, shares: Sequence[float]
) -> tuple[float, ...]:
    if dataset is None:
        return (computed,)
    return tuple(dataset.speed(cores, computed, share) for share in shares)


def _shares(points: Mapping[int, float], dataset: Dataset) -> tuple[float, ...]:
    """The cached shares worth a column: lines between them are off by no more than allowed."""
    fine = [step / FINE for step in range(FINE + 1)]
    rows = [_row(speed, cores, dataset, fine) for cores, speed in points.items()]
    kept = [0, FINE]
    while (worst := _worst(rows, kept)) is not None:
        kept = sorted([*kept, worst])
    return tuple(fine[index] for index in kept)


def _worst(rows: Sequence[Sequence[float]], kept: Sequence[int]) -> int | None:
    """Where the lines between the kept columns are furthest off, if that is too far."""
    off = {
        index: max(_error(row, left, index, right) for row in rows)
        for left, right in pairwise(kept)
        for index in range(left + 1, right)
    }
    worst = max(off, key=lambda index: off[index], default=None)
    return worst if worst is not None and off[worst] > TOLERANCE else None


def _error(row: Sequence[float], left: int, index: int, right: int) -> float:
    line = row[left] + (row[right] - row[left]) * (index - left) / (right - left)
    return abs(line / row[index] - 1)
