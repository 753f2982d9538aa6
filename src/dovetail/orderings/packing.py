"""Packing several resources at once: Tetris (Grandl et al., SIGCOMM'14)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from dovetail.core.ordering import Ordering
from dovetail.core.view import Amounts, View
from dovetail.model.errors import UserError
from dovetail.model.job import Job
from dovetail.model.request import Group, Request

Fractions = tuple[float, float, float]
"""Of the cluster's GPUs, CPU and memory; 0 where the cluster does not limit them."""


@dataclass(frozen=True)
class Tetris(Ordering):
    """Best score that fits: demand aligned with what is free, less remaining work; not preemptive.

    Alignment is the dot product of what the job asks for and what is free, both as fractions of
    the cluster. Remaining work is the sum of the fractions asked for times the believed time left.
    Each is divided by its mean, as the paper does, and the score is alignment less `srtf` times
    remaining work. What is free is read at every decision and again after each admission; means
    are over all jobs submitted so far. CPU and memory that a job leaves to the allocator count as
    its GPU-proportional share. Unlike the paper, which scores each machine, the whole cluster is
    scored: where a job goes is the placement's business.
    """

    skip: bool = True
    #: weight of short remaining work against good alignment; 0: packing alone
    srtf: float = 1.0
    #: jobs submitted, and the sums of their fractions and of their work
    _seen: list[float] = field(
        default_factory=lambda: [0.0] * 5, init=False, repr=False, compare=False
    )

    by_free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.srtf < float("inf"):
            raise UserError(f"tetris:srtf={self.srtf}: must be 0 (packing alone) or more")

    def admit(self, job: Job, view: View) -> str | None:
        """Count the job into the means."""
        asked = _asked(job.spec.request, view.capacity)
        for index, more in enumerate((1.0, *asked, sum(asked) * job.expected)):
            self._seen[index] += more
        return None

    def key(self, job: Job, view: View) -> float:
        """Shortest first among jobs that ask for the same: their alignment is the same."""
        return view.time_left(job)

    def score(self, job: Job, view: View, given: Amounts) -> float:
        """Remaining work less alignment: smaller goes first."""
        capacity, asked = view.capacity, _asked(job.spec.request, view.capacity)
        left = [before - now for before, now in zip(view.free, given, strict=True)]
        jobs, *sums, works = self._seen
        # The mean is fixed for one walk, or scores of heads compared earlier could improve.
        alignment = _dot(sums, _fractions(view.free, capacity)) / max(jobs, 1.0)
        work = works / max(jobs, 1.0)
        aligned = _dot(asked, _fractions(left, capacity)) / alignment if alignment else 0.0
        remaining = sum(asked) * view.time_left(job) / work if work else 0.0
        return self.srtf * remaining - aligned

    def snapshot(self) -> Any:
        """The sums."""
        return list(self._seen)

    def restore(self, state: Any) -> None:
        """Take them back."""
        self._seen[:] = state


def _fractions(amounts: Any, capacity: Amounts) -> Fractions:
    gpus, cpu, memory = (
        amount / whole if whole else 0.0 for amount, whole in zip(amounts, capacity, strict=True)
    )
    return gpus, cpu, memory


def _asked(request: Request, capacity: Amounts) -> Fractions:
    groups = request.alternatives[0].groups
    gpus = request.milli_gpus / capacity[0] if capacity[0] else 0.0
    cpu = sum(_part(group, group.each.cpu, capacity, 1) for group in groups)
    memory = sum(_part(group, group.each.memory, capacity, 2) for group in groups)
    return gpus, cpu, memory


def _part(group: Group, each: int | None, capacity: Amounts, which: int) -> float:
    """The fraction of one resource that a group asks for, or that goes with its GPUs."""
    if not capacity[which]:
        return 0.0
    if each is None:
        return group.gpus * group.each.share / capacity[0] if capacity[0] else 0.0
    return group.most * each / capacity[which]


def _dot(one: Any, other: Any) -> float:
    return float(sum(a * b for a, b in zip(one, other, strict=True)))
