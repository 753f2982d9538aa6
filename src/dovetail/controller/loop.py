"""The live controller: one task owns the scheduler, and nothing else touches it.

A turn takes in everything that is queued at that moment as one batch, asks for one plan, writes
both down, and only then acts. Turns are plain calls without waiting, so that tests can drive them
with a clock of their own; `run` is the task that makes them when something happened or a plan asked
to be woken. If the journal cannot be written the controller ends without having acted: what it has
decided in memory is void, and a new start recovers what is on disk.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from dovetail.controller import machines
from dovetail.controller.circumstances import Backoff, circumstances, doubling
from dovetail.controller.commands import Command
from dovetail.controller.idleness import IdleRule
from dovetail.controller.intake import Intake
from dovetail.controller.journal import Entry, Journal
from dovetail.controller.parts import Parts, composer, read_parts
from dovetail.controller.performing import Booking, Performer
from dovetail.controller.recovery import reconcile
from dovetail.controller.retention import Forgetting, Retention
from dovetail.controller.roster import Roster
from dovetail.controller.timebase import Clock, MachineClock, TimeBase
from dovetail.controller.trial import Trial
from dovetail.controller.watching import Watch
from dovetail.controller.wishes import Wishes
from dovetail.core.collecting import keeping_all
from dovetail.core.scheduler import Scheduler
from dovetail.executors.protocol import Ended, Executor
from dovetail.model.errors import Unavailable, UserError
from dovetail.model.event import Event, Submitted, Wake
from dovetail.model.plan import Plan

NEVER = float("inf")
OVER = "the controller has ended; start it again and ask once more"


@dataclass(frozen=True)
class Settings:
    """How the controller goes about its work."""

    #: seconds between two looks at the engine's reports
    pace: float = 0.1
    #: rests after failures
    backoff: Backoff = field(default_factory=doubling)
    #: seconds between two looks at who else is on the machines and what jobs use
    look: float = 5.0
    #: what happens to jobs that make nothing of their GPUs
    idle: IdleRule = field(default_factory=IdleRule)
    #: how long jobs that have ended are remembered
    keep: Retention = field(default_factory=Retention)


Asked = tuple[Command, "Future[Any]"]


class Controller:
    """Drives a scheduler with what really happens."""

    def __init__(
        self,
        make: Callable[[], Scheduler],
        journal: Journal,
        executor: Executor,
        settings: Settings | None = None,
        clock: Clock | None = None,
        parts: Parts | None = None,
    ) -> None:
        #: makes schedulers like this one: for looking ahead
        self.make = make
        #: what decides, where it is known
        self.parts = parts
        self.journal = journal
        self.executor = executor
        self.settings = settings or Settings()
        self.time = TimeBase(clock or MachineClock(), journal.anchor(), journal.last_moment())
        journal.drop_anchor(self.time.anchor)
        #: on the time of decisions
        self.began = self.time.now()
        with keeping_all():
            self.scheduler, last = self._recover(make, parts)
            self.roster = Roster(journal.store)
            self.roster.unheard(self.scheduler.jobs)
        self.trial = Trial(make)
        boot = self.time.anchor.boot
        settings = self.settings
        self.under = circumstances(self.scheduler.cluster, boot, settings.backoff)
        self.performer = Performer(executor)
        self.looks = Watch(executor, self.scheduler, settings.look, settings.idle)
        self.forgetting = Forgetting(journal.store, executor, settings.keep)
        #: what the last plan asked for
        self.wake_at = last.wake_at
        #: told of every plan that was carried out: for watchers and tests
        self.watch: Callable[[float, list[Event], Plan], None] | None = None
        #: told of everything that was written, after it was acted upon
        self.written: Callable[[Entry], None] | None = None
        self._asked: deque[Asked] = deque()
        self._bell: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = self._over = False
        self._act_at_end = True
        for effect in reconcile(self.scheduler, self.roster, self.performer, last):
            self.performer.perform(effect, self.time.now())

    def _recover(
        self, make: Callable[[], Scheduler], parts: Parts | None
    ) -> tuple[Scheduler, Plan]:
        """The scheduler as it was; where other parts are wanted now, they take over its jobs."""
        journal = self.journal
        text, before = parts.written() if parts else None, journal.store.noted("parts")
        if text is None or before is None or text == before:
            recovered = journal.recover(make)
            if text is not None:
                journal.remember(parts=text, machines=machines.written(self.executor))
            return recovered
        old, last = journal.recover(composer(read_parts(before), self.executor))
        scheduler = make()
        scheduler.take_over(old)
        journal.hand_over(scheduler, text)
        journal.remember(machines=machines.written(self.executor))
        return scheduler, last._replace(wake_at=self.time.now())

    def reconfigure(self, parts: Parts) -> None:
        """Let other parts decide from here on, about the jobs where they are.

        Between two turns, in the loop's own thread. When this returns it is on disk; when it
        raises, everything is as it was. A `UserError` says what is wrong with the parts.
        """
        make = composer(parts, self.executor)
        scheduler = make()
        if self.journal.sequence:
            # Before the first batch there is nothing to take over, and a replay begins anew.
            scheduler.take_over(self.scheduler)
        self.journal.hand_over(scheduler, parts.written())
        self.scheduler, self.make, self.parts = scheduler, make, parts
        self.trial = Trial(make)
        self.wake_at = self.time.now()
        if self._bell is not None:
            self._bell.set()

    # ---- asking ------------------------------------------------------------------------------

    def post(self, command: Command) -> Future[Any]:
        """Queue a command; the answer comes when it is on disk. From any thread."""
        answer: Future[Any] = Future()
        if self._over:
            answer.set_exception(Unavailable(OVER))
            return answer
        self._asked.append((command, answer))
        if self._loop is not None and self._bell is not None:
            self._loop.call_soon_threadsafe(self._bell.set)
        return answer

    async def ask(self, command: Command) -> Any:
        """Queue a command and wait for its answer."""
        return await asyncio.wrap_future(self.post(command))

    # ---- turning -----------------------------------------------------------------------------

    def turn(self, act: bool = True) -> bool:
        """Take in what is queued, decide, write down, act; False: there was nothing to do.

        Without `act` what was decided is left for whoever recovers the journal.
        """
        now = self.time.now()
        self.performer.retry(now)
        self.forgetting.tend(now, self.roster.orphans)
        self.journal.tend()
        entry = Entry(now, self.time.wall())
        intake = Intake(entry, self.scheduler, self.roster, self.under)
        self._hear(intake)
        answers = self._answer(intake)
        if self.wake_at is not None and self.wake_at <= now:
            intake.events.append(Wake())
        if not intake.events and not entry:
            _settle(answers)
            return False
        try:
            self._decide(intake, answers, act)
        except BaseException as error:
            for answer, _ in answers:
                if not answer.done():
                    answer.set_exception(_told(error))
            raise
        return True

    def _hear(self, intake: Intake) -> None:
        news, self.performer.news = self.performer.news, []
        for report in [*news, *self.executor.reports()]:
            intake.report(report)
            if isinstance(report, Ended):
                self.performer.gone(report.attempt)
        intake.timed()
        intake.followed()
        self.looks.look(intake)

    def _answer(self, intake: Intake) -> list[tuple[Future[Any], Any]]:
        """Take in commands; those that are wrong are told so at once."""
        answers: list[tuple[Future[Any], Any]] = []
        wishes = Wishes(intake, self.trial)
        while self._asked:
            command, answer = self._asked.popleft()
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answers.append((answer, wishes.take(command)))
            except UserError as error:
                answer.set_exception(error)
        return answers

    def _decide(self, intake: Intake, answers: list[tuple[Future[Any], Any]], act: bool) -> None:
        entry, events = intake.entry, intake.events
        booking = Booking(entry, self.scheduler, self.roster, self.performer, self.under)
        for live in intake.stops:
            booking.stop(live)
        plan = None
        if events:
            plan = self.scheduler.step(entry.now, events)
            entry.events, entry.plan = events, plan
            self.wake_at = plan.wake_at
            booking.plan(plan, {number for number in map(_job, events) if number is not None})
        self.journal.write(entry)
        _settle(answers)
        for effect in booking.effects if act else ():
            self.performer.perform(effect, entry.now)
        if plan is not None and self.watch is not None:
            self.watch(entry.now, events, plan)
        if self.written is not None:
            self.written(entry)
        self.journal.snapshot_if_due(self.scheduler)

    def next_at(self) -> float:
        """When there is something to do even if nothing happens, on the time of decisions."""
        if self.performer.news or self.roster.dependencies.news:
            return self.time.now()
        roster = self.roster
        times = (
            self.wake_at,
            self.performer.due(),
            *roster.resting.values(),
            *roster.limits.values(),
        )
        return min((at for at in times if at is not None), default=NEVER)

    # ---- living ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Make turns until told to stop; then leave a snapshot. Jobs go on running.

        A `UserError` that comes out of here says why the controller could not go on.
        """
        self._loop, self._bell = asyncio.get_running_loop(), asyncio.Event()
        try:
            while not self._ending:
                self.turn()
                await self._rest(self._bell)
            self.turn(self._act_at_end)
            self.journal.snapshot(self.scheduler)
        finally:
            self._over = True
            self.forgetting.close()
            self.journal.close()
            while self._asked:
                self._asked.popleft()[1].set_exception(Unavailable(OVER))

    async def _rest(self, bell: asyncio.Event) -> None:
        """Until somebody asks, a plan wants to be woken, or it is time to look at the engine."""
        pause = max(0.0, min(self.settings.pace, self.next_at() - self.time.now()))
        try:
            await asyncio.wait_for(bell.wait(), pause)
        except TimeoutError:
            return
        bell.clear()
        # Who else is about to ask comes into the same batch.
        await asyncio.sleep(0)

    def end(self, act: bool = True) -> None:
        """Let `run` come to its end, with a last turn. Call it from the loop's own thread."""
        self._ending, self._act_at_end = True, act
        if self._bell is not None:
            self._bell.set()


def _job(event: Event) -> int | None:
    if isinstance(event, Submitted):
        return event.spec.id
    number: int | None = getattr(event, "job", None)
    return number


def _settle(answers: list[tuple[Future[Any], Any]]) -> None:
    for answer, value in answers:
        answer.set_result(value)


def _told(error: BaseException) -> Exception:
    if isinstance(error, UserError):
        return Unavailable(str(error))
    return Unavailable("the controller ended before it could write this down; ask again")
