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
        world, scheduler, series = self.world, self.scheduler, self.series
        step, enter, happen, future = scheduler.step, world.enter, world.happen, world.future
        perform, leave, add = world.perform, world.leave, self.records.add
        arrivals, arrival, due = self._arrivals, self._arrival, every
        coming = NEVER if arrival is None else arrival[0][2]
        breaking = NEVER if self._fault is None else self._fault[0]
        # Wakes and faults are rare: one comparison says that none is due.
        wake, rare = NEVER, breaking
        done = events = 0
        while True:
            soonest = future[0][0]
            now = coming if coming < soonest else soonest
            if rare <= now:
                if now == NEVER and (
                    not scheduler.jobs or (breaking == NEVER and not scheduler.running)
                ):
                    # Nothing comes, ends or changes any more: wakes alone would go on for ever.
                    break
                now = rare
                if now == NEVER:
                    break
            batch = happen(now) if soonest == now else []
            if rare == now:
                if breaking == now:
                    breaking = self._break_nodes(now, batch)
                if wake == now:
                    batch.append(Wake())
            while coming <= now:
                assert arrival is not None
                enter(arrival)
                batch.append(_new(Submitted, (arrival[0],)))
                arrival = next(arrivals)
                coming = NEVER if arrival is None else arrival[0][2]
            self.now = now
            events += len(batch)
            plan = step(now, batch)
            actions, wanted = plan[0], plan[1]
            if rare != breaking or wanted is not None:
                wake = NEVER if wanted is None else wanted
                rare = min(wake, breaking)
            if actions:
                perform(now, actions)
            ended = scheduler.ended
            if ended:
                for job, reason in ended:
                    add(job, leave(job.id), now, reason)
                done += len(ended)
                if done >= due:
                    due += every
                    progress(done)
            if series is not None:
                self._sample(series)
        self.events = events

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

    def _close(self) -> None:
        """Jobs still in the system when nothing more can happen."""
        for job in self.scheduler.jobs.values():
            self.records.add(job, self.world.truth(job.id), NOT_YET)
        self.records.flush()
