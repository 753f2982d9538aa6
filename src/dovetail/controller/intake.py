"""Turns what engines report and what people ask into events, and notes the rows that change.

Nothing is decided here and nothing is done: this is the only way into a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dovetail.controller.commands import Cancel, Drain, Hold, Release, Submit, Undrain
from dovetail.controller.journal import Entry
from dovetail.controller.roster import HELD, Live, Roster
from dovetail.core.registry import nearest
from dovetail.core.scheduler import Scheduler
from dovetail.executors.protocol import (
    Advanced,
    Closed,
    Ended,
    Fate,
    Fault,
    Opened,
    Paused,
    Report,
    Running,
)
from dovetail.model.errors import UserError
from dovetail.model.event import (
    Cancelled,
    Event,
    Failed,
    Finished,
    NodeDraining,
    NodeUp,
    Offered,
    Progressed,
    Started,
    Stopped,
    Submitted,
    Withheld,
)
from dovetail.model.job import Status

Backoff = Callable[[int], float]
"""Seconds to rest after the n-th failure."""

TELL_EVERY = 10.0
"""Seconds between two measurements of one job that the scheduler hears of."""


def doubling(first: float = 5.0, most: float = 600.0) -> Backoff:
    """Rests that double with each failure."""
    return lambda failures: min(most, first * 2.0 ** min(failures - 1, 30))


class Intake:
    """One batch in the making."""

    def __init__(
        self, entry: Entry, scheduler: Scheduler, roster: Roster, backoff: Backoff
    ) -> None:
        self.entry = entry
        self.scheduler = scheduler
        self.roster = roster
        self.backoff = backoff
        self.events: list[Event] = []

    # ---- from engines ------------------------------------------------------------------------

    def report(self, report: Report) -> None:
        """Something happened to a machine or to an attempt."""
        if isinstance(report, Closed):
            self.events.append(NodeDraining(report.node))
        elif isinstance(report, Opened):
            self.events.append(NodeUp(report.node))
        else:
            self._fate(report)

    def _fate(self, report: Fate) -> None:
        """News of earlier attempts means nothing any more."""
        live = self.roster.get(report.attempt.job)
        if live is None or live.run is None or live.run.attempt != report.attempt:
            self._orphan(report)
        elif isinstance(report, Ended):
            self._ended(live, report)
        elif isinstance(report, Advanced):
            self._advanced(live, report)
        elif isinstance(report, Running):
            self._running(live, report)
        elif isinstance(report, Paused):
            self.events.append(Stopped(live.id))

    def _orphan(self, report: Fate) -> None:
        if isinstance(report, Ended):
            orphan = self.roster.orphans.get(report.attempt.job)
            if orphan is not None and orphan.run and orphan.run.attempt == report.attempt:
                del self.roster.orphans[orphan.id]
                self._close(report)

    def _close(self, report: Ended) -> None:
        outcome = report.reason or _outcome(report)
        self.entry.attempt(*report.attempt, ended=self.entry.wall, outcome=outcome)

    def _running(self, live: Live, report: Running) -> None:
        assert live.run is not None
        if not live.run.confirmed:
            live.run.confirmed = True
            live.run.allocation = report.allocation
            changed = live.run.row(self.entry.wall)
            self.entry.attempt(*report.attempt, confirmed=1, launch=changed["launch"])
        if self.scheduler.jobs[live.id].status is Status.STARTING:
            self.events.append(Started(live.id, report.allocation))

    def _ended(self, live: Live, report: Ended) -> None:
        run, live.run = live.run, None
        assert run is not None
        self._close(report)
        live.code, live.signal = report.code, report.signal
        self.entry.job(live.id, code=report.code, signal=report.signal)
        if run.stopping and not _complete(live):
            # A job that saves its work when asked to stop ends with code 0 too.
            self.events.append(Stopped(live.id))
        elif report.code == 0:
            self.events.append(Finished(live.id))
        else:
            self._failed(live, report)

    def _failed(self, live: Live, report: Ended) -> None:
        reason = report.reason or _outcome(report)
        final, counts = report.fault is Fault.OTHERS, report.fault is not Fault.ENGINE
        self.events.append(Failed(live.id, reason, final=final, counts=counts))
        live.failures += counts
        self.entry.job(live.id, failures=live.failures)
        rest = self.backoff(live.failures if counts else live.attempts)
        again = not final and (not counts or live.failures <= live.submission.retries)
        if again and rest > 0:
            self.events.append(Withheld(live.id))
            live.pause = self.roster.resting[live.id] = self.entry.now + rest
            live.reason = f"it failed ({reason}) and is tried again after a rest of {rest:g} s"
            self.entry.job(live.id, pause=live.pause, reason=live.reason)

    def _advanced(self, live: Live, report: Advanced) -> None:
        """Steps as work: the believed length times the part that is done."""
        live.progress = report
        job = self.scheduler.jobs[live.id]
        known = report.total and 0 < job.expected < float("inf") and report.rate > 0
        if known and report.total and self.entry.now - live.told >= TELL_EVERY:
            live.told = self.entry.now
            per_step = job.expected / report.total
            self.events.append(Progressed(live.id, report.steps * per_step, report.rate * per_step))

    # ---- from people -------------------------------------------------------------------------

    def command(self, command: Any) -> Any:
        """What somebody asked for; returns their answer or refuses in one sentence."""
        return TAKE[type(command)](self, command)

    def _submit(self, command: Submit) -> list[int]:
        return [self._enter(each).id for each in command.submissions]

    def _enter(self, submission: Any) -> Live:
        live = Live(self.roster.next_id, submission, self.entry.wall, held=submission.held)
        live.state = HELD if live.held else "waiting"
        self.roster.next_id += 1
        self.roster[live.id] = live
        self.entry.new_jobs.append(live.row())
        if not live.held:
            self.events.append(Submitted(submission.spec(live.id, self.entry.now)))
        return live

    def _cancel(self, command: Cancel) -> None:
        for live in self._known(command.jobs):
            if live.id in self.scheduler.jobs:
                self.events.append(Cancelled(live.id))
            else:
                self._forget(live)

    def _forget(self, live: Live) -> None:
        """The scheduler never heard of it: it was held from the beginning."""
        self._recall(live)
        self.entry.job(live.id, state="cancelled", ended=self.entry.wall)
        del self.roster[live.id]

    def _hold(self, command: Hold) -> None:
        found = self._known(command.jobs)
        for live in found:
            job = self.scheduler.jobs.get(live.id)
            if job is not None and job.status is not Status.WAITING:
                raise UserError(f"job {live.id} is {job.status}: only a waiting job can be held")
        for live in found:
            live.held = True
            self._recall(live)
            self.events.append(Withheld(live.id))

    def _release(self, command: Release) -> None:
        for live in self._known(command.jobs):
            if live.held:
                live.held = False
                self._offer(live)

    def _offer(self, live: Live) -> None:
        if live.id in self.scheduler.jobs:
            self.events.append(Offered(live.id))
        else:
            self.events.append(Submitted(live.submission.spec(live.id, self.entry.now)))

    def rested(self) -> None:
        """Jobs that rested long enough after a failure may start again."""
        over = [job for job, until in self.roster.resting.items() if until <= self.entry.now]
        for live in map(self.roster.__getitem__, over):
            del self.roster.resting[live.id]
            live.pause, live.reason = None, ""
            self.entry.job(live.id, pause=None, reason="")
            if not live.held:
                self.events.append(Offered(live.id))

    def _known(self, numbers: Sequence[int]) -> list[Live]:
        for number in numbers:
            if number not in self.roster:
                raise UserError(f"no job {number} is waiting or running")
        return [self.roster[number] for number in numbers]

    def _recall(self, live: Live) -> None:
        """Take a submission out of this very batch again."""
        if live.id not in self.scheduler.jobs:
            self.events = [
                each
                for each in self.events
                if not (isinstance(each, Submitted) and each.spec.id == live.id)
            ]

    def _drain(self, command: Drain) -> None:
        self.events.append(NodeDraining(self._node(command.node)))

    def _undrain(self, command: Undrain) -> None:
        self.events.append(NodeUp(self._node(command.node)))

    def _node(self, name: str) -> int:
        names = [node.name for node in self.scheduler.cluster.nodes]
        if name not in names:
            raise UserError(f"no node is named {name!r}{nearest(name, names)}")
        return names.index(name)


TAKE: dict[type, Callable[[Intake, Any], Any]] = {
    Submit: Intake._submit,
    Cancel: Intake._cancel,
    Hold: Intake._hold,
    Release: Intake._release,
    Drain: Intake._drain,
    Undrain: Intake._undrain,
}


def _outcome(report: Ended) -> str:
    if report.signal is not None:
        return f"ended by signal {report.signal}"
    return "ended for an unknown reason" if report.code is None else f"exit code {report.code}"


def _complete(live: Live) -> bool:
    """Did it say itself that all its steps are done?"""
    told = live.progress
    return told is not None and bool(told.total) and told.steps >= (told.total or 0.0)
