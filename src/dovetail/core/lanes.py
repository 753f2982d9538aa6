"""The queue: one lane per request, so that one look at a lane's ends stands for all its jobs.

Free capacity never rises along a walk, so of jobs with the same request every lane admits a
prefix: only heads matter. Waiting jobs are a heap per lane with lazy deletion; running jobs that
may be displaced are a sorted list, which lanes of one slope share. Keys of running jobs drift at
that slope, so the stored key is the drift's constant and their order never needs repair.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Any

from dovetail.core.draft import Option
from dovetail.model.job import Job
from dovetail.model.quota import Limit
from dovetail.model.request import Request

Entry = tuple[Any, float, int, Job]
"""(key, submit, id, job): ids are unique, so jobs themselves are never compared."""


class Lane:
    """All jobs of one request (and of one owner, where the ordering or quotas tell them apart)."""

    __slots__ = (
        "accounts",
        "dead",
        "options",
        "refusal",
        "request",
        "running",
        "size",
        "slope",
        "tenant",
        "waiting",
    )

    def __init__(self, options: tuple[Option, ...], slope: float, tenant: str) -> None:
        self.options = options
        #: whole devices of the smallest option: what must be idle before a search makes sense
        self.size = min((option.whole_gpus for option in options), default=0)
        self.request: Request | None = None
        #: what its jobs count for that has a limit
        self.accounts: tuple[tuple[str, Limit], ...] = ()
        #: why jobs of this lane can never run
        self.refusal: str | None = None
        self.slope = slope
        self.tenant = tenant
        #: heap of live and dead entries; the first one is always live
        self.waiting: list[Entry] = []
        self.dead = 0
        #: sorted; keys are key - slope * time. The list of all lanes with this slope
        self.running: list[Entry] = []

    def push(self, job: Job, key: Any) -> None:
        """Let a job wait."""
        entry = (key, job.spec.submit, job.spec.id, job)
        job.lane, job.entry = self, entry
        heappush(self.waiting, entry)

    def pull(self, job: Job) -> None:
        """A job no longer waits."""
        job.entry = None
        self.dead += 1
        self.bury()

    def bury(self) -> None:
        """Take dead entries off the top, and rebuild when they have become many."""
        waiting = self.waiting
        while waiting and waiting[0][3].entry is not waiting[0]:
            heappop(waiting)
            self.dead -= 1
        if self.dead > 16 + len(waiting) // 2:
            self.waiting = [entry for entry in waiting if entry[3].entry is entry]
            heapify(self.waiting)
            self.dead = 0

    def drop(self, job: Job) -> None:
        """A listed running job left."""
        running = self.running
        del running[bisect_left(running, job.entry)]
        job.entry = None

    def in_order(self) -> Iterator[Entry]:
        """Waiting entries, first to last, without disturbing the heap."""
        waiting = self.waiting
        if not waiting:
            return
        frontier: list[tuple[Entry, int]] = [(waiting[0], 0)]
        size = len(waiting)
        while frontier:
            entry, index = heappop(frontier)
            if entry[3].entry is entry:
                yield entry
            for child in (2 * index + 1, 2 * index + 2):
                if child < size:
                    heappush(frontier, (waiting[child], child))
