"""What people are shown of a running controller: jobs, machines, forecasts, use, as values.

The controller makes them, the API sends them, clients and commands read them. Times are wall time
in seconds since 1970; CPU is in thousandths of a core, memory in MiB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Labels = Mapping[int, str]
"""Members of arrays by number, as lists have them: `12.3`. Who is not in it is called by number."""


def called(labels: Labels, *jobs: int) -> str:
    """Jobs as lists have them: `7, 12.3`."""
    return ", ".join(labels.get(job, str(job)) for job in jobs)


@dataclass(frozen=True)
class Place:
    """What a job holds on one node."""

    node: str
    devices: tuple[int, ...]
    cpu: int
    memory: int
    #: thousandths of each device
    share: int

    def __str__(self) -> str:
        """`box: GPU 0,1, 4 cores, 8 GiB`."""
        words = [f"GPU {','.join(map(str, self.devices))}"] if self.devices else []
        if self.devices and self.share < 1000:
            words[0] += f" ({self.share / 10:g} %)"
        words += [said_cores(self.cpu)] if self.cpu else []
        words += [f"{self.memory / 1024:.3g} GiB"] if self.memory else []
        return f"{self.node}: {', '.join(words)}" if words else self.node


def said_cores(cpu: int) -> str:
    """Thousandths of cores in words: `1 core`, `2.5 cores`."""
    return f"{cpu / 1000:g} core{'' if cpu == 1000 else 's'}"


@dataclass(frozen=True)
class Progress:
    """What a job told of itself."""

    steps: float
    total: float | None
    #: steps per second, lately
    rate: float


@dataclass(frozen=True)
class Description:
    """One job as people see it."""

    id: int
    name: str
    owner: str
    state: str
    #: why it waits, or why it ended as it did; empty where there is nothing to say
    reason: str
    submitted: float
    started: float | None
    ended: float | None
    attempts: int
    failures: int
    code: int | None
    signal: int | None
    places: tuple[Place, ...] = ()
    progress: Progress | None = None
    #: jobs in the way, the most important first
    blockers: tuple[int, ...] = ()
    unblock: str = ""
    #: the array it is a member of, and which one
    array: int | None = None
    index: int | None = None
    #: of the last checkpoint it told of
    saved: float | None = None
    priority: float = 0.0
    #: GPUs asked for
    gpus: float = 0.0
    #: asked for the whole job; None: left to the policy
    cpu: int | None = None
    memory: int | None = None
    tenant: str = ""
    resumable: bool = False
    #: seconds
    time_limit: float | None = None
    deadline: float | None = None
    after: tuple[int, ...] = ()
    command: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Its number as lists have it: `7`, or `12.3` for a member of an array."""
        return str(self.id) if self.array is None else f"{self.array}.{self.index}"


@dataclass(frozen=True)
class Page:
    """Some of the jobs that match, and how many there are."""

    jobs: tuple[Description, ...]
    total: int


@dataclass(frozen=True)
class Run:
    """One attempt of a job."""

    number: int
    started: float
    ended: float | None
    outcome: str
    places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Stretch:
    """A while in which a job's state and what it holds stayed the same."""

    state: str
    since: float
    #: None: it lasts
    until: float | None
    #: 0: none yet
    attempt: int = 0
    places: tuple[Place, ...] = ()


@dataclass(frozen=True)
class Detail:
    """One job with all that its owner may see."""

    job: Description
    runs: tuple[Run, ...] = ()
    directory: str = ""
    environment: tuple[tuple[str, str], ...] = ()
    #: names of the variables that are never shown
    hidden: tuple[str, ...] = ()
    #: of the jobs in its way and those it runs after
    labels: Labels = field(default_factory=dict)


@dataclass(frozen=True)
class Machine:
    """One node as people see it."""

    name: str
    type: str
    gpus: int
    free: int
    #: open, draining or down
    state: str
    jobs: tuple[int, ...]
    cpu: int | None = None
    cpu_free: int | None = None
    memory: int | None = None
    memory_free: int | None = None
    #: devices that somebody outside uses
    foreign: tuple[int, ...] = ()
    virtual: bool = False
    #: of its jobs
    labels: Labels = field(default_factory=dict)


@dataclass(frozen=True)
class Usage:
    """What one user had."""

    owner: str
    jobs: int
    #: that have not ended
    waiting: int
    running: int
    gpu_hours: float
    cpu_hours: float
    #: of jobs that ended well
    done: int
    failed: int


@dataclass(frozen=True)
class Forecast:
    """What would become of a task if it were submitted now."""

    #: can it run here at all?
    possible: bool
    #: why not, why not now, or who must leave first
    reason: str
    #: seconds until it has its place; None: cannot be told
    starts_in: float | None = None
    #: where its first job would run
    places: tuple[Place, ...] = ()
    #: jobs of the task
    jobs: int = 1
    #: does the answer rest on how long other jobs are believed to run?
    believed: bool = False


@dataclass(frozen=True)
class Receipt:
    """What became of one task: its jobs, and the array they are, if they are one."""

    jobs: tuple[int, ...]
    array: int | None
    #: rejected where it can never run, with the reason; else as it is now
    state: str
    reason: str


@dataclass(frozen=True)
class Told:
    """What was done to which jobs, and the jobs that take their place."""

    jobs: tuple[int, ...]
    new: tuple[int, ...] = ()
    #: of both
    labels: Labels = field(default_factory=dict)


@dataclass(frozen=True)
class Piece:
    """Some of what an attempt wrote."""

    attempt: int
    text: str
    #: where the next piece begins
    cursor: str
    #: has the attempt ended, and is this all?
    over: bool


@dataclass(frozen=True)
class About:
    """What answers, and who asks."""

    version: str
    policy: str
    #: what runs the jobs and what is enforced on them
    engine: str
    #: are the GPUs made up?
    virtual: bool
    jobs: int
    running: int
    you: str
    role: str
    #: a policy that only looks on; empty: there is none
    shadow: str = ""
    #: how tenants own what there is: cells, shares, …; empty: there are none
    tenants: str = ""


@dataclass(frozen=True)
class Token:
    """What is known of a token, without its secret."""

    id: str
    owner: str
    role: str
    created: float
    expires: float
    revoked: bool
    #: what it is for, in the words of whoever made it
    note: str = ""


@dataclass(frozen=True)
class Range:
    """Seconds from now: low, in the middle, high; None: cannot be told."""

    low: float | None
    middle: float | None
    high: float | None

    def no_earlier(self, other: Range) -> Range:
        """Every part of it at least that part of the other."""
        pairs = (self.low, other.low), (self.middle, other.middle), (self.high, other.high)
        return Range(*(_later(mine, its) for mine, its in pairs))


def _later(mine: float | None, its: float | None) -> float | None:
    return mine if mine is None or its is None else max(mine, its)


@dataclass(frozen=True)
class Accuracy:
    """How earlier estimates of starts turned out."""

    #: share of the ranges that held; None: too few to say
    held: float | None
    #: median error in seconds
    error: float | None
    estimates: int


@dataclass(frozen=True)
class Estimate:
    """When a job starts and ends, with what probability it is within the ranges."""

    start: Range
    end: Range
    chance: float
    #: futures that were looked at
    runs: int
    past: Accuracy | None = None
    #: when it was started, if it runs
    since: float | None = None
