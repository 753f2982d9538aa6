"""The future as it is believed: a fork of the scheduler, driven on by expected ends.

The fork decides as the real one would; engines are taken to do at once what they are asked. Nothing
here touches the scheduler it was forked from, so it may be driven in another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dovetail.core.scheduler import Scheduler
from dovetail.model.event import Event, Finished, Offered, Started, Stopped, Wake
from dovetail.model.job import Job, Status

NEVER = float("inf")


@dataclass(frozen=True)
class Beliefs:
    """What the scheduler does not know of its jobs, by number."""

    #: those whose expected length is more than a guess
    told: Collection[int]
    #: seconds that one run may take
    allowed: Mapping[int, float] = field(default_factory=dict)
    #: when jobs that rest are tried again
    rests: Mapping[int, float] = field(default_factory=dict)


class Foresight:
    """What is believed to come, step by step."""

    def __init__(
        self, make: Callable[[], Scheduler], state: dict[str, Any], now: float, beliefs: Beliefs
    ) -> None:
        self.scheduler = make()
        self.scheduler.restore(state)
        self.now = now
        self._allowed = beliefs.allowed
        self._rests = dict(beliefs.rests)
        # A job that has run longer than it was believed to may do so for ever.
        self._told = {
            number
            for number in beliefs.told
            if number in self.scheduler.jobs and self.scheduler.jobs[number].time_left(now) > 0
        }
        self._wake: float | None = None

    def happen(self, batch: Sequence[Event]) -> None:
        """Something that might happen now."""
        self._wake = self.scheduler.step(self.now, batch).wake_at

    def advance(self) -> bool:
        """On to the next thing that is believed to happen; False: nothing is."""
        if confirmed := self._confirmations():
            self.happen(confirmed)
            return True
        ends = {job.id: end for job in self.scheduler.jobs.values() if (end := self._end(job))}
        wake = NEVER if self._wake is None else self._wake
        at = min(wake, *ends.values(), *self._rests.values(), NEVER)
        if at == NEVER:
            return False
        self.now = max(self.now, at)
        events: list[Event] = [Finished(job) for job, end in ends.items() if end <= self.now]
        rested = [job for job, until in self._rests.items() if until <= self.now]
        for job in rested:
            del self._rests[job]
        self.happen([*events, *map(Offered, rested)] or [Wake()])
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

    def _end(self, job: Job) -> float | None:
        """When it ends, or None: it does not run."""
        if job.status is not Status.RUNNING:
            return None
        most = job.since + self._allowed.get(job.id, NEVER)
        if job.id not in self._told:
            return most
        return min(most, self.now + job.time_left(self.now))
