"""Whoever has just got devices keeps them for a while: `min-run` seconds of every run.

A job that was displaced before it did anything useful has only cost time, and two jobs of nearly
the same rank could displace each other for ever. When a protection ends and somebody waits, the
next plan is due. Planners of orderings without `min-run` are other classes and pay nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from dovetail.core.draft import Draft
from dovetail.model.job import RUNNING, Job
from dovetail.model.plan import Reason
from dovetail.planners.walk import Walk

TIDY = 64
"""So many protections of jobs that have left are worth clearing away, if they are most of all."""


class Protected(Walk):
    """A walk in which running jobs are safe at first; a mixin for walks that displace."""

    guards = True

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._min_run = self.ordering.min_run
        self._drifts = True
        #: when the protection of each running job ends, and the same as a heap with leftovers
        self._until: dict[int, float] = {}
        self._ends_of: list[tuple[float, int]] = []

    def displaceable(self, job: Job) -> bool:
        """Also not while it is protected; a start that waits for devices has none to keep."""
        young = job.status is RUNNING and self._until.get(job.id, 0.0) > self.view.now
        return not young and super().displaceable(job)

    def started(self, job: Job, now: float) -> None:
        """Its protection begins."""
        super().started(job, now)
        self._protect(job)

    def changed(self, job: Job, now: float) -> None:
        """A start that was confirmed later than it was decided is protected from then on."""
        super().changed(job, now)
        if job.virtual is not None:
            self._protect(job)

    def left(self, job: Job, now: float, done: bool) -> None:
        """Nothing is left to be protected."""
        self._until.pop(job.id, None)
        super().left(job, now, done)
        if len(self._ends_of) > TIDY + 2 * len(self._until):
            self._ends_of = [(end, number) for number, end in self._until.items()]
            heapify(self._ends_of)

    def _protect(self, job: Job) -> None:
        end = job.began + self._min_run
        if job.spec.resumable and self._until.get(job.id) != end:
            self._until[job.id] = end
            heappush(self._ends_of, (end, job.id))

    def advance(self, now: float) -> None:
        """Whose protection is over may be displaced: everybody who waits is looked at again."""
        super().advance(now)
        while self._ends_of and self._ends_of[0][0] <= now:
            end, number = heappop(self._ends_of)
            if self._until.get(number) == end:
                self.capacity_changed()

    def wake_at(self) -> float | None:
        """Also the moment when the next protection ends."""
        wake = super().wake_at()
        if not self.waiting:
            return None
        while self._ends_of and self._until.get(self._ends_of[0][1]) != self._ends_of[0][0]:
            heappop(self._ends_of)
        if not self._ends_of:
            return wake
        end = max(self._ends_of[0][0], self.view.now)
        return end if wake is None else min(wake, end)

    def restore(self, state: dict[str, Any], jobs: Sequence[Job]) -> None:
        """Rebuild the index; protections follow from when each run began."""
        super().restore(state, jobs)
        for job in self.view.running.values():
            self._protect(job)

    def explain(self, job: Job, now: float) -> Reason:
        """Devices of a job that would be displaced if it were not protected are the cause."""
        reason = super().explain(job, now)
        if reason.cause not in ("devices", "cpu or memory", "fragmentation"):
            return reason
        self.view.now = now
        end, young = self._until_enough(job)
        if not young:
            return reason
        name = young[-1].spec.name
        text = f"{reason.text}; {name} may keep its devices for {end - now:.0f} s more"
        blockers = tuple(each.id for each in young)
        return Reason(
            "min-run", text, blockers, f"{end - now:.0f} s more, then it is weighed again"
        )

    def _until_enough(self, job: Job) -> tuple[float, list[Job]]:
        """When enough of those it would displace may be, and who these are; nobody: never."""
        now, draft = self.view.now, Draft(self.view.cluster, self.placement)
        below = [
            (self._until.get(other.id, now), other.id, other)
            for other in self.view.running.values()
            if other.spec.resumable and self._would_displace(job, other)
        ]
        young: list[Job] = []
        for end, _, other in sorted(below):
            assert other.virtual is not None
            draft.release(other.virtual)
            if end > now:
                young.append(other)
                if draft.find(job.lane.options) is not None:
                    return end, young
        return now, []

    def _would_displace(self, job: Job, other: Job) -> bool:
        if other.status is not RUNNING:
            return False
        if self.ordering.preempt:
            return bool(self._key(job, self.view) < self._key(other, self.view))
        return other.spec.priority < job.spec.priority
