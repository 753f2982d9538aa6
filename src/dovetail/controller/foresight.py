"""The future as it is believed: a fork of the scheduler, driven on by expected ends.

The fork decides as the real one would; engines are taken to do at once what they are asked. Nothing
here touches the scheduler it was forked from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dovetail.core.scheduler import Scheduler
from dovetail.model.event import Event, Finished, Started, Stopped, Wake
from dovetail.model.job import Job, Status
from dovetail.model.plan import Plan

NEVER = float("inf")


class Foresight:
    """What is believed to come, step by step."""

    def __init__(self, scheduler: Scheduler, make: Callable[[], Scheduler], now: float) -> None:
        self.scheduler = make()
        self.scheduler.restore(scheduler.snapshot())
        self.now = now
        self._wake: float | None = None

    def submit(self, batch: Sequence[Event]) -> None:
        """Something that might happen now."""
        self._step(batch)

    def advance(self) -> bool:
        """On to the next thing that is believed to happen; False: nothing is."""
        confirmed = self._confirmations()
        if confirmed:
            return self._step(confirmed)
        ending = min(map(self._end, self.scheduler.jobs.values()), default=NEVER)
        wake = NEVER if self._wake is None else self._wake
        at = min(ending, wake)
        if at == NEVER:
            return False
        self.now = max(self.now, at)
        over = [job for job in self.scheduler.jobs.values() if self._end(job) <= self.now]
        events: list[Event] = [Finished(job.id) for job in over]
        return self._step(events if events else [Wake()])

    def _step(self, batch: Sequence[Event]) -> bool:
        plan: Plan = self.scheduler.step(self.now, batch)
        self._wake = plan.wake_at
        return True

    def _confirmations(self) -> list[Event]:
        """What an engine would say of starts and stops."""
        said: list[Event] = []
        for job in self.scheduler.jobs.values():
            if job.status is Status.STARTING and job.allocation is not None and not job.awaits:
                said.append(Started(job.id, job.allocation))
            elif job.status is Status.STOPPING:
                said.append(Stopped(job.id))
        return said

    def _end(self, job: Job) -> float:
        if job.status is not Status.RUNNING:
            return NEVER
        return self.now + job.time_left(self.now)
