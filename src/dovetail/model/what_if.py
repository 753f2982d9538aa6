"""What would have been: a question to a controller about its own past, and the answer.

`POST /v1/what-if` takes a `Question` and answers a `Comparison`: the same jobs, replayed once as
things are (`before`) and once as asked (`after`). Both are replays, so that they differ in nothing
else. Times are seconds; moments are wall time since 1970. Knows neither policies nor plots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

STEPS = 101
"""Points of each distribution: 0, 1, … 100 %."""

SAME = 60.0
"""Seconds sooner or later that nobody notices."""

BOUNDS = (SAME, 3600.0, 86400.0)
"""Seconds that part small changes from large ones; see `Comparison.changes`."""


@dataclass(frozen=True)
class Question:
    """What is to be different; what is left out stays as it is."""

    #: as `dovetail up --policy` takes it; empty: the present one
    policy: str = ""
    #: GPUs in all; None: as many as there are
    gpus: int | None = None
    #: GPUs by user or group; none for those that are not named
    quotas: Mapping[str, float] = field(default_factory=dict)
    #: GPUs of another type, so many times as fast
    speed: float = 1.0
    #: who owns what, as `Parts.tenancy` has it; empty: everybody shares everything; None: as it is
    tenancy: str | None = None
    #: jobs submitted since then, wall time; 0: all that is on record
    since: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """What came of one replay."""

    #: in a few words: `fifo:skip=true on 8 GPUs`
    label: str
    gpus: int
    #: jobs that ended
    jobs: int
    mean_wait: float
    #: from submission to end
    mean_jct: float
    #: 0 to 1: of the GPUs over the time of the replay
    utilisation: float
    preemptions: int
    #: from the first submission to the last end
    makespan: float
    #: STEPS values, rising: the least wait, …, the longest
    waits: tuple[float, ...] = ()
    jcts: tuple[float, ...] = ()
    #: GPUs in use, in equal steps over the time of both replays
    busy: tuple[float, ...] = ()
    #: jobs waiting, at the same steps
    queue: tuple[float, ...] = ()


@dataclass(frozen=True)
class Shift:
    """What it does to somebody: a user, jobs of one size, or one job."""

    name: str
    #: how many jobs this is about
    jobs: int
    #: mean from submission to end
    before: float
    after: float
    #: mean wait
    wait_before: float
    wait_after: float


@dataclass(frozen=True)
class Comparison:
    """Two replays of the same jobs."""

    before: Outcome
    after: Outcome
    #: of the first submission, and seconds between two points of `busy` and `queue`
    begins: float
    step: float
    #: jobs that end sooner or later by more than a minute, and those that do not
    sooner: int
    later: int
    same: int
    #: users, the largest gain in GPU-weighted time first
    users: tuple[Shift, ...] = ()
    #: by GPUs asked for, the smallest first
    sizes: tuple[Shift, ...] = ()
    #: jobs that change most, by `id name`; a few of each sign
    jobs: tuple[Shift, ...] = ()
    #: jobs by how much sooner or later they end: sooner by more than the last of `BOUNDS`, …, by
    #: more than the first, the same, later by more than the first, …, by more than the last
    changes: tuple[int, ...] = ()
    #: STEPS values, rising: seconds by which jobs end later; below zero: sooner
    delays: tuple[float, ...] = ()
    #: seconds from submission to end, as it was and instead, of some of the jobs, evenly chosen
    pairs: tuple[tuple[float, float], ...] = ()
    #: what the answer rests on, each a sentence: lengths that are believed, jobs left out …
    notices: tuple[str, ...] = ()
