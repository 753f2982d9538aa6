"""A replay that is stopped again and again to ask what it believes of its own future."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dovetail.answers.calibration import FLOOR, Calibration
from dovetail.answers.when import Effort, when
from dovetail.core.scheduler import Scheduler
from dovetail.model.event import Event, Finished, Submitted, Wake
from dovetail.model.job import Status
from dovetail.model.live import Estimate, Range
from dovetail.model.trace import Trace, TraceJob
from dovetail.simulator.experiment import Replay, _compose
from dovetail.simulator.spec import read_spec


@dataclass
class Asked:
    """What was said of a job that had to wait, and what came true."""

    at: float
    estimate: Estimate
    #: the start before it was stretched
    raw: Range
    naive: float
    start: float | None = None
    end: float | None = None

    @property
    def holds(self) -> bool:
        assert self.start is not None
        low, high = self.estimate.start.low, self.estimate.start.high
        return low is not None and low <= self.start - self.at <= (high or float("inf"))

    @property
    def width(self) -> float:
        """How many times as late as the low end the high one is, a minute making no difference."""
        low, high = self.estimate.start.low, self.estimate.start.high
        return ((high or float("inf")) + FLOOR) / ((low or 0.0) + FLOOR)

    @property
    def error(self) -> float:
        assert self.start is not None
        return abs((self.estimate.start.middle or 0.0) - (self.start - self.at))

    @property
    def naive_error(self) -> float:
        assert self.start is not None
        return abs(self.naive - (self.start - self.at))


@dataclass
class Oracle:
    """Replays jobs on a cluster whose starts take effect at once, and asks about some of them."""

    settings: Replay
    every: int
    effort: Effort
    asked: dict[int, Asked] = field(default_factory=dict)
    calibration: Calibration = field(default_factory=Calibration)
    total: float = 0.0
    ended: int = 0

    def make(self) -> Scheduler:
        nothing = Trace("", "", iter(()), 0)
        return _compose(self.settings, read_spec(self.settings.cluster), nothing)[0].scheduler

    def run(self, jobs: Sequence[TraceJob], most: int) -> None:
        """Every so-manieth job that must wait is asked about, when it comes."""
        scheduler, ends, waits, wake = self.make(), [], 0, None
        work = {job.spec.id: job.work for job in jobs}
        coming = iter([*jobs, None])
        arrival = next(coming)
        while arrival is not None or ends:
            times = [arrival.spec.submit] if arrival is not None else []
            times += [ends[0][0]] if ends else []
            times += [wake] if wake is not None and times else []
            now = min(times)
            batch: list[Event] = [Wake()] if wake is not None and wake <= now else []
            while ends and ends[0][0] <= now:
                batch.append(Finished(heapq.heappop(ends)[1]))
            new = []
            while arrival is not None and arrival.spec.submit <= now:
                new.append(arrival.spec.id)
                batch.append(Submitted(arrival.spec))
                arrival = next(coming)
            plan = scheduler.step(now, batch)
            wake = plan.wake_at
            for job, _ in scheduler.ended:
                self.total, self.ended = self.total + work[job.id], self.ended + 1
                if job.id in self.asked:
                    self.asked[job.id].end = now
            for action in plan.actions:
                heapq.heappush(ends, (now + work[action.job], action.job))
                if action.job in self.asked:
                    said = self.asked[action.job]
                    said.start = now
                    self.calibration.learn(said.raw, now - said.at)
            for number in new:
                waiting = number in scheduler.jobs
                if not waiting or scheduler.jobs[number].status is not Status.WAITING:
                    continue
                waits += 1
                if waits % self.every == 0 and len(self.asked) < most:
                    self.asked[number] = self._ask(scheduler, number, now)

    def _ask(self, scheduler: Scheduler, number: int, now: float) -> Asked:
        found = when(scheduler.image(), self.make, now, [number], effort=self.effort)
        raw = found[number].start
        told = replace(found[number], start=self.calibration.stretched(raw))
        return Asked(now, told, raw, self._naive(scheduler, now))

    def _naive(self, scheduler: Scheduler, now: float) -> float:
        """Work in front, at the mean length, spread over all GPUs."""
        mean = self.total / max(self.ended, 1)
        gpus = sum(job.spec.request.gpus for job in scheduler.jobs.values())
        return mean * gpus / scheduler.cluster.gpus
