"""The journal: what happened and what was decided, on disk before anything is done about it.

An entry is one transaction: the batch, the plan, and the rows of jobs and attempts they change.
Recovery takes the last snapshot and applies the recorded plans after it; nothing is decided again.
The journal does not know engines: what became of the effects is for the controller to find out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import delete, func, select

from dovetail.controller import records, schema
from dovetail.controller.collecting import keeping_all
from dovetail.controller.store import Row, Store
from dovetail.controller.timebase import Anchor, Moment
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

    def __init__(self, store: Store, every: int = 1000, keep: int = 1_000_000) -> None:
        self.store = store
        #: batches between snapshots: what a recovery must apply at most
        self.every = every
        #: batches kept for replays
        self.keep = keep
        self.sequence = self._last(schema.batches.c.sequence)
        self._stored = self._last(schema.snapshots.c.sequence)

    def _last(self, column: Any) -> int:
        rows = self.store.rows(select(func.max(column).label("last")))
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
        """Store the scheduler's state once enough batches have come since the last time."""
        if self.sequence - self._stored >= self.every:
            self.snapshot(scheduler)

    def snapshot(self, scheduler: Scheduler) -> None:
        """Store the scheduler's state as of the last entry; forget what nobody needs any more."""
        if self.sequence == self._stored:
            return
        with keeping_all():
            state = records.compact(scheduler.snapshot())
        with self.store.transaction():
            self.store.add(schema.snapshots, [{"sequence": self.sequence, "state": state}])
        self._stored = self.sequence
        self._prune()

    def _prune(self) -> None:
        """Drop batches beyond the limit, and snapshots that neither recovery nor replay needs."""
        held = self.snapshots()
        first = max((at for at in held if at <= self.sequence - self.keep), default=0)
        wanted = {first, self.since(), *held[-2:]}
        # Some in between, so that the limit can move on later.
        for at in held:
            last = max(other for other in wanted if other <= max(at, first))
            if at - last >= self.keep // 4:
                wanted.add(at)
        dropped = [at for at in held if at not in wanted]
        if not first and not dropped:
            return
        with self.store.transaction():
            for table in (schema.batches, schema.plans) if first else ():
                self.store.run(delete(table).where(table.c.sequence <= first))
            old = schema.snapshots.c.sequence.in_(dropped)
            self.store.run(delete(schema.snapshots).where(old))

    # ---- reading -----------------------------------------------------------------------------

    def recorded(self, after: int) -> Iterator[Recorded]:
        """Batches and plans after a sequence number, in order."""
        while True:
            page = self.store.rows(
                select(schema.batches, schema.plans.c.actions, schema.plans.c.wake_at)
                .join(schema.plans, schema.plans.c.sequence == schema.batches.c.sequence)
                .where(schema.batches.c.sequence > after)
                .order_by(schema.batches.c.sequence)
                .limit(PAGE)
            )
            for row in page:
                plan = records.read_plan(row["actions"], row["wake_at"])
                yield Recorded(row["sequence"], row["now"], records.read(row["events"]), plan)
            if len(page) < PAGE:
                return
            after = page[-1]["sequence"]

    def snapshots(self) -> list[int]:
        """Sequence numbers of the snapshots there are, oldest first."""
        return [int(row["sequence"]) for row in self.store.rows(_SNAPSHOTS)]

    def state(self, sequence: int) -> dict[str, Any]:
        """The snapshot with this number."""
        found = schema.snapshots.c.sequence == sequence
        rows = self.store.rows(select(schema.snapshots.c.state).where(found))
        state: dict[str, Any] = json.loads(rows[0]["state"])
        return state

    def last_moment(self) -> Moment | None:
        """When the last batch was taken in, by both clocks."""
        found = schema.batches.c.sequence == self.sequence
        rows = self.store.rows(select(schema.batches.c.now, schema.batches.c.wall).where(found))
        return Moment(rows[0]["now"], rows[0]["wall"]) if rows else None

    # ---- recovery ----------------------------------------------------------------------------

    def recover(self, make: Callable[[], Scheduler]) -> tuple[Scheduler, Plan]:
        """The scheduler as it was, and the last plan: its effects are the ones in doubt."""
        scheduler, plan, start = make(), EMPTY, self._stored
        try:
            if start:
                scheduler.restore(self.state(start))
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
        state = records.compact(scheduler.snapshot())
        old = schema.snapshots.c.sequence == self.sequence
        with self.store.transaction():
            self.store.run(delete(schema.snapshots).where(old))
            self.store.add(schema.snapshots, [{"sequence": self.sequence, "state": state}])
            self.store.note({"parts": parts, "since": str(self.sequence)})
        self._stored = self.sequence

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


_SNAPSHOTS = select(schema.snapshots.c.sequence).order_by(schema.snapshots.c.sequence)


def _batch(sequence: int, entry: Entry) -> Row:
    events = records.written(entry.events)
    return {"sequence": sequence, "now": entry.now, "wall": entry.wall, "events": events}


def _plan(sequence: int, plan: Plan) -> Row:
    actions = records.written(plan.actions)
    return {"sequence": sequence, "actions": actions, "wake_at": plan.wake_at}
