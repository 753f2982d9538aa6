"""What it costs to profile a model that nobody has profiled before, for simulation and reports.

Profiling happens once a model. Its points are measured one after the other on the GPUs of the
job that is profiled; the memory axis is calculated and costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.model.errors import UserError


@dataclass(frozen=True, slots=True)
class ProfilingCost:
    """Synergy's figures: about 8 of 24 core counts, a minute each."""

    points: int = 8
    seconds_per_point: float = 60.0
    #: of each point: the job is started anew with other cores
    start: float = 0.0

    def __post_init__(self) -> None:
        if not (self.points >= 0 and self.seconds_per_point >= 0 and self.start >= 0):
            raise UserError("profiling cannot take less than no time")

    @property
    def seconds(self) -> float:
        """How long the first job of a model is profiled before it counts as known."""
        return self.points * (self.seconds_per_point + self.start)


FREE = ProfilingCost(0, 0.0)
"""Profiles are known beforehand."""


def profiling_seconds(
    points: int = 8, seconds_per_point: float = 60.0, start: float = 0.0
) -> float:
    """Seconds it takes to profile one model."""
    return ProfilingCost(points, seconds_per_point, start).seconds
