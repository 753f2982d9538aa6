"""Orders by believed length. What is believed comes from the predictor, named in the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dovetail.core.ordering import Ordering
from dovetail.core.view import View
from dovetail.model.job import Job


@dataclass(frozen=True)
class ShortestFirst(Ordering):
    """Shortest believed run time first (SJF); not preemptive."""

    def key(self, job: Job, view: View) -> float:
        """Believed total work."""
        return job.expected


@dataclass(frozen=True)
class LongestFirst(Ordering):
    """Longest believed run time first; not preemptive."""

    def key(self, job: Job, view: View) -> float:
        """Believed total work, turned round."""
        return -job.expected


@dataclass(frozen=True)
class ShortestRemaining(Ordering):
    """Shortest remaining time first (SRTF), preemptive."""

    preempt: bool = True
    steady: ClassVar[bool] = True

    def key(self, job: Job, view: View) -> float:
        """Seconds to the end if the job held devices from now on."""
        return view.time_left(job)

    def slope(self, gpus: int) -> float:
        """Each second of running is one second less."""
        return -1.0


@dataclass(frozen=True)
class ShortestRemainingService(Ordering):
    """Shortest remaining service first (SRSF): remaining time times GPUs, preemptive."""

    preempt: bool = True
    steady: ClassVar[bool] = True

    def key(self, job: Job, view: View) -> float:
        """GPU-seconds to the end."""
        return view.time_left(job) * job.spec.request.gpus

    def slope(self, gpus: int) -> float:
        """Each second of running takes off as many GPU-seconds as the job has GPUs."""
        return -float(gpus)
