"""What another policy would do now: asked on a fork of the real state, so that it cannot act.

A candidate's starts do not happen, so a picture of its own would drift away from what is there.
Instead it is asked anew each time: here is everything as it really is, here is what has just
happened; what do you do? Then both policies are driven on from there, with the same possible
lengths, and the waits that are still to come are compared. Knows neither engine nor controller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from time import monotonic
from typing import Any

from dovetail.answers.foresight import LAG, Foresight, fork
from dovetail.answers.lengths import Draws
from dovetail.core.scheduler import Scheduler
from dovetail.model.event import Event
from dovetail.model.job import Job
from dovetail.model.plan import Plan, Resume, Start, Stop, Suspend

Make = Callable[[], Scheduler]

HORIZON = 14 * 86400.0
"""Seconds looked ahead at most."""


@dataclass(frozen=True)
class Look:
    """One real decision: everything as it was before, what happened, and what was decided."""

    image: dict[str, Any]
    now: float
    events: Sequence[Event]
    plan: Plan
    #: when jobs that rest after a failure are tried again
    rests: Mapping[int, float] = field(default_factory=dict)
    #: jobs that tell themselves how far they are
    told: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Found:
    """What came of a look: jobs by what would have become of them, and waits by job."""

    instead: dict[int, str]
    passed: dict[int, str]
    stops: tuple[int, ...]
    spared: tuple[int, ...]
    #: did either of them do anything?
    acted: bool
    #: user, seconds still to wait as things are, and with the candidate
    waits: tuple[tuple[str, float, float], ...]

    @property
    def otherwise(self) -> bool:
        """Would it have decided otherwise?"""
        return bool(self.instead or self.passed or self.stops or self.spared)


def consider(look: Look, present: Make, candidate: Make, seed: int, budget: float) -> Found:
    """Ask the candidate about one decision; `budget` is in seconds and for the future only."""
    real = fork(present, look.image)
    other = fork(candidate, look.image, anew=True)
    if type(other.predictor) is type(real.predictor):
        # What was learned of lengths is learned, whoever decides.
        other.predictor.restore(look.image["predictor"])
    believed = present().predictor
    believed.restore(look.image["predictor"])
    draws = Draws(believed, look.now, Random(seed), look.told.__contains__)
    futures = [
        _Future(Foresight(each, look.now, draws, rests=look.rests)) for each in (real, other)
    ]
    _, wanted = (each.begin(look.events) for each in futures)
    known = {**real.jobs, **other.jobs}
    names = {number: job.spec.user for number, job in known.items()}
    started, stopped = _moved(look.plan)
    starts, stops = _moved(wanted)
    _drive(futures, monotonic() + budget)
    return Found(
        {job: names.get(job, "") for job in starts if job not in started},
        {job: names.get(job, "") for job in started if job not in starts},
        tuple(job for job in stops if job not in stopped),
        tuple(job for job in stopped if job not in stops),
        bool(look.plan.actions or wanted.actions),
        _waits(*futures),
    )


def _moved(plan: Plan) -> tuple[list[int], list[int]]:
    """Jobs that are put to work, and jobs that are taken off it."""
    starts = [action.job for action in plan.actions if isinstance(action, Start | Resume)]
    stops = [action.job for action in plan.actions if isinstance(action, Stop | Suspend)]
    return starts, stops


class _Future:
    """One of the two futures, and how long jobs held devices before it began."""

    def __init__(self, ahead: Foresight) -> None:
        self.ahead = ahead
        self.begun = ahead.now
        self.jobs: dict[int, Job] = {}
        self._before: dict[int, float] = {}

    def begin(self, events: Sequence[Event]) -> Plan:
        plan = self.ahead.step(events)
        # A job that ends leaves the scheduler, but stays here with what became of it.
        self.jobs = dict(self.ahead.scheduler.jobs)
        self._before = {number: job.held_for(self.begun) for number, job in self.jobs.items()}
        return plan

    def go_on(self) -> bool:
        """On to what comes next; False: nothing does, or so late that nobody cares."""
        ahead = self.ahead
        return bool(ahead.scheduler.jobs) and ahead.advance() and ahead.now < self.begun + HORIZON

    def wait(self, number: int, limit: float) -> float:
        """Seconds without devices until its end, or until the limit."""
        job, end = self.jobs[number], min(self.ahead.ended.get(number, limit), limit)
        return max(0.0, end - self.begun - (job.held_for(end) - self._before[number]))


def _drive(futures: Sequence[_Future], until: float) -> None:
    """Both on, the one that is behind first, so that they are compared over the same time."""
    going = list(futures)
    while going and monotonic() < until:
        behind = min(going, key=lambda each: each.ahead.now)
        if not behind.go_on():
            going.remove(behind)


def _waits(present: _Future, candidate: _Future) -> tuple[tuple[str, float, float], ...]:
    """Of the jobs that wait in one of the futures at least."""
    unfinished = [each.ahead.now for each in (present, candidate) if each.ahead.scheduler.jobs]
    limit = min(unfinished, default=max(present.ahead.now, candidate.ahead.now))
    found = (
        (job.spec.user, present.wait(number, limit), candidate.wait(number, limit))
        for number, job in present.jobs.items()
        if number in candidate.jobs
    )
    return tuple(each for each in found if max(each[1:]) > LAG)
