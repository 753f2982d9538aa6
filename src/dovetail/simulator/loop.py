"""The loop: the earliest of trace, world, faults and wake is now; one batch, one plan, repeat."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from dovetail.core.collecting import undisturbed
from dovetail.core.scheduler import Scheduler
from dovetail.metrics.records import Records, Series
from dovetail.model.event import Event, NodeDown, Submitted, Wake
from dovetail.model.job import Job, JobSpec
from dovetail.model.plan import EMPTY
from dovetail.model.request import WHOLE, gang
from dovetail.model.trace import TraceJob
from dovetail.simulator.world import World

Progress = Callable[[int], None]
NEVER = float("inf")
NOT_YET = float("nan")
MANY = 64
"""Rows written at a time: many are cheaper, but the memory of too many has left the caches."""

NOBODY = TraceJob(JobSpec(-1, "nobody", NEVER, gang(1)), 0.0)
"""Comes when all jobs have come: never."""

Left = list[tuple[float, list[tuple[Job, str]]]]
"""Who left when, and why."""

_new = tuple.__new__
"""Makes a named tuple in half the time of calling its class; for the hot path only."""


class Simulation:
    """One replay: a scheduler, a world, and what came of it."""

    def __init__(
        self,
        scheduler: Scheduler,
        world: World,
        jobs: Iterator[TraceJob],
        faults: Iterable[tuple[float, Event]] = (),
        series: Series | None = None,
    ) -> None:
        self.scheduler = scheduler
        self.world = world
        self.records = Records()
        self.series = series
        self.events = 0
        self._arrivals = chain(jobs, (NOBODY,))
        self._faults = chain(faults, (None,))
        self._fault = next(self._faults)
        self._capacity = scheduler.cluster.gpus * WHOLE

    @property
    def now(self) -> float:
        """The instant of the latest decision."""
        return self.scheduler.now

    def run(self, progress: Progress | None = None, every: int = 2000) -> None:
        """Replay to the end. The garbage collector rests: nothing here makes cycles in bulk."""
        gc.collect()
        with undisturbed():
            self._replay(progress or (lambda done: None), every)
        self._close()

    def _replay(self, progress: Progress, every: int) -> None:  # noqa: PLR0912, PLR0915 (the hot loop)
        """Instant after instant: gather its events, decide once, perform, note what ended."""
        world, scheduler, series = self.world, self.scheduler, self.series
        step, happen, perform = scheduler.step, world.happen, world.perform
        future, truths, left = world.future, world.truths, Left()
        arrivals, arrival = self._arrivals, next(self._arrivals)
        spec = arrival[0]
        coming = spec[2]
        breaking = NEVER if self._fault is None else self._fault[0]
        # Wakes and faults are rare: one comparison says that none is due.
        wake, rare = NEVER, breaking
        events, due = 0, every
        while True:
            now = future[0][0]
            if now < coming and now < rare:
                batch = happen(now)
            else:
                soonest, now = now, coming if coming < rare else rare
                if rare == now and min(soonest, coming) == NEVER:
                    if not scheduler.jobs or (breaking == NEVER and not scheduler.running):
                        # Nothing comes or ends any more: wakes alone would go on for ever.
                        break
                    if now == NEVER:
                        break
                batch = happen(now) if soonest == now else []
                if rare == now:
                    if breaking == now:
                        breaking = self._break_nodes(now, batch)
                    if wake == now:
                        batch.append(Wake())
                while coming <= now:
                    truths[spec[0]] = arrival
                    batch.append(_new(Submitted, (spec,)))
                    arrival = next(arrivals)
                    spec = arrival[0]
                    coming = spec[2]
            events += len(batch)
            plan = step(now, batch)
            if plan is not EMPTY or wake != NEVER:
                actions, wanted = plan[0], plan[1]
                wake = NEVER if wanted is None else wanted
                if actions:
                    perform(now, actions)
            if rare != NEVER or wake != NEVER:
                rare = wake if wake < breaking else breaking
            ended = scheduler.ended
            if ended:
                left.append((now, ended))
                if len(left) == MANY:
                    self._record(left)
                    if len(self.records) >= due:
                        due += every
                        progress(len(self.records))
            if series is not None:
                self._sample(series)
        self.events = events
        self._record(left)

    def _break_nodes(self, now: float, batch: list[Event]) -> float:
        """Add the node events that are due and tell when the next one is."""
        while self._fault is not None and self._fault[0] <= now:
            event = self._fault[1]
            if isinstance(event, NodeDown):
                self.world.node_down(event.node, now)
            batch.append(event)
            self._fault = next(self._faults)
        return NEVER if self._fault is None else self._fault[0]

    def _sample(self, series: Series) -> None:
        scheduler, cluster = self.scheduler, self.scheduler.cluster
        free = sum(mask.bit_count() for mask in cluster.masks) * WHOLE
        free += sum(share for share, _ in cluster.shared.values())
        waiting = len(scheduler.jobs) - scheduler.running
        series.add(self.now, waiting, scheduler.running, self._capacity - free)

    def _record(self, left: Left) -> None:
        """Write the rows of those who left, many at once: that is much cheaper than one by one."""
        jobs = [job for _, ended in left for job, _ in ended]
        reasons = [reason for _, ended in left for _, reason in ended]
        ends = [now for now, ended in left for _ in ended]
        left.clear()
        self.records.add(jobs, self.world.leave(jobs), ends, reasons)

    def _close(self) -> None:
        """Jobs still in the system when nothing more can happen."""
        jobs = list(self.scheduler.jobs.values())
        work = self.world.leave(jobs)
        self.records.add(jobs, work, [NOT_YET] * len(jobs), [""] * len(jobs))
