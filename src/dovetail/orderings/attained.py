"""Least attained service: needs no knowledge of lengths at all (Tiresias, Gu et al., NSDI'19).

Age is GPU-time: devices times seconds held. Continuous: ranks are read anew every `round` seconds.
With `thresholds` (GPU-seconds, `3250/7200`) it is discretised 2D-LAS: a job drops to the next
queue the moment its attained service passes a threshold, queues are served in turn, and inside a
queue jobs go by first start, running ones before waiting ones. `promote` is the paper's
PROMOTEKNOB: a job that has waited that many times as long as it has run goes back to the first
queue with fresh counters.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from dovetail.core.ordering import Ordering
from dovetail.core.view import View
from dovetail.model.errors import UserError
from dovetail.model.job import Job

NEVER = float("inf")
SLACK = 1e-6
"""GPU-seconds by which a threshold counts as reached, so that rounding cannot delay a drop."""


def queue_of(service: float, thresholds: tuple[float, ...]) -> int:
    """The multi-level queue for an attained service."""
    return bisect_right(thresholds, service + SLACK)


def next_drop(service: float, gpus: int, now: float, thresholds: tuple[float, ...]) -> float | None:
    """When a running job reaches its next threshold: (limit - service) / GPUs from now."""
    queue = bisect_right(thresholds, service + SLACK)
    if queue == len(thresholds) or not gpus:
        return None
    return now + (thresholds[queue] - service) / gpus


def check_thresholds(thresholds: tuple[float, ...], name: str) -> None:
    """Refuse thresholds that are no GPU-seconds or do not rise."""
    rise = all(a < b for a, b in pairwise((0.0, *thresholds, float("inf"))))
    if not rise:
        raise UserError(f"{name}:thresholds must rise and be above 0, as in 3250/7200")


@dataclass(frozen=True)
class LeastAttained(Ordering):
    """LAS, continuous or discretised; preemptive."""

    preempt: bool = True
    #: seconds between re-rankings of the continuous form
    round: float = 300.0
    #: GPU-seconds at which a job drops to the next queue; empty: continuous
    thresholds: tuple[float, ...] = ()
    #: waits longer than this many times its run time bring a job back to the first queue; 0: never
    promote: float = 0.0
    steady: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_thresholds(self.thresholds, "las")
        if not 0 <= self.promote < float("inf"):
            raise UserError(f"las:promote={self.promote}: must be 0 (never) or more")
        if self.promote and not self.thresholds:
            raise UserError("las:promote needs thresholds, as in thresholds=3250/7200")

    @property
    def pause(self) -> float | None:
        """The discretised form wakes at thresholds instead."""
        return None if self.thresholds else self.round

    def slope(self, gpus: int) -> float:
        """Attained service grows with the number of devices."""
        return 0.0 if self.thresholds else float(gpus)

    def key(self, job: Job, view: View) -> float | tuple[float, ...]:
        """Attained GPU-seconds, or (queue, waiting behind running, first start)."""
        if not self.thresholds:
            return job.service(view.now)
        ran, started = job.held_for(view.now), job.first_start
        if job.mark:
            ran -= job.mark[0]
        queue = bisect_right(self.thresholds, ran * job.spec[3].gpus + SLACK)
        return queue, job.virtual is None, NEVER if started is None else started

    def turn(self, job: Job, view: View) -> float | None:
        """When a running job drops a queue, or a waiting one has waited enough."""
        if not self.thresholds or (job.virtual is None and not self.promote):
            return None
        held, waited = job.mark or (0.0, 0.0)
        ran = job.held_for(view.now) - held
        if job.virtual is not None:
            gpus = job.spec[3].gpus
            return next_drop(ran * gpus, gpus, view.now, self.thresholds)
        if job.first_start is None or not self.key_queue(ran, job):
            return None
        return view.now + max(0.0, self.promote * ran - (_waited(job, view) - waited))

    def key_queue(self, ran: float, job: Job) -> int:
        """The queue of a job that ran that long since its last promotion."""
        return queue_of(ran * job.spec.request.gpus, self.thresholds)

    def turned(self, job: Job, view: View) -> None:
        """A waiting job whose moment has come is promoted: both counters start again."""
        if job.virtual is None:
            job.mark = (job.held_for(view.now), _waited(job, view))


def _waited(job: Job, view: View) -> float:
    return view.now - job.spec.submit - job.held_for(view.now)
