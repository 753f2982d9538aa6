"""Why a job waits or is as it is, and what would help, as values."""

from __future__ import annotations

from dataclasses import dataclass, field

from dovetail.model.live import Labels


@dataclass(frozen=True)
class Blame:
    """A job in front, and its share of the reason why another one waits."""

    job: int
    name: str
    owner: str
    #: waiting, running …
    state: str
    gpus: float
    #: 0 to 1; all of them together are 1
    share: float
    #: its number as lists have it: `7`, or `12.3` for a member of an array
    label: str


@dataclass(frozen=True)
class Instead:
    """Something that would help: tried on a fork of the scheduler, so that it is true."""

    #: `4 cores instead of 16`
    change: str
    #: seconds until it would start; 0: now
    starts_in: float
    #: seconds sooner than as it is; None: it is not known when it starts as it is
    sooner: float | None = None
    #: jobs that would be stopped for it
    stops: tuple[int, ...] = ()


@dataclass(frozen=True)
class Why:
    """The answer to `why`."""

    job: int
    #: its number as lists have it: `7`, or `12.3` for a member of an array
    label: str
    name: str
    state: str
    #: one word for the binding cause, and one sentence
    cause: str
    text: str
    unblock: str = ""
    blame: tuple[Blame, ...] = ()
    instead: tuple[Instead, ...] = ()
    #: why it was last stopped for others; empty: it was not
    stopped: str = ""
    #: from whom it has what it runs on, and what becomes of it when they want it; empty: nobody
    loan: str = ""
    #: why it has the CPU and memory it has; empty: it has none
    grant: str = ""
    #: of the jobs that would be stopped for it
    labels: Labels = field(default_factory=dict)
