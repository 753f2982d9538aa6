"""A recorded or generated workload: jobs in submit order, each with the truth about it.

The truth (how long it runs, when it fails) is for the simulated world alone; the scheduler gets
the `spec`. Times are seconds; `origin` says what second 0 was, where the trace knows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from dovetail.model.job import JobSpec


class TraceJob(NamedTuple):
    """A job and what really happens to it."""

    spec: JobSpec
    #: seconds of work at rate 1
    work: float
    #: seconds after which each failing attempt breaks; attempts beyond the list do not fail
    breaks: tuple[float, ...] = ()
    #: how it ended when it was recorded: finished, failed or cancelled
    outcome: str = "finished"


@dataclass(slots=True)
class Trace:
    """Jobs in order of (submit, id), to be iterated once; `count` is None when unknown."""

    name: str
    format: str
    jobs: Iterable[TraceJob]
    count: int | None = None
    #: the moment of second 0
    origin: datetime | None = None
    #: things the reader did that the person should know
    notices: list[str] = field(default_factory=list)
