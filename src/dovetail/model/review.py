"""What became of a stretch of time: use, waits, GPU-hours by what they were good for, as values.

`GET /v1/review` answers a `Review`. Moments are wall time since 1970, waits are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dovetail.model.live import Labels


@dataclass(frozen=True)
class Spent:
    """GPU-hours by what became of them."""

    cause: str
    gpu_hours: float
    wasted: bool
    #: one sentence: what is counted here
    about: str


@dataclass(frozen=True)
class Waits:
    """How long some jobs waited for their first start: those of a user, or of a size."""

    name: str
    #: jobs that were there, and those of them that still wait
    jobs: int
    waiting: int
    #: of those that started in this time; None: none did
    mean: float | None
    median: float | None
    high: float | None
    gpu_hours: float
    #: of these, spent on failures, stops and cancelled work
    wasted: float


@dataclass(frozen=True)
class Waited:
    """A job that waited long."""

    job: int
    name: str
    user: str
    gpus: float
    wait: float
    #: does it still wait?
    still: bool
    why: str


@dataclass(frozen=True)
class Review:
    """A stretch of time, from `since` to `until`."""

    since: float
    until: float
    policy: str
    gpus: int
    #: jobs by what became of them
    submitted: int
    done: int
    failed: int
    cancelled: int
    #: seconds between two values of `busy` and `wanted`: GPUs held, and asked for by who waits
    step: float
    busy: tuple[float, ...] = ()
    wanted: tuple[float, ...] = ()
    spent: tuple[Spent, ...] = ()
    users: tuple[Waits, ...] = ()
    sizes: tuple[Waits, ...] = ()
    longest: tuple[Waited, ...] = ()
    #: of the jobs that waited longest
    labels: Labels = field(default_factory=dict)
