"""A job: what was asked (`JobSpec`, a value) and what became of it (`Job`, run state).

Neither knows how long the job truly runs: that is the world's secret. `Job.expected` is what the
core believes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from dovetail.model.allocation import Allocation
from dovetail.model.request import Request


class Kind(StrEnum):
    """A batch job ends by itself; a service has a latency target and no end."""

    BATCH = "batch"
    SERVICE = "service"


class Status(StrEnum):
    """Where a job is in its life. The table of moves is in `core.lifecycle`."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    SUSPENDED = "suspended"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REJECTED = "rejected"


WAITING, RUNNING = Status.WAITING, Status.RUNNING
"""Looking a member up in its class costs ten times as much, and some code runs on every event."""


class JobSpec(NamedTuple):
    """What was asked for. A named tuple, because a million of them must be made quickly."""

    #: dense number inside the core; ties are broken by (submit, id)
    id: int
    #: what people call it: the trace's id or the user's name
    name: str
    #: seconds
    submit: float
    request: Request
    #: path of the owner, `org/team`
    tenant: str = ""
    user: str = ""
    #: key of its sensitivity profile
    model: str = ""
    priority: float = 0.0
    #: seconds, absolute; `None`: no deadline
    deadline: float | None = None
    #: the length in seconds its owner declared, if any
    estimate: float | None = None
    #: recurrence tag: jobs of one group are expected to be alike
    group: str = ""
    #: can it checkpoint and come back? If not, no policy may stop it
    resumable: bool = True
    #: how often it may fail and be tried again
    retries: int = 0
    kind: Kind = Kind.BATCH
    #: seconds a request may take, for a service
    latency_target: float | None = None


NOBODY: frozenset[int] = frozenset()


class Job:
    """The run state of one job as the scheduler believes it. Compared by identity."""

    __slots__ = (
        "allocation",
        "attained",
        "awaits",
        "began",
        "entry",
        "expected",
        "failures",
        "first_start",
        "home",
        "id",
        "impatient",
        "lane",
        "mark",
        "overhead",
        "preemptions",
        "rate",
        "residual",
        "run_time",
        "saved",
        "since",
        "spec",
        "starts",
        "status",
        "stray",
        "virtual",
        "withheld",
    )

    def __init__(self, spec: JobSpec, expected: float) -> None:
        self.spec = spec
        #: the number in the spec: read on every event, and quicker here
        self.id = spec[0]
        self.status = WAITING
        #: held devices, or None
        self.allocation: Allocation | None = None
        #: the same in the terms of the view its planner sees; planners read this one
        self.virtual: Allocation | None = None
        #: what a suspended job still holds, physically and in its view's terms
        self.residual: tuple[Allocation, Allocation] | None = None
        #: believed total work, in seconds at rate 1
        self.expected = expected
        #: work done before `since`, in seconds at rate 1
        self.attained = 0.0
        #: seconds devices were held before `since`
        self.run_time = 0.0
        #: when the present run (or wait) began
        self.since = submit = spec[2]
        #: when it got the devices of its present (or latest) run
        self.began = submit
        #: work that was safe when that run began, or at the last checkpoint it reported
        self.saved = 0.0
        #: seconds at the beginning of the present run without progress
        self.overhead = 0.0
        #: believed progress per second
        self.rate = 1.0
        self.starts = 0
        self.first_start: float | None = None
        self.preemptions = 0
        self.failures = 0
        #: what the ordering remembers of this job; plain values, so that it can be stored
        self.mark: Any = None
        #: has it lost its patience? Then it is not passed any more
        self.impatient = False
        #: does somebody keep it from starting? Then its planner does not know it for now
        self.withheld = False
        #: why no domain takes it in, as when its tenant is gone; then no planner knows it
        self.stray = ""
        #: jobs whose devices this start waits for
        self.awaits = NOBODY
        #: the domain of the tenancy the job plans in
        self.home = 0
        #: the planner's own marks: the lane the job is in and its live entry there
        self.lane: Any = None
        self.entry: Any = None

    def twin(self) -> Job:
        """A copy that no planner knows; spelled out, because images copy very many at once."""
        twin = object.__new__(Job)
        twin.spec, twin.id, twin.home, twin.status = self.spec, self.id, self.home, self.status
        twin.allocation, twin.virtual = self.allocation, self.virtual
        twin.residual, twin.awaits = self.residual, self.awaits
        twin.expected, twin.attained, twin.saved = self.expected, self.attained, self.saved
        twin.run_time, twin.since, twin.began = self.run_time, self.since, self.began
        twin.overhead, twin.rate, twin.starts = self.overhead, self.rate, self.starts
        twin.first_start, twin.preemptions = self.first_start, self.preemptions
        twin.failures, twin.mark, twin.withheld = self.failures, self.mark, self.withheld
        twin.impatient, twin.stray = self.impatient, self.stray
        twin.lane = twin.entry = None
        return twin

    def __repr__(self) -> str:
        return f"<Job {self.spec.name} {self.status}>"

    def worked(self, now: float) -> float:
        """Work done by `now`, in seconds at rate 1."""
        if self.status is not RUNNING:
            return self.attained
        return self.attained + max(0.0, now - self.since - self.overhead) * self.rate

    def held_for(self, now: float) -> float:
        """Seconds the job has held devices by `now`."""
        if self.allocation is None or self.status is not RUNNING:
            return self.run_time
        return self.run_time + now - self.since

    def service(self, now: float) -> float:
        """Attained GPU-seconds, the age of least-attained-service policies."""
        return self.held_for(now) * self.spec[3].gpus

    def unsaved(self, now: float) -> float:
        """Work since the last checkpoint it reported, or else since its present run began."""
        return max(0.0, self.worked(now) - self.saved)

    def time_left(self, now: float, restart: float = 0.0) -> float:
        """Believed seconds to the end if the job held its devices from now on.

        `restart` is what a start would cost a waiting job; a running one pays what is left of the
        start it is in.
        """
        # No `max` and no `worked`: this is asked for every job that is listed as running.
        if self.status is not RUNNING:
            left = self.expected - self.attained
            return restart + (left if left > 0.0 else 0.0)
        ran = now - self.since - self.overhead
        overhead = -ran
        left = self.expected - (self.attained + (ran if ran > 0.0 else 0.0) * self.rate)
        return (overhead if overhead > 0.0 else 0.0) + (left if left > 0.0 else 0.0) / self.rate
