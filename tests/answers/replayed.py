"""A replay that is stopped again and again to ask what it believes of its own future."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random

from dovetail.answers.arrivals import Arrivals
from dovetail.answers.calibration import FLOOR, Calibration, Open
from dovetail.answers.when import Effort, when
from dovetail.core.scheduler import Scheduler
from dovetail.model.event import Event, Submitted
from dovetail.model.job import Status
from dovetail.model.live import Estimate, Range
from dovetail.model.plan import Plan, Resume, Start
from dovetail.model.trace import Trace, TraceJob
from dovetail.simulator.experiment import Replay, _compose
from dovetail.simulator.loop import Simulation
from dovetail.simulator.spec import read_spec

NEVER = float("inf")


@dataclass
class Asked:
    """What was said of a job that had to wait, and what came true."""

    at: float
    raw: Estimate
    told: Estimate
    naive: float
    start: float | None = None
    end: float | None = None


@dataclass
class Oracle:
    """Replays jobs and asks about some that wait: those that come, or `drawn`, any of them."""

    settings: Replay
    every: int
    effort: Effort
    drawn: bool = False
    asked: dict[int, Asked] = field(default_factory=dict)
    starts: Calibration = field(default_factory=Calibration)
    ends: Calibration = field(default_factory=Calibration)
    arrivals: Arrivals = field(default_factory=Arrivals)
    lengths: list[float] = field(default_factory=list)
    _draw: Random = field(default_factory=lambda: Random(1))

    def make(self) -> Scheduler:
        return self._simulation([]).scheduler

    def _simulation(self, jobs: Sequence[TraceJob]) -> Simulation:
        trace = Trace("", "", iter(jobs), 0)
        return _compose(self.settings, read_spec(self.settings.cluster), trace)[0]

    def run(self, jobs: Sequence[TraceJob], most: int) -> None:
        """Until all that was asked has come true."""
        simulation = self._simulation(jobs)
        scheduler, work = simulation.scheduler, {job.spec.id: job.work for job in jobs}
        decide, turns = scheduler.step, 0

        def step(now: float, batch: Sequence[Event]) -> Plan:
            nonlocal turns
            plan = decide(now, batch)
            self.lengths += [work[job.id] for job, _ in scheduler.ended]
            self._learn(scheduler, now, plan)
            for event in batch:
                if not isinstance(event, Submitted):
                    continue
                self.arrivals.note(event.spec)
                number = self._choose(scheduler, event.spec.id)
                turns += number is not None
                if number is not None and turns % self.every == 0 and len(self.asked) < most:
                    self.asked[number] = self._ask(scheduler, number, now, plan.wake_at)
            if len(self.asked) == most and all(each.end for each in self.asked.values()):
                raise StopIteration
            return plan

        scheduler.step = step  # type: ignore[method-assign]
        with suppress(StopIteration):
            simulation.run()

    def _choose(self, scheduler: Scheduler, new: int) -> int | None:
        jobs = scheduler.jobs.values() if self.drawn else [scheduler.jobs.get(new)]
        waiting = [
            job.id
            for job in jobs
            if job is not None and job.status is Status.WAITING and job.id not in self.asked
        ]
        return self._draw.choice(waiting) if waiting else None

    def _learn(self, scheduler: Scheduler, now: float, plan: Plan) -> None:
        for action in plan.actions:
            said = self.asked.get(action.job)
            if isinstance(action, Start | Resume) and said is not None and said.start is None:
                said.start = now
                self.starts.learn(said.raw.start, said.told.start, now - said.at)
        for job, _ in scheduler.ended:
            if (said := self.asked.get(job.id)) is not None:
                said.end = now
                self.ends.learn(said.raw.end, said.told.end, now - said.at)

    def _ask(self, scheduler: Scheduler, number: int, now: float, wake: float | None) -> Asked:
        # A replay gives the collector a rest, but forks are thrown away in heaps.
        gc.enable()
        found = when(
            scheduler.image(),
            self.make,
            now,
            [number],
            wake_at=wake,
            arrivals=self.arrivals,
            effort=self.effort,
            seed=number,
        )[number]
        gc.disable()
        past = self.asked.values()
        waits = [Open(each.raw.start, now - each.at) for each in past if each.start is None]
        runs = [Open(each.raw.end, now - each.at) for each in past if each.end is None]
        start = self.starts.stretched(found.start, waits)
        end = self.ends.stretched(found.end, runs).no_earlier(start)
        told = replace(found, start=start, end=end)
        return Asked(now, found, told, self._naive(scheduler))

    def _naive(self, scheduler: Scheduler) -> float:
        """Work in front, at the mean length, spread over all GPUs."""
        mean = sum(self.lengths) / max(len(self.lengths), 1)
        gpus = sum(job.spec.request.gpus for job in scheduler.jobs.values())
        return mean * gpus / scheduler.cluster.gpus


@dataclass(frozen=True)
class Score:
    """How good what was said of starts, or of ends, was."""

    asked: int
    held: float
    #: the same of the first half of them
    early: float
    error: float
    naive: float
    #: how many times as late as the low end the high one is, a minute making no difference
    width: float

    def __str__(self) -> str:
        return (
            f"{self.held:.0%} of {self.asked} held, of the first half {self.early:.0%}; "
            f"factor {self.width:.3g}; median error {self.error:,.0f} s, naive {self.naive:,.0f} s"
        )


def scores(oracle: Oracle) -> tuple[Score, Score]:
    """Of starts and of ends."""
    done = [each for each in oracle.asked.values() if each.start and each.end]
    mean = statistics.mean(oracle.lengths)
    starts = [(each.told.start, (each.start or 0.0) - each.at, each.naive) for each in done]
    ends = [(each.told.end, (each.end or 0.0) - each.at, each.naive + mean) for each in done]
    return _score(starts), _score(ends)


def _score(outcomes: list[tuple[Range, float, float]]) -> Score:
    held = [
        told.low is not None and told.low <= came <= _or_never(told.high)
        for told, came, _ in outcomes
    ]
    errors = [abs(_or_never(told.middle) - came) for told, came, _ in outcomes]
    widths = [
        (_or_never(told.high) + FLOOR) / ((told.low or 0.0) + FLOOR) for told, _, _ in outcomes
    ]
    return Score(
        len(held),
        statistics.mean(held),
        statistics.mean(held[: len(held) // 2]),
        statistics.median(errors),
        statistics.median(abs(naive - came) for _, came, naive in outcomes),
        statistics.median(widths),
    )


def _or_never(value: float | None) -> float:
    return NEVER if value is None else value
