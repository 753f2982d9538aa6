"""One batch in the making: turns what engines report, and time that is up, into events and rows.

Nothing is decided here and nothing is done. What people ask comes in through `wishes`.
"""

from __future__ import annotations

import logging

from dovetail.controller.circumstances import Circumstances
from dovetail.controller.dependencies import DONE
from dovetail.controller.journal import Entry
from dovetail.controller.roster import FAIL, REQUEUE, Live, Roster, Run
from dovetail.core.scheduler import Scheduler
from dovetail.executors.protocol import (
    Advanced,
    Closed,
    Ended,
    Fate,
    Fault,
    Hindered,
    Opened,
    Paused,
    Report,
    Running,
    Saved,
)
from dovetail.model.event import (
    Checkpointed,
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

log = logging.getLogger(__name__)

REBOOTED = "the machine was restarted while it ran"

COULD_NOT = "it could not be "
"""How it begins what is said of a job that an engine cannot do something to."""
INSTEAD = {"suspend": "it is stopped instead", "resize": "it keeps what it has"}
"""What comes of deeds that are given up."""
DEEDS = {"stop": "stopped", "suspend": "suspended", "resume": "resumed", "resize": "resized"}

TELL_EVERY = 10.0
"""Seconds between two measurements of one job that the scheduler hears of."""


class Intake:
    """One batch in the making."""

    def __init__(
        self, entry: Entry, scheduler: Scheduler, roster: Roster, under: Circumstances
    ) -> None:
        self.entry = entry
        self.scheduler = scheduler
        self.roster = roster
        self.under = under
        self.events: list[Event] = []
        #: jobs whose attempts we end ourselves
        self.stops: list[Live] = []

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
        elif isinstance(report, Saved):
            self._saved(live)
        elif isinstance(report, Hindered):
            self._hindered(live, report)
        elif isinstance(report, Paused):
            self._eased(live)
            self._clock_out(live, live.run)
            self.events.append(Stopped(live.id))

    def _hindered(self, live: Live, report: Hindered) -> None:
        """People are told; who cannot be suspended is stopped, as others wait for its devices."""
        then = "this is tried again"
        if report.given_up:
            then = INSTEAD[report.deed]
        why = f"{COULD_NOT}{DEEDS[report.deed]} ({report.reason}); {then}"
        log.warning("job %s: %s", live.label, why)
        self.note(live, why)
        if report.given_up and report.deed == "suspend":
            self.stops.append(live)

    def _eased(self, live: Live) -> None:
        """It could be done after all."""
        if live.reason.startswith(COULD_NOT):
            self.note(live, "")

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
        run = live.run
        self._eased(live)
        if not run.confirmed or run.allocation != report.allocation:
            # It may have kept what it had where something else was decided.
            run.confirmed, run.allocation = True, report.allocation
            self.entry.attempt(*report.attempt, confirmed=1, launch=run.launch())
        if run.since is None:
            self.roster.clock_in(live, self.entry.now)
            self.entry.attempt(*report.attempt, since=run.since)
        if self.scheduler.jobs[live.id].status is Status.STARTING:
            self.events.append(Started(live.id, report.allocation))

    def _clock_out(self, live: Live, run: Run) -> None:
        """Count the seconds it ran; they are known only as long as the machine stayed up."""
        if run.since is not None and run.survived(self.under.boot):
            self.roster.clock_out(live, run, self.entry.now)
            self.entry.job(live.id, ran=live.ran)
            self.entry.attempt(*run.attempt, since=None)
        self.roster.limits.pop(live.id, None)

    def _ended(self, live: Live, report: Ended) -> None:
        run = live.run
        assert run is not None
        self._close(report)
        self._clock_out(live, run)
        live.run, live.code, live.signal = None, report.code, report.signal
        self.entry.job(live.id, code=report.code, signal=report.signal)
        if _complete(live) and report.code == 0:
            self.events.append(Finished(live.id))
        elif run.fate:
            self._fulfil(live, run.fate)
        elif run.stopping:
            # A job that saves its work when asked to stop ends with code 0 too.
            self._eased(live)
            self.events.append(Stopped(live.id))
            if self.scheduler.jobs[live.id].residual is not None:
                # It was to stand still and is gone instead, with what it would have kept.
                self.events.append(Stopped(live.id))
        elif report.code == 0:
            self.events.append(Finished(live.id))
        elif report.fault is Fault.ENGINE:
            self.events.append(Stopped(live.id))
            self._rest(live, f"it was lost ({report.reason})", live.attempts)
        elif report.fault is Fault.OTHERS:
            self.note(live, report.reason)
            self._fulfil(live, FAIL)
        elif not run.survived(self.under.boot) and report.code is report.signal is None:
            self._rebooted(live)
        else:
            self._failed(live, report)

    def _rebooted(self, live: Live) -> None:
        """It went down with the machine: its owner has said what that means."""
        self.note(live, REBOOTED)
        self._fulfil(live, live.submission.on_reboot)

    def _fulfil(self, live: Live, fate: str) -> None:
        if fate == REQUEUE:
            self.events.append(Stopped(live.id))
        else:
            self.events.append(Failed(live.id, live.reason, final=True))

    def note(self, live: Live, reason: str) -> None:
        """Say something about a job that people can read."""
        live.reason = reason
        self.entry.job(live.id, reason=reason)

    def end_run(self, live: Live, fate: str, reason: str) -> None:
        """Stop a job's attempt ourselves; once it has ended its fate is fulfilled."""
        run = live.run
        if run is None or run.fate:
            return
        run.fate = fate
        self.roster.limits.pop(live.id, None)
        self.entry.attempt(*run.attempt, fate=fate)
        self.note(live, reason)
        self.stops.append(live)
        if self.under.instant:
            # Nobody will confirm that it has ended.
            self._clock_out(live, run)
            self._fulfil(live, fate)

    def _failed(self, live: Live, report: Ended) -> None:
        reason = report.reason or _outcome(report)
        self.events.append(Failed(live.id, reason))
        live.failures += 1
        self.entry.job(live.id, failures=live.failures)
        if live.failures <= live.submission.retries:
            self._rest(live, f"it failed ({reason})", live.failures)

    def _rest(self, live: Live, why: str, times: int) -> None:
        """Before it is tried again, longer each time."""
        rest = self.under.backoff(times)
        if rest > 0:
            self.events.append(Withheld(live.id))
            live.pause = self.roster.resting[live.id] = self.entry.now + rest
            live.reason = f"{why} and is tried again after a rest of {rest:g} s"
            self.entry.job(live.id, pause=live.pause, reason=live.reason)

    def _advanced(self, live: Live, report: Advanced) -> None:
        """Steps as work: what they take here is what all of them will, wherever it runs next."""
        live.progress = report
        job = self.scheduler.jobs[live.id]
        if report.total and report.rate > 0 and self.entry.now - live.told >= TELL_EVERY:
            live.told = self.entry.now
            step = job.rate / report.rate
            work, whole = report.steps * step, report.total * step
            self.events.append(Progressed(live.id, work, job.rate, whole))

    def _saved(self, live: Live) -> None:
        """A job that saves all the time is believed, but not written down each time."""
        if live.saved is None or abs(self.entry.wall - live.saved) >= TELL_EVERY:
            live.saved = self.entry.wall
            self.entry.job(live.id, saved=live.saved)
            self.events.append(Checkpointed(live.id))

    # ---- from the clock ----------------------------------------------------------------------

    def timed(self) -> None:
        """Rests that are over, and jobs that have run as long as they may."""
        now = self.entry.now
        for number in [job for job, until in self.roster.resting.items() if until <= now]:
            self._rested(self.roster[number])
        for number in [job for job, at in self.roster.limits.items() if at <= now]:
            live = self.roster[number]
            limit = seconds(live.submission.time_limit or 0.0)
            self.end_run(live, FAIL, f"its time limit of {limit} is over")

    def _rested(self, live: Live) -> None:
        del self.roster.resting[live.id]
        live.pause, live.reason = None, ""
        self.entry.job(live.id, pause=None, reason="")
        if not live.held:
            self.events.append(Offered(live.id))

    # ---- from the ends of other jobs ---------------------------------------------------------

    def followed(self) -> None:
        """Tell those who waited for jobs that these have ended."""
        dependencies = self.roster.dependencies
        while dependencies.news:
            number, state = dependencies.news.popleft()
            for waiting in dependencies.waiting_for(number):
                live = self.roster.get(waiting)
                if live is None:
                    continue
                if state == DONE or live.submission.after_any:
                    live.waits.discard(number)
                    self.offer(live)
                else:
                    named = self.roster.called(number)
                    self.forget(live, f"job {named}, which it was to run after, is {state}")

    def offer(self, live: Live) -> None:
        """Let the scheduler know a job, unless something still keeps it from starting."""
        if live.held or live.waits:
            return
        if live.id in self.scheduler.jobs:
            self.events.append(Offered(live.id))
        else:
            now = self.entry.now
            self.events.append(Submitted(live.submission.spec(live.id, now, live.arrived)))

    def forget(self, live: Live, reason: str = "", state: str = "cancelled") -> None:
        """A job ends that the scheduler never heard of."""
        self.entry.end(live.id, state, reason)
        self.roster.leave(live.id, state)


def _outcome(report: Ended) -> str:
    if report.signal is not None:
        return f"ended by signal {report.signal}"
    return "ended for an unknown reason" if report.code is None else f"exit code {report.code}"


def seconds(amount: float) -> str:
    """A length of time as people say it."""
    if amount < 120:
        return f"{amount:g} s"
    minutes, left = divmod(round(amount), 60)
    hours, minutes = divmod(minutes, 60)
    named = ((hours, "h"), (minutes, "min"), (left, "s"))
    return " ".join(f"{value} {unit}" for value, unit in named if value)


def _complete(live: Live) -> bool:
    """Did it say itself that all its steps are done?"""
    told = live.progress
    return told is not None and bool(told.total) and told.steps >= (told.total or 0.0)
