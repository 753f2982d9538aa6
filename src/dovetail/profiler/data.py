"""The data a job reads: what the person said about it, and the rest found out on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from dovetail.model.errors import UserError
from dovetail.profiler.caching import GIB, Dataset
from dovetail.profiler.measurement import Measurement
from dovetail.profiler.storage import memory_bandwidth, size_of, storage_bandwidth


@dataclass(frozen=True, slots=True)
class Data:
    """What is known before measuring."""

    path: Path | None = None
    #: GiB read in one pass; `None`: the size of what lies at `path`
    size: float | None = None
    #: steps in one pass; `None`: as the job reports
    epoch: int | None = None
    #: MB/s; `None`: measured at `path`
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        given = {
            "--dataset-size": self.size,
            "--epoch-steps": self.epoch,
            "--storage-bandwidth": self.bandwidth,
        }
        for option, value in given.items():
            if value is not None and not (isfinite(value) and value > 0):
                raise UserError(f"{option} must be a number above 0")
        if self.path is not None and not self.path.exists():
            raise UserError(f"{self.path}: there is no such file or folder")
        if self.path is None and (self.size is None) != (self.bandwidth is None):
            raise UserError(
                "memory is calculated from --dataset-size and --storage-bandwidth: "
                "give both, or --dataset PATH to find them out"
            )

    @property
    def known(self) -> bool:
        """Is there a dataset to speak of?"""
        return self.path is not None or self.size is not None

    def check(self, point: Measurement) -> Measurement:
        """Complain at the first point, not after the last, that a length is missing."""
        if self.known and not (self.epoch or point.epoch):
            raise UserError(
                "the job does not report how many steps a pass over its data has: "
                "give --epoch-steps, or call dovetail_client.progress(…, epoch=…)"
            )
        return point

    def found(self, epoch: int, cores: int) -> Dataset | None:
        """All that is needed to calculate. Takes a few seconds where bandwidths are measured."""
        if not self.known:
            return None
        return Dataset(
            self._size(),
            self.epoch or epoch,
            self._storage(),
            memory_bandwidth(1),
            memory_bandwidth(cores),
        )

    def _size(self) -> float:
        if self.size is not None or self.path is None:
            return self.size or 0.0
        return size_of(self.path) / GIB

    def _storage(self) -> float:
        if self.bandwidth is not None or self.path is None:
            return (self.bandwidth or 0.0) * 1e6
        return storage_bandwidth(self.path)
