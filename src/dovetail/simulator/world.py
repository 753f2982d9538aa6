"""The simulated world: it alone knows how long jobs truly run and when they break.

It performs plans: a started job gets an end (or a break) in its future, a stopped one is left with
the work it has not done. The scheduler's beliefs are none of its business.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from dovetail.core.protocols import Speed
from dovetail.model.allocation import Allocation, classify
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.model.event import Cancelled, Event, Failed, Finished, Started, Stopped
from dovetail.model.plan import Action, Change, Resume, Start, Stop, Suspend
from dovetail.model.trace import TraceJob

NEVER = float("inf")


class Life:
    """The truth about one job in the system."""

    __slots__ = (
        "allocation",
        "breaks",
        "done",
        "epoch",
        "origin",
        "outcome",
        "overhead",
        "rate",
        "since",
        "spec",
        "starts",
        "work",
    )

    def __init__(self, job: TraceJob, breaks: tuple[float, ...]) -> None:
        self.spec, self.work, _, self.outcome = job
        #: seconds of work into each coming attempt at which it breaks
        self.breaks = breaks
        self.done = 0.0
        #: work that was done when the present attempt began
        self.origin = 0.0
        self.epoch = 0
        self.starts = 0
        self.since = 0.0
        self.overhead = 0.0
        self.rate = 1.0
        #: what it runs on; None while it does not run
        self.allocation: Allocation | None = None


class World:
    """All jobs in the system and the heap of what will happen to them."""

    def __init__(
        self,
        cluster: Cluster,
        speed: Speed,
        costs: Costs,
        start_latency: float | None = None,
        breaks: Callable[[TraceJob], tuple[float, ...]] | None = None,
    ) -> None:
        self.cluster = cluster
        self.speed = speed
        self.costs = costs
        self.lives: dict[int, Life] = {}
        self._latency = start_latency
        self._breaks = breaks
        #: (time, sequence, job, epoch, event): dead when the job's epoch has moved on
        self._future: list[tuple[float, int, int, int, Event]] = []
        self._sequence = 0

    def enter(self, job: TraceJob) -> None:
        """A job is about to be submitted."""
        breaks = self._breaks
        self.lives[job.spec.id] = Life(job, () if breaks is None else breaks(job))

    def leave(self, job: int) -> Life:
        """A job has left the system."""
        return self.lives.pop(job)

    def truth(self, job: int) -> float:
        """The true work of a job: for oracles."""
        return self.lives[job].work

    def next_time(self) -> float:
        """When the next thing happens; infinity: never."""
        future, lives = self._future, self.lives
        while future:
            time, _, job, epoch, _ = future[0]
            life = lives.get(job)
            if life is not None and life.epoch == epoch:
                return time
            heappop(future)
        return NEVER

    def happen(self, now: float, batch: list[Event]) -> None:
        """Add everything that happens at `now` to a batch."""
        future, lives = self._future, self.lives
        while future and future[0][0] == now:
            _, _, number, epoch, event = heappop(future)
            life = lives.get(number)
            if life is None or life.epoch != epoch:
                continue
            if type(event) is Finished or type(event) is Cancelled:
                life.epoch += 1
            elif type(event) is Failed:
                self._halt(life, now)
                life.breaks = life.breaks[1:]
                life.done = life.origin = self.costs.kept(life.done, life.spec.resumable)
                event = event._replace(kept=life.done)
            batch.append(event)

    def perform(self, now: float, actions: tuple[Action, ...]) -> None:
        """Carry a plan out."""
        for action in actions:
            if type(action) is Start:
                if not action.awaits:
                    self._start(self.lives[action.job], now, action.allocation)
            elif isinstance(action, (Stop, Suspend)):
                self._stop(self.lives[action.job], now)
            elif isinstance(action, Resume):
                if action.awaits:
                    continue
                self._run(self.lives[action.job], now, action.allocation, self.costs.resume)
            elif isinstance(action, Change):
                self._change(self.lives[action.job], now, action.allocation)

    def node_down(self, node: int, now: float) -> None:
        """Everything on the node dies and keeps its last checkpoint."""
        for life in self.lives.values():
            held = life.allocation
            if held is not None and any(part.node == node for part in held.parts):
                self._halt(life, now)
                life.done = life.origin = self.costs.kept(life.done, life.spec.resumable)

    def _start(self, life: Life, now: float, allocation: Allocation) -> None:
        overhead = self.costs.start(life.spec.model, life.starts)
        life.starts += 1
        if self._latency is not None:
            self._later(life, now + self._latency, Started(life.spec.id, allocation))
            now += self._latency
        self._run(life, now, allocation, overhead)

    def _run(self, life: Life, now: float, allocation: Allocation, overhead: float) -> None:
        """Let a job run: its end, or the break before it, goes into the future."""
        number = life.spec.id
        life.allocation = allocation
        life.since, life.overhead = now, overhead
        life.rate = rate = self.speed.rate(life.spec, allocation, self.cluster)
        left = life.work - life.done
        event: Event
        if life.breaks and life.origin + life.breaks[0] < life.work:
            left = max(0.0, life.origin + life.breaks[0] - life.done)
            event = Failed(number, "it broke, as drawn or recorded")
        elif life.outcome == "cancelled":
            event = Cancelled(number)
        elif life.outcome != "finished":
            event = Failed(number, f"recorded as {life.outcome}", final=True)
        else:
            event = tuple.__new__(Finished, (number,))
        self._sequence += 1
        entry = (now + overhead + left / rate, self._sequence, number, life.epoch, event)
        heappush(self._future, entry)

    def _later(self, life: Life, time: float, event: Event) -> None:
        self._sequence += 1
        heappush(self._future, (time, self._sequence, life.spec.id, life.epoch, event))

    def _halt(self, life: Life, now: float) -> None:
        """Stop the clock of a run and count its work."""
        ran = now - life.since - life.overhead
        if ran > 0:
            life.done = min(life.work, life.done + ran * life.rate)
        life.allocation = None
        life.epoch += 1

    def _stop(self, life: Life, now: float) -> None:
        if life.allocation is None:
            return
        self._halt(life, now)
        if self._latency is not None:
            self._later(life, now + self.costs.stop, Stopped(life.spec.id))

    def _change(self, life: Life, now: float, allocation: Allocation) -> None:
        assert life.allocation is not None
        cost = self.costs.change(classify(life.allocation, allocation), life.spec.model)
        # What is left of a start that the change interrupts is still to be paid.
        overhead = max(cost, life.since + life.overhead - now)
        self._halt(life, now)
        self._run(life, now, allocation, overhead)
