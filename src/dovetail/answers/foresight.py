"""The future under given lengths: a fork of the scheduler, driven on from one end to the next.

The fork decides as the real one would. Engines are taken to do soon what they are asked, and
each job to need as much work as `lengths` says. What the fork believes of lengths stays what it is:
truth and belief may differ here as they do outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

from dovetail.core.collecting import undisturbed
from dovetail.core.scheduler import Scheduler
from dovetail.model.event import Event, Finished, Offered, Started, Stopped, Submitted, Wake
from dovetail.model.job import Job, JobSpec, Status
from dovetail.model.plan import Plan

NEVER = float("inf")
LAG = 1.0
"""Seconds until an engine has done what it was asked."""

GRAIN = 0.2
"""The share of the time looked ahead by which the moment of a plan's wake may be off."""

AT_ONCE = 0.01
"""The same share for all else: what happens within it of each other is decided on together."""

FEW = 200
"""Of so many jobs that run, one more may end in the same moment.

Not more: where jobs skip each other, many ends at once would let wide jobs in that get nothing
while devices come free one by one.
"""

Lengths = Callable[[Job], float]
"""The work of a job in seconds at rate 1."""


@dataclass(frozen=True)
class Present:
    """A state to go on from: of a whole scheduler, or of one domain as if it was all there is."""

    image: dict[str, Any]
    #: makes schedulers that the image can be restored to
    make: Callable[[], Scheduler]
    wake_at: float | None = None
    #: does such a job plan here?
    takes: Callable[[JobSpec], bool] = lambda spec: True

    @contextmanager
    def forked(self, **other: Any) -> Iterator[Scheduler]:
        """A scheduler that goes on from here for a while, with something in the image otherwise."""
        with undisturbed():
            scheduler = fork(self.make, {**self.image, **other})
            try:
                yield scheduler
            finally:
                scheduler.dissolve()


class Foresight:
    """What comes, step by step."""

    def __init__(
        self,
        scheduler: Scheduler,
        now: float,
        lengths: Lengths,
        wake_at: float | None = None,
        rests: Mapping[int, float] | None = None,
        leaving: Mapping[int, float] | None = None,
        coming: Iterable[JobSpec] = (),
    ) -> None:
        self.scheduler = scheduler
        self.now = now
        #: when each job first held devices here that nobody else was still on
        self.started: dict[int, float] = {}
        self.ended: dict[int, float] = {}
        self._lengths = lengths
        self._wake = wake_at
        self._begun = self._woken = now
        #: (when, job); the last one pushed for a job counts
        self._ends: list[tuple[float, int]] = []
        self._due: dict[int, float] = {}
        #: (when, what): jobs that rest after a failure are tried again, stops in flight are over
        self._later = _due(Offered, rests or {}) + _due(Stopped, leaving or {})
        self._later.sort(key=_moment)
        self._coming = iter(coming)
        self._next = next(self._coming, None)
        self._expect_ends(scheduler.jobs.values())
        waits = set(leaving or ())
        self._unsaid = _confirmations(j for j in scheduler.jobs.values() if j.id not in waits)
        self._answers = now if self._unsaid else NEVER

    def step(self, batch: Sequence[Event]) -> Plan:
        """Something happens now; engines confirm what follows from it a little later."""
        plan = self.scheduler.step(self.now, batch)
        self._wake = plan.wake_at
        for job, _ in self.scheduler.ended:
            self.ended[job.id] = self.now
        numbers = {action.job for action in plan.actions}
        numbers.update(getattr(event, "job", -1) for event in batch)
        touched = [self.scheduler.jobs[each] for each in numbers if each in self.scheduler.jobs]
        self._expect_ends(touched)
        self._unsaid.extend(_confirmations(touched))
        if self._unsaid and self._answers == NEVER:
            self._answers = self.now + LAG
        return plan

    def advance(self) -> bool:
        """On to the next thing that is to happen; False: nothing is."""
        ends = self._ends
        while ends and self._due.get(ends[0][1]) != ends[0][0]:
            heappop(ends)
        at, wake = ends[0][0] if ends else NEVER, self._next_wake()
        later = self._later[0][0] if self._later else NEVER
        comes = self._next.submit if self._next is not None else NEVER
        soonest = min(self._answers, at, later, comes, wake)
        if soonest == NEVER:
            return False
        self.now = max(self.now, soonest)
        self.step(self._happen(self.now + AT_ONCE * (self.now - self._begun), wake))
        return True

    def _happen(self, until: float, wake: float) -> list[Event]:
        """Everything up to then, as if it was now; wakes are thinned out already."""
        batch: list[Event] = []
        if self._answers <= until:
            batch, self._unsaid, self._answers = self._unsaid, [], NEVER
        batch += self._finished(until)
        while self._later and self._later[0][0] <= until:
            batch.append(self._later.pop(0)[1])
        while self._next is not None and self._next.submit <= until:
            batch.append(Submitted(self._next._replace(submit=self.now)))
            self._next = next(self._coming, None)
        if wake <= self.now:
            self._woken = self.now
            batch.append(Wake())
        return batch

    def _finished(self, until: float) -> list[Event]:
        ends, over = self._ends, list[Event]()
        few = max(1, self.scheduler.running // FEW)
        while ends and (ends[0][0] <= self.now or (ends[0][0] <= until and len(over) < few)):
            due, job = heappop(ends)
            if self._due.get(job) == due:
                del self._due[job]
                over.append(Finished(job))
        return over

    def _next_wake(self) -> float:
        """Rounds of minutes mean nothing days ahead: the further away, the fewer."""
        if self._wake is None:
            return NEVER
        return max(self._wake, self._woken + GRAIN * (self._woken - self._begun))

    def _expect_ends(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            if job.allocation is not None and not job.awaits and job.id not in self.started:
                self.started[job.id] = self.now
            if job.status is not Status.RUNNING:
                self._due.pop(job.id, None)
                continue
            left = max(0.0, self._lengths(job) - job.worked(self.now))
            overhead = max(0.0, job.since + job.overhead - self.now)
            due = self.now + overhead + (left / job.rate if job.rate > 0 else NEVER)
            if self._due.get(job.id) != due and due < NEVER:
                self._due[job.id] = due
                heappush(self._ends, (due, job.id))


def _confirmations(jobs: Iterable[Job]) -> list[Event]:
    """What an engine would say of starts and stops."""
    said: list[Event] = []
    for job in jobs:
        if job.status is Status.STARTING and job.allocation is not None and not job.awaits:
            said.append(Started(job.id, job.allocation))
        elif job.status is Status.STOPPING:
            said.append(Stopped(job.id))
    return said


def _due(kind: type[Offered] | type[Stopped], at: Mapping[int, float]) -> list[tuple[float, Event]]:
    return [(when, kind(job)) for job, when in at.items()]


def _moment(happens: tuple[float, Event]) -> float:
    return happens[0]


def fork(make: Callable[[], Scheduler], image: dict[str, Any], anew: bool = False) -> Scheduler:
    """A scheduler of its own that goes on from an image."""
    with undisturbed():
        made = make()
        made.restore(image, anew)
    return made
