"""Keeps what was measured for a day: the cluster every few seconds, and each running job.

All in memory and bounded: a day of samples, and for each job so many points, which lie further
apart the longer it runs. Measuring decides nothing and never holds a decision up: between two jobs
the controller has its turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dovetail.controller.loop import Controller
from dovetail.controller.roster import Live
from dovetail.core.scheduler import Scheduler
from dovetail.executors.protocol import Attempt, Usage
from dovetail.model.event import Event, Started
from dovetail.model.plan import Plan
from dovetail.model.series import Point, Sample

log = logging.getLogger(__name__)

EVERY = 5.0
"""Seconds between two samples."""
KEPT = 17_280
"""Samples: a day of them."""
POINTS = 240
"""Of one job."""
MIB = 2**20
OVER = 200
"""Jobs that run no more, of which points are kept."""
GPU = "GPU"
"""What uses are of that were measured on devices; a stand-in is none."""

Told = Callable[[Sample, dict[int, Point]], None]


class Trail:
    """The points of one attempt; when they are too many, every other one is forgotten."""

    def __init__(self, most: int = POINTS) -> None:
        self.points: list[Point] = []
        self._most = most
        self._every = 1
        self._seen = 0

    def add(self, point: Point) -> None:
        """Keep it, unless it lies closer to the last one than those that are kept."""
        if self._seen % self._every == 0:
            self.points.append(point)
        self._seen += 1
        if len(self.points) >= self._most:
            self.points = self.points[::2]
            self._every *= 2


@dataclass
class Measured:
    """What one attempt took when it was last looked at."""

    attempt: Attempt
    trail: Trail = field(default_factory=Trail)
    #: moment and CPU seconds of the last look
    last: tuple[float, float] | None = None


class Sampler:
    """Looks at the cluster again and again."""

    def __init__(self, controller: Controller, told: Told = lambda sample, points: None) -> None:
        self._controller = controller
        #: called with every sample, and the points of the running jobs
        self.told = told
        self.samples: deque[Sample] = deque(maxlen=KEPT)
        #: of the running jobs, at the last sample
        self.latest: dict[int, Point] = {}
        self._jobs: dict[int, Measured] = {}
        #: of the latest jobs that run no more
        self._over: dict[int, Trail] = {}
        self._waits: list[float] = []

    def __call__(self, now: float, events: Sequence[Event], plan: Plan) -> None:
        """A decision: note how long those waited that start for the first time."""
        for event in events:
            live = self._controller.roster.get(event.job) if isinstance(event, Started) else None
            if live is not None and live.attempts <= 1 and live.started is not None:
                self._waits.append(live.started - live.submitted)

    def points(self, job: int) -> Sequence[Point]:
        """What was measured of the latest attempt of a job, oldest first."""
        known = self._jobs.get(job)
        trail = known.trail if known is not None else self._over.get(job)
        return trail.points if trail is not None else ()

    async def run(self) -> None:
        """Sample until cancelled."""
        while True:
            try:
                await self.sample()
            except Exception as error:
                # Engines are other people's code: what cannot be measured now is measured later.
                log.warning("nothing could be measured: %s", error)
            await asyncio.sleep(EVERY)

    async def sample(self) -> None:
        """One look at everything."""
        running = [live for live in self._controller.roster.values() if live.run is not None]
        points: dict[int, Point] = {}
        for live in running:
            point = self._look(live)
            if point is not None:
                points[live.id] = point
            await asyncio.sleep(0)
        for number in sorted(self._jobs.keys() - points.keys()):
            self._over[number] = self._jobs.pop(number).trail
        while len(self._over) > OVER:
            del self._over[next(iter(self._over))]
        sample = self._total(points)
        self.samples.append(sample)
        self.latest = points
        self.told(sample, points)

    def _look(self, live: Live) -> Point | None:
        run = live.run
        if run is None or not run.confirmed:
            return None
        known = self._jobs.get(live.id)
        if known is None or known.attempt != run.attempt:
            known = self._jobs[live.id] = Measured(run.attempt)
        engine, clock = self._controller.executor, self._controller.time
        usage = engine.usage(run.attempt)
        held, told, use = (
            run.allocation,
            live.progress,
            self._controller.looks.uses.get(run.attempt),
        )
        point = Point(
            clock.wall(),
            held.cpu,
            _rate(known, clock.now(), usage),
            held.memory,
            usage.memory // MIB if usage is not None else None,
            use.percent if use is not None and use.of == GPU else None,
            told.steps if told is not None else None,
            told.total if told is not None else None,
            told.rate if told is not None else None,
        )
        known.trail.add(point)
        return point

    def _total(self, points: dict[int, Point]) -> Sample:
        scheduler, wall = self._controller.scheduler, self._controller.time.wall()
        roster, nodes = self._controller.roster, scheduler.cluster.nodes
        held = [job.allocation for job in scheduler.jobs.values() if job.allocation is not None]
        ages = [wall - live.submitted for live in roster.values() if _waits(scheduler, live)]
        waits, self._waits = self._waits, []
        return Sample(
            wall,
            sum(node.gpus for node in nodes),
            sum(each.milli_gpus for each in held) / 1000,
            sum(node.cpu or 0 for node in nodes),
            sum(each.cpu for each in held),
            _sum([point.cpu_used for point in points.values()]),
            sum(node.memory or 0 for node in nodes),
            sum(each.memory for each in held),
            _sum([point.memory_used for point in points.values()]),
            len(ages),
            scheduler.running,
            sum(ages) / len(ages) if ages else 0.0,
            sum(waits) / len(waits) if waits else None,
        )


def _rate(known: Measured, now: float, usage: Usage | None) -> int | None:
    """Thousandths of a core since the last look; None at the first one."""
    if usage is None:
        return None
    before, known.last = known.last, (now, usage.cpu_seconds)
    if before is None or now <= before[0]:
        return None
    return round(1000 * max(0.0, usage.cpu_seconds - before[1]) / (now - before[0]))


def _waits(scheduler: Scheduler, live: Live) -> bool:
    job = scheduler.jobs.get(live.id)
    return live.run is None and (job is None or job.allocation is None)


def _sum(values: Sequence[int | None]) -> int | None:
    """Of what is known; None where nothing is, though something runs."""
    known = [value for value in values if value is not None]
    return sum(known) if known or not values else None
