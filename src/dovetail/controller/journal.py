"""The journal: what happened and what was decided, on disk before anything is done about it.

An entry is one transaction: the batch, the plan, and the rows of jobs and attempts they change.
Recovery takes the last snapshot and applies the recorded plans after it; nothing is decided again.
The journal does not know engines: what became of the effects is for the controller to find out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import delete, func, select

from dovetail.controller import records, schema
from dovetail.controller.snapshots import Snapshots
from dovetail.controller.store import Row, Store
from dovetail.controller.timebase import Anchor, Moment
from dovetail.core.collecting import keeping_all
from dovetail.core.scheduler import Scheduler, Unlike
from dovetail.model.errors import OverCommitted, UserError
from dovetail.model.event import Event
from dovetail.model.plan import EMPTY, Plan

PAGE = 500
"""Batches read at once: a journal may be longer than memory."""


class Recorded(NamedTuple):
    """One batch and the plan that was made for it."""

    sequence: int
    now: float
    events: list[Event]
    plan: Plan


@dataclass
class Entry:
    """What one turn of the controller writes, all of it or nothing."""

    now: float
    wall: float
    events: Sequence[Event] = ()
    #: None: only rows change and the scheduler was not asked
    plan: Plan | None = None
    new_arrays: list[Row] = field(default_factory=list)
    new_jobs: list[Row] = field(default_factory=list)
    jobs: dict[int, Row] = field(default_factory=dict)
    new_attempts: list[Row] = field(default_factory=list)
    attempts: dict[tuple[int, int], Row] = field(default_factory=dict)

    def job(self, number: int, **values: Any) -> None:
        """Change columns of a job."""
        self.jobs.setdefault(number, {"id": number}).update(values)

    def end(self, number: int, state: str, reason: str) -> None:
        """A job is over."""
        over = {"ended": self.wall, "over": self.now}
        self.job(number, state=state, reason=reason, pause=None, **over)

    def attempt(self, job: int, number: int, **values: Any) -> None:
        """Change columns of an attempt."""
        row = self.attempts.setdefault((job, number), {"job": job, "number": number})
        row.update(values)

    def steps(self) -> list[Row]:
        """Changes of states and of what jobs hold; beginnings and ends are in their own rows."""
        found: dict[int, Row] = {}

        def step(job: int, **values: Any) -> None:
            nothing = {"job": job, "at": self.wall, "state": "", "attempt": None, "launch": ""}
            found.setdefault(job, nothing).update(values)

        for row in self.new_jobs:
            if row["state"] != "waiting":
                step(row["id"], state=row["state"])
        for row in self.jobs.values():
            if "state" in row and "ended" not in row:
                step(row["id"], state=row["state"])
        for row in (*self.new_attempts, *self.attempts.values()):
            if "launch" in row:
                step(row["job"], attempt=row["number"], launch=row["launch"])
        return list(found.values())

    def __bool__(self) -> bool:
        rows = (self.new_jobs, self.jobs, self.new_attempts, self.attempts)
        return self.plan is not None or any(rows)


class Journal:
    """Batches and plans in the order they came, with snapshots in between."""

    def __init__(
        self,
        store: Store,
        every: int = 1000,
        keep: int = 1_000_000,
        beside: Executor | None = None,
    ) -> None:
        self.store = store
        self.snapshots = Snapshots(store, beside)
        #: batches between snapshots: what a recovery must apply at most
        self.every = every
        #: batches kept for replays
        self.keep = keep
        self.sequence = self._last()
        #: batches up to this one are to go
        self._surplus = 0

    def _last(self) -> int:
        rows = self.store.rows(select(func.max(schema.batches.c.sequence).label("last")))
        return int(rows[0]["last"] or 0)

    # ---- writing -----------------------------------------------------------------------------

    def write(self, entry: Entry) -> None:
        """Put an entry on disk. When this returns it happened; when it raises it did not."""
        store, sequence = self.store, self.sequence
        with store.transaction():
            if entry.plan is not None:
                sequence += 1
                store.add(schema.batches, [_batch(sequence, entry)])
                store.add(schema.plans, [_plan(sequence, entry.plan)])
            store.add(schema.arrays, entry.new_arrays)
            store.add(schema.jobs, entry.new_jobs)
            store.change(schema.jobs, ("id",), list(entry.jobs.values()))
            store.add(schema.attempts, entry.new_attempts)
            store.change(schema.attempts, ("job", "number"), list(entry.attempts.values()))
            store.add(schema.steps, entry.steps())
        self.sequence = sequence

    def snapshot_if_due(self, scheduler: Scheduler) -> None:
        """Begin to store the scheduler's state once enough batches have come since the last."""
        if self.sequence - self.snapshots.last >= self.every and not self.snapshots.busy:
            with keeping_all():
                self.snapshots.begin(self.sequence, scheduler.image())

    def snapshot(self, scheduler: Scheduler) -> None:
        """Store the scheduler's state as of the last entry, now."""
        if self.sequence > self.snapshots.last:
            with keeping_all(), self.store.transaction():
                self.snapshots.put(self.sequence, scheduler.image())
            self._prune()

    def tend(self) -> None:
        """Take the next small step of what is more than a turn's work."""
        if self.snapshots.tend():
            self._prune()
        elif self._surplus:
            self._shorten()

    def _prune(self) -> None:
        """Give up batches beyond the limit, and snapshots neither recovery nor replay needs."""
        held = self.snapshots.numbers()
        first = max((at for at in held if at <= self.sequence - self.keep), default=0)
        wanted = {first, self.since(), *held[-2:]}
        # Some in between, so that the limit can move on later.
        for at in held:
            last = max(other for other in wanted if other <= max(at, first))
            if at - last >= self.keep // 4:
                wanted.add(at)
        self._surplus = first
        dropped = [at for at in held if at not in wanted]
        if dropped:
            with self.store.transaction():
                self.snapshots.drop(dropped)

    def _shorten(self) -> None:
        """Drop some of the batches beyond the limit."""
        column = schema.batches.c.sequence
        oldest = self.store.rows(select(func.min(column).label("first")))[0]["first"]
        last = min(self._surplus, int(oldest or self._surplus) + PAGE)
        with self.store.transaction():
            for table in (schema.batches, schema.plans):
                self.store.run(delete(table).where(table.c.sequence <= last))
        if last == self._surplus:
            self._surplus = 0

    def close(self) -> None:
        """Write nothing any more."""
        self.snapshots.close()

    # ---- reading -----------------------------------------------------------------------------

    def recorded(self, after: int) -> Iterator[Recorded]:
        """Batches and plans after a sequence number, in order."""
        while True:
            page = self.store.rows(
                select(
                    schema.batches,
                    schema.plans.c.actions,
                    schema.plans.c.wake_at,
                    schema.plans.c.asked,
                )
                .join(schema.plans, schema.plans.c.sequence == schema.batches.c.sequence)
                .where(schema.batches.c.sequence > after)
                .order_by(schema.batches.c.sequence)
                .limit(PAGE)
            )
            for row in page:
                plan = records.read_plan(row["actions"], row["wake_at"], row["asked"])
                yield Recorded(row["sequence"], row["now"], records.read(row["events"]), plan)
            if len(page) < PAGE:
                return
            after = page[-1]["sequence"]

    def last_moment(self) -> Moment | None:
        """When the last batch was taken in, by both clocks."""
        found = schema.batches.c.sequence == self.sequence
        rows = self.store.rows(select(schema.batches.c.now, schema.batches.c.wall).where(found))
        return Moment(rows[0]["now"], rows[0]["wall"]) if rows else None

    # ---- recovery ----------------------------------------------------------------------------

    def recover(self, make: Callable[[], Scheduler]) -> tuple[Scheduler, Plan]:
        """The scheduler as it was, and the last plan: its effects are the ones in doubt."""
        scheduler, plan, start = make(), EMPTY, self.snapshots.last
        try:
            if start:
                scheduler.restore(self.snapshots.state(start))
            for each in self.recorded(start - 1 if start else 0):
                plan = each.plan
                if each.sequence > start:
                    scheduler.apply(each.now, each.events, each.plan)
        except (Unlike, OverCommitted, KeyError, IndexError, ValueError) as error:
            raise UserError(
                f"{self.store.where}: its journal does not fit this cluster and policy "
                f"({error}); start with the ones it was written with, or choose another data folder"
            ) from error
        return scheduler, plan

    def hand_over(self, scheduler: Scheduler, parts: str) -> None:
        """From here on a scheduler of other parts decides: recovery and replay begin with it."""
        if not self.sequence:
            self.remember(parts=parts)
            return
        with self.store.transaction():
            self.snapshots.put(self.sequence, scheduler.image())
            self.store.note({"parts": parts, "since": str(self.sequence)})

    def remember(self, **values: str) -> None:
        """What decides and about which machines, for the next start and for replays."""
        news = {key: text for key, text in values.items() if self.store.noted(key) != text}
        if news:
            with self.store.transaction():
                self.store.note(news)

    def since(self) -> int:
        """The last batch that schedulers of other parts decided."""
        return int(self.store.noted("since") or 0)

    def anchor(self) -> Anchor | None:
        """How the clock of the last run related to the time of decisions."""
        text = self.store.noted("anchor")
        return Anchor(**json.loads(text)) if text else None

    def drop_anchor(self, anchor: Anchor) -> None:
        """Remember how today's clock relates to the time of decisions."""
        with self.store.transaction():
            self.store.note({"anchor": records.compact(vars(anchor))})


def _batch(sequence: int, entry: Entry) -> Row:
    events = records.written(entry.events)
    return {"sequence": sequence, "now": entry.now, "wall": entry.wall, "events": events}


def _plan(sequence: int, plan: Plan) -> Row:
    actions = records.written(plan.actions)
    asked = records.written_asked(plan.asked)
    return {"sequence": sequence, "actions": actions, "wake_at": plan.wake_at, "asked": asked}
