"""How long jobs that have ended are remembered, and how they are forgotten without a hurry.

What engines keep of them goes first, in a thread of its own since there may be much; the rows go
when that is gone, so that whatever dies in between is found again. Age counts on the time base of
decisions: a wall clock that jumps forgets nobody.
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from sqlalchemy import delete, func, select

from dovetail.controller import schema
from dovetail.controller.store import Store
from dovetail.executors.protocol import Attempt, Executor

DAY = 86400.0
SOME = 100
"""Jobs forgotten at once."""


@dataclass(frozen=True)
class Retention:
    """Jobs that have ended are kept as long as both allow it."""

    days: float = 90.0
    jobs: int = 200_000
    #: seconds between two looks
    every: float = 60.0


class Forgetting:
    """Forgets a few jobs at a time."""

    def __init__(self, store: Store, executor: Executor, rule: Retention) -> None:
        self.store = store
        self.executor = executor
        self.rule = rule
        self._next = float("-inf")
        self._thread = ThreadPoolExecutor(1, "forgetting")
        #: jobs whose folders are being removed
        self._leaving: tuple[list[int], Future[None]] | None = None

    def tend(self, now: float, needed: Collection[int]) -> None:
        """Take the next small step, if there is one; `needed` are jobs that must stay."""
        if self._leaving is not None:
            numbers, removal = self._leaving
            if removal.done():
                self._leaving = None
                self._forget(numbers)
        elif now >= self._next:
            numbers = self._old(now, needed)
            if numbers:
                removal = self._thread.submit(self.executor.forget, self._attempts(numbers))
                self._leaving = numbers, removal
            else:
                self._next = now + self.rule.every

    def close(self) -> None:
        """Wait for the folders that are being removed."""
        self._thread.shutdown()

    def _old(self, now: float, needed: Collection[int]) -> list[int]:
        jobs, store = schema.jobs.c, self.store
        # The newest number stays: it is where counting goes on.
        newest = select(func.max(jobs.id)).scalar_subquery()
        ended = select(jobs.id).where(jobs.over.is_not(None), jobs.id != newest)
        oldest = ended.order_by(jobs.over, jobs.id)
        aged = store.rows(oldest.where(jobs.over < now - self.rule.days * DAY).limit(SOME))
        if not aged:
            counted = store.rows(select(func.count(jobs.over).label("all")))
            excess = int(counted[0]["all"]) - self.rule.jobs
            aged = store.rows(oldest.limit(min(excess, SOME))) if excess > 0 else []
        return [int(row["id"]) for row in aged if row["id"] not in needed]

    def _attempts(self, numbers: list[int]) -> list[Attempt]:
        runs = schema.attempts.c
        rows = self.store.rows(select(runs.job, runs.number).where(runs.job.in_(numbers)))
        return [Attempt(int(row["job"]), int(row["number"])) for row in rows]

    def _forget(self, numbers: list[int]) -> None:
        jobs, runs, arrays = schema.jobs.c, schema.attempts.c, schema.arrays.c
        steps = schema.steps.c
        with self.store.transaction():
            self.store.run(delete(schema.steps).where(steps.job.in_(numbers)))
            self.store.run(delete(schema.attempts).where(runs.job.in_(numbers)))
            self.store.run(delete(schema.jobs).where(jobs.id.in_(numbers)))
            members = select(jobs.array).where(jobs.array.is_not(None))
            self.store.run(delete(schema.arrays).where(arrays.id.not_in(members)))
