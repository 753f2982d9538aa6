"""Turns what people ask into events and rows of a batch, or refuses it in one sentence.

A wrong request leaves no trace: everything is looked at before anything is changed. Who may ask for
what is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import select

from dovetail.controller import schema, submission
from dovetail.controller.commands import (
    Accepted,
    Cancel,
    Command,
    Drain,
    Hold,
    Release,
    Requeue,
    Submit,
    SubmitAll,
    Undrain,
)
from dovetail.controller.intake import Intake
from dovetail.controller.roster import HELD, OVER, REQUEUE, Live
from dovetail.controller.store import Row
from dovetail.controller.submission import Member, Submission
from dovetail.controller.trial import Trial
from dovetail.core.registry import nearest
from dovetail.model.errors import Missing, UserError
from dovetail.model.event import Cancelled, NodeDraining, NodeUp, Submitted, Withheld
from dovetail.model.job import Status

REQUEUED = "it was asked to stop and wait again"


class Wishes:
    """What people ask for within one batch."""

    def __init__(self, intake: Intake, trial: Trial) -> None:
        self.intake = intake
        self.trial = trial
        self.entry, self.roster, self.scheduler = intake.entry, intake.roster, intake.scheduler

    def take(self, command: Command) -> Any:
        """What somebody asked for; returns their answer or refuses in one sentence."""
        return TAKE[type(command)](self, command)

    # ---- new jobs ----------------------------------------------------------------------------

    def _submit(self, command: Submit) -> Accepted:
        return self._submit_all(SubmitAll((command,)))[0]

    def _submit_all(self, command: SubmitAll) -> tuple[Accepted, ...]:
        if not all(order.submissions for order in command.orders):
            raise UserError("there is nothing to submit")
        ended = self._ends([each for order in command.orders for each in order.submissions])
        accepted = tuple(map(self._accept, command.orders))
        for number, state in ended.items():
            self.roster.dependencies.ended(number, state)
        return accepted

    def _accept(self, order: Submit) -> Accepted:
        if not order.array:
            return Accepted(tuple(self._enter(each, None) for each in order.submissions))
        array, size = self._array(order.submissions), len(order.submissions)
        jobs = tuple(
            self._enter(each, Member(array, position if each.index is None else each.index, size))
            for position, each in enumerate(order.submissions)
        )
        return Accepted(jobs, array)

    def _ends(self, submissions: Sequence[Submission]) -> dict[int, str]:
        """How the jobs have ended that new ones are to run after; unknown ones are refused."""
        asked = {number for each in submissions for number in each.after} - self.roster.keys()
        ends = self.roster.states(asked) if asked else {}
        for number in sorted(asked - ends.keys()):
            raise UserError(f"there is no job {number} to run after")
        return ends

    def _array(self, submissions: Sequence[Submission]) -> int:
        number, first = self._number(), submissions[0]
        name = first.name or f"array-{number}"
        made = {"id": number, "name": name, "owner": first.owner, "size": len(submissions)}
        self.entry.new_arrays.append({**made, "submitted": self.entry.wall})
        return number

    def _number(self) -> int:
        self.roster.next_id += 1
        return self.roster.next_id - 1

    def _enter(self, wanted: Submission, member: Member | None) -> int:
        number, now = self._number(), self.entry.now
        name, wall = wanted.name or f"job-{number}", self.entry.wall
        live = Live(number, wanted, name, wanted.owner, wall, now, member, held=wanted.held)
        live.waits = set(wanted.after)
        live.state = HELD if live.held else "waiting"
        self.roster.enter(live)
        self.entry.new_jobs.append(live.row())
        if live.held or live.waits:
            self._keep(live)
        else:
            self.intake.events.append(Submitted(wanted.spec(number, now)))
        return number

    def _keep(self, live: Live) -> None:
        """It does not start yet; one that never could is told so now."""
        refusal = self.trial.refusal(live.submission.spec(live.id, self.entry.now))
        if refusal is None:
            self.roster.dependencies.register(live.id, live.waits)
        else:
            self.intake.forget(live, refusal, str(Status.REJECTED))

    # ---- jobs there are ----------------------------------------------------------------------

    def _cancel(self, command: Cancel) -> None:
        for live in self._known(command.jobs):
            if live.id in self.scheduler.jobs:
                self.intake.events.append(Cancelled(live.id))
            else:
                self._recall(live)
                self.intake.forget(live)

    def _hold(self, command: Hold) -> None:
        found = self._known(command.jobs)
        for live in found:
            job = self.scheduler.jobs.get(live.id)
            if job is not None and job.status is not Status.WAITING:
                raise UserError(f"job {live.label} is {job.status}: only a waiting job can be held")
        for live in found:
            live.held = True
            self._recall(live)
            if live.id in self.scheduler.jobs:
                self.intake.events.append(Withheld(live.id))
            else:
                live.state = HELD
                self.entry.job(live.id, state=HELD)

    def _release(self, command: Release) -> None:
        for live in self._known(command.jobs):
            if live.held:
                live.held = False
                if live.waits:
                    live.state = "waiting"
                    self.entry.job(live.id, state=live.state)
                self.intake.offer(live)

    def _requeue(self, command: Requeue) -> tuple[int, ...]:
        rows = {number: self._row(number) for number in command.jobs if number not in self.roster}
        for live in (self.roster[number] for number in command.jobs if number in self.roster):
            if live.run is None:
                raise UserError(f"job {live.label} does not run: it is {live.state} already")
        return tuple(
            self._again(rows[number]) if number in rows else self._stop(self.roster[number])
            for number in command.jobs
        )

    def _row(self, number: int) -> Row:
        jobs = schema.jobs
        rows = self.roster.store.rows(select(jobs).where(jobs.c.id == number))
        if not rows or rows[0]["state"] not in OVER:
            raise Missing(f"there is no job {number}")
        return rows[0]

    def _again(self, row: Row) -> int:
        """What has ended is a new job; what it had to wait for is over."""
        wanted = submission.read(row["submission"], row["secrets"])
        member = None
        if row["array"] is not None:
            member = self._place(int(row["array"]), int(row["index"]))
        return self._enter(replace(wanted, held=False, after=()), member)

    def _place(self, array: int, index: int) -> Member | None:
        found = select(schema.arrays.c.size).where(schema.arrays.c.id == array)
        rows = self.roster.store.rows(found)
        return Member(array, index, int(rows[0]["size"])) if rows else None

    def _stop(self, live: Live) -> int:
        self.intake.end_run(live, REQUEUE, REQUEUED)
        return live.id

    def _known(self, numbers: Sequence[int]) -> list[Live]:
        for number in numbers:
            if number not in self.roster:
                raise UserError(f"no job {number} is waiting or running")
        return [self.roster[number] for number in numbers]

    def _recall(self, live: Live) -> None:
        """Take a submission out of this very batch again."""
        if live.id not in self.scheduler.jobs:
            self.intake.events = [
                each
                for each in self.intake.events
                if not (isinstance(each, Submitted) and each.spec.id == live.id)
            ]

    # ---- nodes -------------------------------------------------------------------------------

    def _drain(self, command: Drain) -> None:
        self.intake.events.append(NodeDraining(self._node(command.node)))

    def _undrain(self, command: Undrain) -> None:
        self.intake.events.append(NodeUp(self._node(command.node)))

    def _node(self, name: str) -> int:
        names = [node.name for node in self.scheduler.cluster.nodes]
        if name not in names:
            raise Missing(f"no node is named {name!r}{nearest(name, names)}")
        return names.index(name)


TAKE: dict[type, Callable[[Wishes, Any], Any]] = {
    Submit: Wishes._submit,
    SubmitAll: Wishes._submit_all,
    Cancel: Wishes._cancel,
    Hold: Wishes._hold,
    Release: Wishes._release,
    Requeue: Wishes._requeue,
    Drain: Wishes._drain,
    Undrain: Wishes._undrain,
}
