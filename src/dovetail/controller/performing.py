"""Carries plans out: turns actions into calls of an engine, and calls that fail into news.

`Booking` says what is to be done and writes it down; `Performer` does it, after the journal has it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from dovetail.controller.circumstances import Circumstances
from dovetail.controller.dependencies import DONE
from dovetail.controller.intake import COULD_NOT
from dovetail.controller.journal import Entry
from dovetail.controller.roster import HELD, Live, Roster, Run
from dovetail.core.scheduler import Scheduler
from dovetail.executors.protocol import Attempt, Ended, Executor, Hindered, Launch, Report
from dovetail.model.allocation import Allocation
from dovetail.model.plan import Change, Plan, Reject, Resume, Start, Stop, Suspend

LONGEST_REST = 60.0
"""Seconds between two tries of a call that fails."""
MOST_TRIES = 5
"""Of a suspend; then the job is stopped instead, so that who waits for its devices has them."""


class Effect(NamedTuple):
    """One call of an engine."""

    name: str
    attempt: Attempt
    call: Callable[[], None]


class Performer:
    """Makes the calls. One that fails is told of and made again; a failed start is its end."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        #: what calls that failed amount to, for the next batch
        self.news: list[Report] = []
        self._again: list[tuple[float, int, Effect]] = []

    def launch(self, live: Live, run: Run) -> Launch:
        """Everything needed to start or adopt an attempt."""
        return live.submission.launch(run.attempt, run.allocation, live.member)

    def start(self, live: Live, run: Run) -> Effect:
        """Let an attempt begin."""
        launch = self.launch(live, run)
        return Effect("start", run.attempt, partial(self.executor.start, launch))

    def stop(self, attempt: Attempt, grace: float) -> Effect:
        """Let an attempt end."""
        return Effect("stop", attempt, partial(self.executor.stop, attempt, grace))

    def suspend(self, attempt: Attempt) -> Effect:
        """Let an attempt pause."""
        return Effect("suspend", attempt, partial(self.executor.suspend, attempt))

    def resume(self, attempt: Attempt) -> Effect:
        """Let an attempt go on."""
        return Effect("resume", attempt, partial(self.executor.resume, attempt))

    def resize(self, attempt: Attempt, allocation: Allocation) -> Effect:
        """Give an attempt other amounts."""
        return Effect("resize", attempt, partial(self.executor.resize, attempt, allocation))

    def perform(self, effect: Effect, now: float, tries: int = 0) -> None:
        """Make one call."""
        try:
            effect.call()
        except Exception as error:
            # Engines are other people's code: whatever they raise is news, not our end.
            if effect.name == "start":
                reason = f"could not be started: {error}"
                self.news.append(Ended(effect.attempt, None, None, reason))
            else:
                self._hindered(effect, str(error), now, tries)

    def _hindered(self, effect: Effect, why: str, now: float, tries: int) -> None:
        """Make a call again later, and tell of the first time and the last."""
        given_up = effect.name == "suspend" and tries + 1 >= MOST_TRIES
        if not tries or given_up:
            self.news.append(Hindered(effect.attempt, effect.name, why, given_up))
        if not given_up:
            self._again.append((now + min(LONGEST_REST, 2.0**tries), tries + 1, effect))

    def due(self) -> float | None:
        """When a call that failed is made again."""
        return min((at for at, _, _ in self._again), default=None)

    def retry(self, now: float) -> None:
        """Make calls again whose rest is over."""
        due = [each for each in self._again if each[0] <= now]
        self._again = [each for each in self._again if each[0] > now]
        for _, tries, effect in due:
            self.perform(effect, now, tries)

    def gone(self, attempt: Attempt) -> None:
        """An attempt ended: nothing needs to be done to it any more."""
        if self._again:
            self._again = [each for each in self._again if each[2].attempt != attempt]


class Booking:
    """One plan: the rows it changes and the calls it takes."""

    def __init__(
        self,
        entry: Entry,
        scheduler: Scheduler,
        roster: Roster,
        performer: Performer,
        under: Circumstances,
    ) -> None:
        self.entry = entry
        self.scheduler = scheduler
        self.roster = roster
        self.performer = performer
        self.under = under
        self.effects: list[Effect] = []

    def plan(self, plan: Plan, touched: set[int]) -> list[Effect]:
        """Book a plan and what ended with it; `touched` are the jobs of its batch."""
        for action in plan.actions:
            touched.add(action.job)
            live = self.roster[action.job]
            if isinstance(action, Start | Resume):
                if not action.awaits:
                    self._begin(live, action)
            elif isinstance(action, Stop):
                self.stop(live)
            elif isinstance(action, Suspend) and live.run is not None:
                self.effects.append(self.performer.suspend(live.run.attempt))
            elif isinstance(action, Change):
                self._change(live, action.allocation)
            elif isinstance(action, Reject):
                live.reason = action.cause
        for job, reason in self.scheduler.ended:
            state = str(job.status)
            self._end(self.roster.leave(job.id, state), state, reason)
        for number in touched & self.roster.keys():
            self._note_state(self.roster[number])
        return self.effects

    def _begin(self, live: Live, action: Start | Resume) -> None:
        if isinstance(action, Resume) and live.run is not None:
            self.effects.append(self.performer.resume(live.run.attempt))
            return
        live.attempts += 1
        live.run = Run(Attempt(live.id, live.attempts), action.allocation, boot=self.under.boot)
        if self.under.instant:
            self.roster.clock_in(live, self.entry.now)
        if live.reason:
            live.reason = ""
            self.entry.job(live.id, reason="")
        self.entry.new_attempts.append(live.run.row(self.entry.wall))
        self.effects.append(self.performer.start(live, live.run))

    def stop(self, live: Live) -> None:
        """Ask an attempt to end."""
        run = live.run
        if run is None:
            # A start that was called off before it was sent.
            return
        run.stopping = True
        self.entry.attempt(*run.attempt, stopping=1)
        self.effects.append(self.performer.stop(run.attempt, live.submission.grace))
        if self.under.instant:
            self.entry.attempt(*run.attempt, ended=self.entry.wall, outcome="stopped")
            live.run = None

    def _change(self, live: Live, allocation: Allocation) -> None:
        if live.run is not None:
            live.run.allocation = allocation
            self.entry.attempt(*live.run.attempt, launch=live.run.launch())
            self.effects.append(self.performer.resize(live.run.attempt, allocation))
            if live.reason.startswith(COULD_NOT):
                # What was said of the last resize may not be true of this one.
                live.reason = ""
                self.entry.job(live.id, reason="")

    def _end(self, live: Live, state: str, reason: str) -> None:
        if not reason and state != DONE:
            reason = live.reason
        self.entry.end(live.id, state, reason)
        if live.run is not None:
            if not live.run.stopping:
                self.stop(live)
            if live.run is not None:
                self.roster.orphans[live.id] = live

    def _note_state(self, live: Live) -> None:
        job = self.scheduler.jobs.get(live.id)
        state = HELD if live.held else str(job.status) if job is not None else live.state
        if state != live.state:
            live.state = state
            self.entry.job(live.id, state=state)
        if live.started is None and live.run is not None:
            live.started = self.entry.wall
            self.entry.job(live.id, started=live.started)
