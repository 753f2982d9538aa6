"""The simulated world: it alone knows how long jobs truly run and when they break.

It performs plans: a started job gets an end (or a break) in its future, a stopped one is left with
the work it has not done. The scheduler's beliefs are none of its business.

Most jobs run once and to their end, so that case is kept cheap: what is truly so is the trace's own
tuple, a run is the tuple in the heap that tells its end, and only jobs that were interrupted have a
past to remember.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from dovetail.core.protocols import Speed
from dovetail.model.allocation import Allocation, classify
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.model.event import Cancelled, Event, Failed, Finished, Started, Stopped
from dovetail.model.job import Job
from dovetail.model.plan import Action, Change, Resume, Start, Stop, Suspend
from dovetail.model.trace import TraceJob

NEVER = float("inf")
FINISHED = "finished"
MANY = 64
"""So much that was called off is worth clearing away, if it is most of what is to come."""

Coming = tuple[Any, ...]
"""(time, sequence, job, event, since, overhead, rate, allocation): what will happen to a job.

The last four describe the run that it ends: when it began, the seconds without progress, the rate
and the devices; of a job that does not run they are 0, 0, 1 and None. A `Started` carries the end
of its run as a ninth.
"""

_new = tuple.__new__
"""Makes a named tuple in half the time of calling its class; for the hot path only."""


class Past:
    """What is left of earlier runs of a job, or drawn for the coming ones."""

    __slots__ = ("breaks", "done", "origin", "starts")

    def __init__(self, starts: int, breaks: tuple[float, ...] = ()) -> None:
        self.starts = starts
        #: seconds of work into each coming attempt at which it breaks
        self.breaks = breaks
        self.done = 0.0
        #: work that was done when the present attempt began
        self.origin = 0.0


class World:
    """All jobs in the system and the heap of what will happen to them."""

    def __init__(
        self,
        cluster: Cluster,
        speed: Speed,
        costs: Costs,
        start_latency: float | None = None,
        breaks: Callable[[TraceJob], tuple[float, ...]] | None = None,
        as_recorded: bool = True,
    ) -> None:
        self.cluster = cluster
        self.speed = speed
        self.costs = costs
        #: the truth about each job that was submitted and has not left yet
        self.truths: dict[int, TraceJob] = {}
        self._past: dict[int, Past] = {}
        self._latency = start_latency
        self._first_start = costs.first_start
        self._breaks = breaks
        #: do jobs end as they did when they were recorded? If not, they finish
        self._as_recorded = as_recorded
        self._even = getattr(speed, "even", False)
        #: do jobs in a plain mode begin at once, run at rate 1 and never break?
        self._plain = self._even and start_latency is None and breaks is None
        never: Coming = (NEVER, 0, -1, None, 0.0, 0.0, 1.0, None)
        #: what comes next for each job; and at the end of time, for nobody, nothing
        self._next: dict[int, Coming] = {-1: never}
        #: heap of what comes, of which some may have been called off, but never the first
        self.future: list[Coming] = [never]
        self._called_off = 0
        #: jobs that were given up while they ran and have not been stopped yet
        self._given_up: set[int] = set()
        self._sequence = 0

    def leave(self, jobs: Sequence[Job]) -> list[float]:
        """Jobs have left the system; their true work is told."""
        for job in jobs if self._past else ():
            self._past.pop(job.id, None)
        pop = self.truths.pop
        return [pop(job.id)[1] for job in jobs]

    def truth(self, job: int) -> float:
        """The true work of a job: for oracles."""
        return self.truths[job][1]

    def happen(self, now: float) -> list[Event]:
        """Everything that happens at `now`."""
        future, upcoming = self.future, self._next
        batch: list[Event] = []
        while future[0][0] == now:
            coming = heappop(future)
            number, event = coming[2], coming[3]
            del upcoming[number]
            if type(event) is not Finished:
                event = self._turn(number, now, coming)
            if self._called_off:
                self._bury()
            batch.append(event)
        return batch

    def _turn(self, number: int, now: float, coming: Coming) -> Event:
        """What happens to a job and is not its end: it breaks, has started or has stopped."""
        event: Event = coming[3]
        if isinstance(event, Failed):
            past = self._halt(number, now, coming)
            past.breaks = past.breaks[1:]
            self._crash(number, past)
            return event._replace(kept=past.done)
        if isinstance(event, Cancelled) and self._latency is not None:
            # Its owner gives it up; the stop that follows takes as long as any.
            self._given_up.add(number)
        if isinstance(event, Started):
            self._next[number] = coming[8]
            heappush(self.future, coming[8])
        return event

    def perform(self, now: float, actions: tuple[Action, ...]) -> None:
        """Carry a plan out."""
        for action in actions:
            if type(action) is Start:
                # Named tuples are quicker read by place than unpacked.
                number, allocation = action[0], action[1]
                truth, past = self.truths[number], self._past.get(number)
                narrow = allocation[1] != truth[0][3].gpus
                if not self._plain or truth[3] != FINISHED or allocation[2] or narrow:
                    self._start(action, now)
                    continue
                # What `_start` and `_run` do, where a run can only end well and is at rate 1.
                left, overhead = truth[1], self._first_start
                if past is not None:
                    left -= past.done
                    overhead = self.costs.start(truth[0][6], past.starts)
                    past.starts += 1
                self._sequence = sequence = self._sequence + 1
                event = _new(Finished, (number,))
                end = now + overhead + left
                coming = (end, sequence, number, event, now, overhead, 1.0, allocation)
                self._next[number] = coming
                heappush(self.future, coming)
            elif isinstance(action, (Stop, Suspend)):
                self._stop(action[0], now)
            elif isinstance(action, Resume):
                if action.awaits:
                    continue
                self._run(action.job, now, action.allocation, self.costs.resume)
            elif isinstance(action, Change):
                self._change(action.job, now, action.allocation)

    def _start(self, action: Start, now: float) -> None:
        """Let a job run that may break, or where starts are not plain."""
        if action.awaits:
            return
        number = action.job
        past, overhead = self._past.get(number), self._first_start
        if past is None and self._breaks is not None:
            past = self._past[number] = Past(0, self._breaks(self.truths[number]))
        if past is not None:
            if past.starts:
                overhead = self.costs.start(self.truths[number].spec.model, past.starts)
            past.starts += 1
        self._run(number, now, action.allocation, overhead, self._latency)

    def node_down(self, node: int, now: float) -> None:
        """Everything on the node dies and keeps its last checkpoint."""
        for coming in list(self._next.values()):
            held = coming[7]
            if held is not None and any(part.node == node for part in held.parts):
                self._crash(coming[2], self._interrupt(coming, now))

    def _run(
        self,
        number: int,
        now: float,
        allocation: Allocation,
        overhead: float,
        latency: float | None = None,
    ) -> None:
        """Let a job run: its end, or the break before it, goes into the future."""
        truth = self.truths[number]
        left = work = truth[1]
        rate = 1.0
        if not self._even or allocation[2] or allocation[1] != truth[0][3].gpus:
            rate = self.speed.rate(truth[0], allocation, self.cluster)
        event: Event = _new(Finished, (number,))
        if truth[3] != FINISHED and self._as_recorded:
            event = Failed(number, f"recorded as {truth[3]}", final=True)
            if truth[3] == "cancelled":
                event = Cancelled(number)
        past = self._past.get(number)
        if past is not None:
            left -= past.done
            if past.breaks and past.origin + past.breaks[0] < work:
                left = max(0.0, past.origin + past.breaks[0] - past.done)
                event = Failed(number, "it broke, as drawn or recorded")
        if self._latency is not None and number in self._next:
            # Its node went down while it was stopping: that stop needs no confirmation any more.
            self._call_off(number)
        self._sequence = sequence = self._sequence + 1
        if latency is None:
            end = now + overhead + left / rate
            coming: Coming = (end, sequence, number, event, now, overhead, rate, allocation)
        else:
            now += latency
            end, run = now + overhead + left / rate, (now, overhead, rate, allocation)
            self._sequence = sequence + 1
            then = (end, sequence + 1, number, event, *run)
            coming = (now, sequence, number, Started(number, allocation), *run, then)
        self._next[number] = coming
        heappush(self.future, coming)

    def _call_off(self, number: int) -> None:
        """What was to come for a job does not; nothing of that kind stays on top of the heap."""
        del self._next[number]
        self._called_off += 1
        future = self.future
        if future[0][2] == number:
            self._bury()
        if self._called_off > MANY + len(future) // 2:
            future[:] = [each for each in future if self._next.get(each[2]) is each]
            heapify(future)
            self._called_off = 0

    def _bury(self) -> None:
        future, coming = self.future, self._next
        first = future[0]
        while coming.get(first[2]) is not first:
            heappop(future)
            self._called_off -= 1
            first = future[0]

    def _halt(self, number: int, now: float, run: Coming) -> Past:
        """Stop the clock of a run and count its work."""
        past = self._past.get(number)
        if past is None:
            past = self._past[number] = Past(1)
        ran = now - run[4] - run[5]
        if ran > 0:
            done, work = past.done + ran * run[6], self.truths[number][1]
            past.done = done if done < work else work
        return past

    def _interrupt(self, run: Coming, now: float) -> Past:
        """Halt a run before its end, which is called off."""
        self._call_off(run[2])
        return self._halt(run[2], now, run)

    def _crash(self, number: int, past: Past) -> None:
        """Only what the last checkpoint kept is left of the work."""
        resumable = self.truths[number].spec.resumable
        past.done = past.origin = self.costs.kept(past.done, resumable)

    def _stop(self, number: int, now: float) -> None:
        run = self._next.get(number)
        if number in self._given_up:
            self._given_up.remove(number)
        elif run is None or run[7] is None:
            return
        else:
            self._call_off(number)
            self._halt(number, now, run)
        if self._latency is not None:
            self._sequence += 1
            stopped = Stopped(number)
            coming = (now + self.costs.stop, self._sequence, number, stopped, 0.0, 0.0, 1.0, None)
            self._next[number] = coming
            heappush(self.future, coming)

    def _change(self, number: int, now: float, allocation: Allocation) -> None:
        run = self._next[number]
        if isinstance(run[3], Started):
            # It has not begun yet: it begins when it was to begin.
            self._interrupt(run, now)
            self._run(number, now, allocation, run[5], run[0] - now)
            return
        cost = self.costs.change(classify(run[7], allocation), self.truths[number].spec.model)
        # What is left of a start that the change interrupts is still to be paid.
        overhead = max(cost, run[4] + run[5] - now)
        self._interrupt(run, now)
        self._run(number, now, allocation, overhead)
