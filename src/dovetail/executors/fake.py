"""A fake engine: machines that only pretend, with true lengths they are told and a clock they read.

`Machine` is the part that outlives a controller, as real processes do; `FakeExecutor` is one
controller's connection to it and forgets everything when that controller dies. The arithmetic of
runs is that of the simulated world, so that both give the same moments to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from pathlib import Path
from typing import NamedTuple

from dovetail.core.protocols import Speed
from dovetail.executors.protocol import (
    Attempt,
    Ended,
    Executor,
    Fate,
    Launch,
    Paused,
    Report,
    Running,
    Use,
)
from dovetail.model.allocation import NOTHING, Allocation, classify
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.model.node import Capabilities, Node
from dovetail.model.trace import TraceJob

NEVER = float("inf")
BROKE = "it broke, as it was told to"


class Coming(NamedTuple):
    """What will happen to an attempt, and the run that it ends."""

    at: float
    sequence: int
    attempt: Attempt
    report: Fate
    #: when the run begins or began, its seconds without progress, and its rate
    since: float
    overhead: float
    rate: float
    #: is this the end of a run? Then stopping it calls this off
    runs: bool
    #: the end of a run that has still to begin
    then: Coming | None = None


@dataclass
class Past:
    """What is left of earlier runs of a job."""

    starts: int = 0
    #: seconds of work into each coming attempt at which it breaks
    breaks: tuple[float, ...] = ()
    done: float = 0.0
    #: work that was done when the present attempt began
    origin: float = 0.0


@dataclass
class Known:
    """An attempt the machine has seen."""

    launch: Launch
    #: when it was started, and when it let go of its devices
    begun: float
    over: float | None = None
    #: the last thing that was said about it
    last: Fate | None = None
    comes: Coming | None = None


class Machine:
    """All nodes, and every attempt that ever ran on them."""

    def __init__(
        self,
        cluster: Cluster,
        speed: Speed,
        costs: Costs,
        clock: Callable[[], float],
        latency: float | None = None,
    ) -> None:
        self.cluster = cluster
        self.speed = speed
        self.costs = costs
        self.clock = clock
        #: seconds until a start is confirmed; None: all takes effect at once, without a word
        self.latency = latency
        self.truths: dict[int, TraceJob] = {}
        self.known: dict[Attempt, Known] = {}
        #: what others occupy, and what attempts make of their devices, as a test likes it
        self.foreign: Allocation = NOTHING
        self.uses: dict[Attempt, Use] = {}
        #: everything that was ever said, oldest first
        self.said: list[Fate] = []
        self._past: dict[int, Past] = {}
        self._future: list[Coming] = []
        self._sequence = 0

    def tell(self, job: TraceJob) -> None:
        """The truth about a job, before it starts."""
        self.truths[job.spec.id] = job
        if job.breaks:
            self._past[job.spec.id] = Past(0, job.breaks)

    def truth(self, job: int) -> float:
        """The true work of a job: for oracles."""
        return self.truths[job].work

    # ---- time --------------------------------------------------------------------------------

    def next_at(self) -> float:
        """When something happens next."""
        future = self._future
        while future and self.known[future[0].attempt].comes is not future[0]:
            heappop(future)
        return future[0].at if future else NEVER

    def pass_time(self) -> None:
        """Let everything happen that is due."""
        now = self.clock()
        while self.next_at() <= now:
            self._happen(heappop(self._future))

    def _happen(self, coming: Coming) -> None:
        known, report = self.known[coming.attempt], coming.report
        known.comes = None
        if isinstance(report, Ended):
            if report.code:
                self._break(coming)
            known.over = coming.at
        known.last = report
        self.said.append(report)
        if coming.then is not None:
            self._expect(coming.then)

    def _break(self, coming: Coming) -> None:
        """Only what the last checkpoint kept is left of the work."""
        past = self._halt(coming, coming.at)
        past.breaks = past.breaks[1:]
        job = self.truths[coming.attempt.job]
        past.done = past.origin = self.costs.kept(past.done, job.spec.resumable)

    def _expect(self, coming: Coming) -> None:
        self.known[coming.attempt].comes = coming
        heappush(self._future, coming)

    # ---- runs --------------------------------------------------------------------------------

    def start(self, launch: Launch) -> None:
        """Begin an attempt; one that is known already is left alone."""
        if launch.attempt in self.known:
            return
        now, job = self.clock(), launch.attempt.job
        self.known[launch.attempt] = Known(launch, now)
        overhead, past = self.costs.first_start, self._past.get(job)
        if past is not None:
            overhead = self.costs.start(self.truths[job].spec.model, past.starts)
            past.starts += 1
        self._run(launch, now, overhead, self.latency)

    def _run(self, launch: Launch, now: float, overhead: float, latency: float | None) -> None:
        """Let an attempt run: its end, or the break before it, lies in the future."""
        job = launch.attempt.job
        spec, work = self.truths[job].spec, self.truths[job].work
        rate = self.speed.rate(spec, launch.allocation, self.cluster)
        report: Fate = Ended(launch.attempt, 0)
        past, left = self._past.get(job), work
        if past is not None:
            left -= past.done
            if past.breaks and past.origin + past.breaks[0] < work:
                left = max(0.0, past.origin + past.breaks[0] - past.done)
                report = Ended(launch.attempt, 1, reason=BROKE)
        since = now if latency is None else now + latency
        run = (since, overhead, rate, True)
        begins = self._next_sequence()
        if latency is None:
            self._expect(
                Coming(since + overhead + left / rate, begins, launch.attempt, report, *run)
            )
            return
        end = Coming(
            since + overhead + left / rate, self._next_sequence(), launch.attempt, report, *run
        )
        said = Running(launch.attempt, launch.allocation)
        self._expect(Coming(since, begins, launch.attempt, said, *run, end))

    def _next_sequence(self) -> int:
        self._sequence += 1
        return self._sequence

    def _halt(self, run: Coming, now: float) -> Past:
        """Stop the clock of a run and count its work."""
        job = run.attempt.job
        past = self._past.setdefault(job, Past(1))
        ran = now - run.since - run.overhead
        if ran > 0:
            past.done = min(self.truths[job].work, past.done + ran * run.rate)
        return past

    def stop(self, attempt: Attempt, said: Fate) -> None:
        """End or pause a run; asked twice it says nothing new."""
        known, now = self.known.get(attempt), self.clock()
        run = known.comes if known is not None else None
        if known is None or (run is not None and not run.runs) or known.over is not None:
            return
        if run is not None:
            self._halt(run, now)
            known.comes = None
        if self.latency is None:
            known.over = now
            return
        at = now + self.costs.stop
        self._expect(Coming(at, self._next_sequence(), attempt, said, 0.0, 0.0, 1.0, False))

    def resume(self, attempt: Attempt) -> None:
        """Let a paused attempt run on."""
        known = self.known[attempt]
        if known.comes is None and known.over is None:
            self._run(known.launch, self.clock(), self.costs.resume, self.latency)

    def resize(self, attempt: Attempt, allocation: Allocation) -> None:
        """Let a run go on with other amounts (or devices, where all takes effect at once)."""
        known, now = self.known[attempt], self.clock()
        run, old = known.comes, known.launch.allocation
        known.launch = replace(known.launch, allocation=allocation)
        if run is None or not run.runs:
            return
        latency, overhead = None, run.overhead
        if isinstance(run.report, Running):
            # It has not begun yet: it begins when it was to begin.
            latency = run.at - now
        else:
            cost = self.costs.change(classify(old, allocation), self._model(attempt))
            # What is left of a start that the change interrupts is still to be paid.
            overhead = max(cost, run.since + run.overhead - now)
        self._halt(run, now)
        self._run(known.launch, now, overhead, latency)

    def _model(self, attempt: Attempt) -> str:
        return self.truths[attempt.job].spec.model


class FakeExecutor(Executor):
    """One controller's connection to a machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._mine: set[Attempt] = set()
        self._heard = len(machine.said)
        self._told: list[Fate] = []

    @property
    def nodes(self) -> Sequence[Node]:
        """The machines."""
        return self.machine.cluster.nodes

    @property
    def capabilities(self) -> Mapping[str, Capabilities]:
        """Everything can be done, and confirmed after the latency."""
        latency = self.machine.latency
        pools = self.machine.cluster.pools
        return {pool.type: replace(pool.capabilities, start_latency=latency) for pool in pools}

    def start(self, launch: Launch) -> None:
        """Start an attempt."""
        self._mine.add(launch.attempt)
        self.machine.start(launch)

    def stop(self, attempt: Attempt, grace: float) -> None:
        """End an attempt."""
        self.machine.stop(attempt, Ended(attempt, None, 15, "stopped"))

    def suspend(self, attempt: Attempt) -> None:
        """Pause an attempt."""
        self.machine.stop(attempt, Paused(attempt))

    def resume(self, attempt: Attempt) -> None:
        """Let an attempt go on."""
        self.machine.resume(attempt)

    def resize(self, attempt: Attempt, allocation: Allocation) -> None:
        """Other amounts."""
        self.machine.resize(attempt, allocation)

    def adopt(self, launch: Launch) -> bool:
        """Is this attempt known? Then what was last said about it is said again."""
        self.machine.pass_time()
        known = self.machine.known.get(launch.attempt)
        if known is None:
            return False
        if launch.attempt not in self._mine:
            self._mine.add(launch.attempt)
            # What was said while nobody listened counts once, from here on what is new.
            unheard = self.machine.said[self._heard :]
            if known.last is not None and known.last not in unheard:
                self._told.append(known.last)
        return True

    def describe(self) -> str:
        """It only pretends."""
        return "fake machines: nothing really runs"

    def logs(self, attempt: Attempt) -> Sequence[Path]:
        """Nothing is written."""
        return ()

    def reports(self) -> list[Report]:
        """What happened since the last call, to attempts of this controller."""
        self.machine.pass_time()
        said, self._heard = self.machine.said[self._heard :], len(self.machine.said)
        told, self._told = self._told, []
        return [*told, *(report for report in said if report.attempt in self._mine)]

    def forget(self, attempts: Sequence[Attempt]) -> None:
        """Nothing more is told of these."""
        self._mine.difference_update(attempts)

    def used_by_others(self) -> Allocation:
        """What it was told that others occupy."""
        return self.machine.foreign

    def uses(self) -> Mapping[Attempt, Use]:
        """What it was told that attempts make of their devices."""
        return self.machine.uses
