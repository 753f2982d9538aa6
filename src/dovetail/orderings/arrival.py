"""Orders that need to know nothing but the request: arrival, priority, size."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.core.ordering import Ordering
from dovetail.core.view import View
from dovetail.model.job import Job


@dataclass(frozen=True)
class Fifo(Ordering):
    """First come, first served: strict unless `skip`, `preempt` or `backfill` is given."""

    def key(self, job: Job, view: View) -> float:
        """Submit time; ties by id follow by themselves."""
        return job.spec.submit


@dataclass(frozen=True)
class Priority(Ordering):
    """Higher priority first, then arrival."""

    def key(self, job: Job, view: View) -> float:
        """The priority, turned round because smaller keys go first."""
        return -job.spec.priority


@dataclass(frozen=True)
class SmallestFirst(Ordering):
    """Fewest GPUs first, then arrival."""

    def key(self, job: Job, view: View) -> float:
        """Thousandths of GPUs asked for."""
        return float(job.spec.request.milli_gpus)
