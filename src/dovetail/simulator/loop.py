"""The loop: the earliest of trace, world, faults and wake is now; one batch, one plan, repeat."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from dovetail.core.scheduler import Scheduler
from dovetail.metrics.records import Records, Series
from dovetail.model.event import Event, NodeDown, Submitted, Wake
from dovetail.model.request import WHOLE
from dovetail.model.trace import TraceJob
from dovetail.simulator.world import World

Progress = Callable[[int], None]
NEVER = float("inf")
NOT_YET = float("nan")


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
        self.now = 0.0
        self.events = 0
        self._arrivals = chain(jobs, (None,))
        self._arrival = next(self._arrivals)
        self._faults = chain(faults, (None,))
        self._fault = next(self._faults)
        self._capacity = scheduler.cluster.gpus * WHOLE

    def run(self, progress: Progress | None = None, every: int = 2000) -> None:
        """Replay to the end. The garbage collector rests: nothing here makes cycles in bulk."""
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            self._replay(progress or (lambda done: None), every)
        finally:
            gc.enable()
            gc.unfreeze()
        self._close()

    def _replay(self, progress: Progress, every: int) -> None:  # noqa: PLR0912 (the hot loop)
        """Instant after instant: gather its events, decide once, perform, note what ended."""
        world, scheduler, records, series = self.world, self.scheduler, self.records, self.series
        step, enter, happen, next_time = scheduler.step, world.enter, world.happen, world.next_time
        perform, leave, add = world.perform, world.leave, records.add
        arrivals, arrival, due, fault = self._arrivals, self._arrival, every, self._fault
        coming = NEVER if arrival is None else arrival.spec.submit
        wake = NEVER
        while True:
            now = soonest = next_time()
            if coming < now:
                now = coming
            elif now == NEVER and (not scheduler.jobs or (fault is None and not scheduler.running)):
                # Nothing comes, ends or changes any more: wakes alone would go on for ever.
                return
            if wake < now:  # noqa: PLR1730 (a call would cost more)
                now = wake
            if fault is not None and fault[0] < now:
                now = fault[0]
            if now == NEVER:
                return
            batch: list[Event] = []
            if soonest == now:
                happen(now, batch)
            if fault is not None and fault[0] <= now:
                fault = self._break_nodes(now, batch)
            while coming <= now and arrival is not None:
                enter(arrival)
                batch.append(tuple.__new__(Submitted, (arrival.spec,)))
                arrival = next(arrivals)
                coming = NEVER if arrival is None else arrival.spec.submit
            if wake == now:
                batch.append(Wake())
            self.now = now
            self.events += len(batch)
            actions, wanted = step(now, batch)
            wake = NEVER if wanted is None else wanted
            if actions:
                perform(now, actions)
            if scheduler.ended:
                for job, reason in scheduler.ended:
                    add(job, leave(job.spec.id).work, now, reason)
                if records.count >= due:
                    due += every
                    progress(records.count)
            if series is not None:
                self._sample(series)

    def _break_nodes(self, now: float, batch: list[Event]) -> tuple[float, Event] | None:
        """Add the node events that are due and return the next one."""
        while self._fault is not None and self._fault[0] <= now:
            event = self._fault[1]
            if isinstance(event, NodeDown):
                self.world.node_down(event.node, now)
            batch.append(event)
            self._fault = next(self._faults)
        return self._fault

    def _sample(self, series: Series) -> None:
        scheduler, cluster = self.scheduler, self.scheduler.cluster
        free = sum(mask.bit_count() for mask in cluster.masks) * WHOLE
        free += sum(share for share, _ in cluster.shared.values())
        waiting = len(scheduler.jobs) - scheduler.running
        series.add(self.now, waiting, scheduler.running, self._capacity - free)

    def _close(self) -> None:
        """Jobs still in the system when nothing more can happen."""
        for job in self.scheduler.jobs.values():
            self.records.add(job, self.world.lives[job.spec.id].work, NOT_YET)
        self.records.flush()
