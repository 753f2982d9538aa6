"""When jobs start and end, and how right such estimates were: some are made without being asked.

A few jobs that wait are asked about now and then, so that there is something to measure; what came
true widens or narrows the ranges that people are told. Kept in the data base between runs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from dovetail.answers.arrivals import Arrivals
from dovetail.answers.calibration import Calibration, Open
from dovetail.answers.foresight import Present
from dovetail.answers.when import Effort, when
from dovetail.controller.loop import Controller
from dovetail.controller.present import divided
from dovetail.controller.tenants import back_in
from dovetail.model.event import Event, Submitted
from dovetail.model.job import Status
from dovetail.model.live import Accuracy, Estimate, Range
from dovetail.model.plan import Plan, Resume, Start

EVERY = 30.0
"""Seconds between two looks for jobs to ask about."""

AT_ONCE = 5
KEY = "estimates"
QUIET = Effort(runs=10, least=3, budget=0.3)


@dataclass(frozen=True)
class Said:
    """An estimate that has not come true yet."""

    at: float
    raw: Estimate
    told: Estimate
    #: its start came true, its end is still open
    started: bool = False


def foreseen(
    asked: Sequence[tuple[Present, Sequence[int]]],
    now: float,
    effort: Effort,
    *,
    told: Callable[[int], bool],
    limits: Mapping[int, float],
    leaving: Mapping[int, float],
    arrivals: Arrivals,
) -> dict[int, Estimate]:
    """Estimates for jobs that depend on different things, which share the effort."""
    found: dict[int, Estimate] = {}
    each = replace(effort, budget=effort.budget / len(asked))
    for present, jobs in asked:
        found |= when(
            present.image,
            present.make,
            now,
            jobs,
            wake_at=present.wake_at,
            told=told,
            limits=limits,
            leaving=leaving,
            arrivals=arrivals.of(present.takes),
            effort=each,
        )
    return found


class Estimating:
    """The estimates of one controller."""

    def __init__(self, controller: Controller, lock: asyncio.Lock) -> None:
        self._controller = controller
        #: looking ahead is work: one question at a time
        self._lock = lock
        self.starts, self.ends = Calibration(), Calibration()
        self._open: dict[int, Said] = {}
        self._arrivals = Arrivals(job.spec for job in controller.scheduler.jobs.values())
        self._changed = False
        if kept := controller.journal.store.noted(KEY):
            state = json.loads(kept)
            self.starts.restore(state["starts"])
            self.ends.restore(state["ends"])

    async def estimate(
        self, numbers: Sequence[int], effort: Effort | None = None
    ) -> dict[int, Estimate]:
        """What is told of those of these jobs that the scheduler knows when it is their turn."""
        controller = self._controller
        told = frozenset(
            live.id
            for live in controller.roster.values()
            if live.progress is not None and live.progress.total and live.progress.rate > 0
        )
        limits = {
            live.id: live.submission.time_limit
            for live in controller.roster.values()
            if live.submission.time_limit is not None
        }
        async with self._lock:
            now = controller.time.now()
            gone = {
                job.id: now + left
                for job in controller.scheduler.jobs.values()
                if (left := back_in(controller, job)) is not None
            }
            # Some may have ended while others were answered.
            known = [number for number in numbers if number in controller.scheduler.jobs]
            if not known:
                return {}
            asked, spent = divided(controller, known), effort or Effort()
            found = await asyncio.to_thread(
                foreseen,
                asked,
                now,
                spent,
                told=told.__contains__,
                limits=limits,
                leaving=gone,
                arrivals=self._arrivals.copy(),
            )
        said = {
            number: Said(now, found[number], self._told(number, found[number], now))
            for number in known
        }
        for number, each in said.items():
            self._note(number, each)
        return {number: each.told for number, each in said.items()}

    def _told(self, number: int, raw: Estimate, now: float) -> Estimate:
        accuracy = Accuracy(self.starts.held, self.starts.error, len(self.starts.hits))
        waits = [
            Open(each.raw.start, now - each.at) for each in self._open.values() if not each.started
        ]
        runs = [Open(each.raw.end, now - each.at) for each in self._open.values()]
        start, end = self.starts.stretched(raw.start, waits), self.ends.stretched(raw.end, runs)
        # Each is stretched by what is known of its own kind, but nothing ends before it starts.
        ends, since = end.no_earlier(start), self._since(number)
        return replace(raw, start=start, end=ends, past=accuracy, since=since)

    def _since(self, number: int) -> float | None:
        job, live = self._controller.scheduler.jobs.get(number), self._controller.roster.get(number)
        runs = job is not None and job.status is Status.RUNNING
        return live.started if runs and live is not None else None

    def _note(self, number: int, said: Said) -> None:
        job = self._controller.scheduler.jobs.get(number)
        if number not in self._open and job is not None and job.status is Status.WAITING:
            self._open[number] = said

    def __call__(self, now: float, events: Sequence[Event], plan: Plan) -> None:
        """A decision: some of what was said has come true."""
        for event in events:
            if isinstance(event, Submitted):
                self._arrivals.note(event.spec)
        for action in plan.actions if self._open else ():
            said = self._open.get(action.job)
            if said is not None and isinstance(action, Start | Resume) and not said.started:
                if action.awaits:
                    # It has devices that others are still on: it starts when it is told so again.
                    continue
                self._open[action.job] = replace(said, started=True)
                self._learn(self.starts, said.raw.start, said.told.start, now - said.at)
        for job, _ in self._controller.scheduler.ended if self._open else ():
            ended = self._open.pop(job.id, None)
            if ended is not None and job.status is Status.DONE:
                self._learn(self.ends, ended.raw.end, ended.told.end, now - ended.at)

    def _learn(self, calibration: Calibration, raw: Range, told: Range, came: float) -> None:
        calibration.learn(raw, told, came)
        self._changed = True

    async def run(self) -> None:
        """Ask about a few jobs now and then, and write down what was learned."""
        while True:
            await asyncio.sleep(EVERY)
            self._keep()
            jobs = self._controller.scheduler.jobs.values()
            new = [
                job.id
                for job in jobs
                if job.status is Status.WAITING and not job.withheld and job.id not in self._open
            ]
            if new and not self._lock.locked():
                await self.estimate(new[:: max(1, len(new) // AT_ONCE)][:AT_ONCE], QUIET)

    def _keep(self) -> None:
        if self._changed:
            self._changed = False
            state = {"starts": self.starts.snapshot(), "ends": self.ends.snapshot()}
            with self._controller.journal.store.transaction():
                self._controller.journal.store.note({KEY: json.dumps(state)})
