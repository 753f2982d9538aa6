"""Nobody waits for ever: a job whose patience is over stands first in line and is not passed.

A wait that lasts `patience` seconds makes a job impatient, for the rest of its life: it ranks
before all who are not, and among its like by arrival. That is all a strict, backfilling or
preemptive walk needs. A walk that looks past misfits reserves for the first impatient job among
them, as EASY does: others start only where, as believed, that does not delay it. Before anybody
loses patience the walk is the plain one. Planners of orderings without patience are other classes
and pay nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from dovetail.core.lanes import Entry, Lane
from dovetail.core.view import Amounts, View
from dovetail.model.job import Job, Status
from dovetail.model.plan import Action
from dovetail.planners.backfill import Easy
from dovetail.planners.walk import Head, Walk

FIRST = float("-inf")
"""The key of an impatient job; tuples where the ordering's keys are tuples."""


class Patient(Walk):
    """A walk in which jobs lose patience; a mixin for the other kinds of walk."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        assert self.ordering.patience is not None
        self._patience = self.ordering.patience
        self._key = self._first_or_key
        self._drifts = True
        #: heap of (when the patience of a wait is over, job); it may have started since
        self._limits: list[tuple[float, int]] = []

    def _first_or_key(self, job: Job, view: View) -> Any:
        key = self.ordering.key(job, view)
        if not job.impatient:
            return key
        return (FIRST,) if isinstance(key, tuple) else FIRST

    def _prefix(self, entry: Entry, lane: Lane, given: dict[str, Amounts]) -> Any:
        """Impatient jobs come before all tenants and scores; elsewhere their keys suffice."""
        if self._ranked and entry[3].impatient:
            return FIRST
        return super()._prefix(entry, lane, given)

    def waits(self, job: Job, now: float) -> None:
        """Let a job wait, and note until when it does so patiently."""
        super().waits(job, now)
        if not job.impatient:
            heappush(self._limits, (job.since + self._patience, job.spec.id))

    def advance(self, now: float) -> None:
        """Bring keys up to date; those whose patience is over go first from now on."""
        super().advance(now)
        while self._limits and self._limits[0][0] <= now:
            job = self._waits_still(*heappop(self._limits))
            if job is not None:
                job.impatient = True
                self.changed(job, now)

    def wake_at(self) -> float | None:
        """Also the moment when the next job loses patience."""
        wake = super().wake_at()
        if not self.waiting:
            return None
        while self._limits and self._waits_still(*self._limits[0]) is None:
            heappop(self._limits)
        if not self._limits:
            return wake
        limit = max(self._limits[0][0], self.view.now)
        return limit if wake is None else min(wake, limit)

    def _waits_still(self, limit: float, number: int) -> Job | None:
        """The job, if the wait that ends its patience then is the present one."""
        job = self.view.jobs.get(number)
        if job is None or job.virtual is not None or job.impatient:
            return None
        return job if job.since + self._patience == limit else None

    def restore(self, state: dict[str, Any], jobs: Sequence[Job]) -> None:
        """Rebuild the index; limits follow from when each wait began."""
        super().restore(state, jobs)
        calm = [job for job in jobs if job.status is Status.WAITING and not job.impatient]
        self._limits = [(job.since + self._patience, job.spec.id) for job in calm]
        heapify(self._limits)


class Reserving(Patient, Easy):
    """Looks past misfits, but for the first impatient one of them it reserves."""

    def _heads(self) -> list[Head]:
        """Whoever might start must be weighed against the impatient: then all are looked at."""
        self._selective = not any(lane.waiting[0][3].impatient for lane in self.open_lanes)
        return super()._heads()

    def walk(self, heads: list[Head]) -> list[Action]:
        """The plain walk, until somebody has lost patience."""
        if any(head[1][3].impatient for head in heads):
            return Easy.walk(self, heads)
        return Walk.walk(self, heads)

    def reserves_for(self, job: Job) -> bool:
        """Only the impatient are not passed."""
        return job.impatient
