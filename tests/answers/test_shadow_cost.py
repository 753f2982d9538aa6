"""What a policy in the shadow adds to a decision's time, measured as a ratio inside one run.

One controller makes decision after decision; in every other block of them a candidate looks on.
Both kinds of blocks have the same jobs, memory and machine, whatever else that machine does. Time
is processor time: of the controller's thread for single decisions, and of the whole process, with
the thread in which the candidate is asked, for all of them together.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from time import perf_counter, process_time, thread_time

import pytest
from virtual import Site

from dovetail.controller.parts import Parts
from dovetail.controller.shadowing import Pace, Shadow
from dovetail.model.trace import TraceJob
from dovetail.traces.loader import load

CLUSTER, GPUS, WAITING, FIRST = "16x8", 128, 1000, 1600
BLOCK, ROUNDS, ENOUGH = 20, 100, 2
"""Decisions of a block, pairs of blocks at least, and looks of the candidate."""


def stream() -> list[TraceJob]:
    """Many jobs at once, then Philly's sizes, lengths and rhythm, so that the queue stays."""
    trace = load(f"generate:philly,load=9,jobs={20 * WAITING}", cluster_gpus=GPUS)
    jobs = list(trace.jobs)
    first = jobs[FIRST].spec.submit
    return [_moved(job, number, first) for number, job in enumerate(jobs, 1)]


def _moved(job: TraceJob, number: int, first: float) -> TraceJob:
    submit = max(0.0, job.spec.submit - first)
    return job._replace(spec=job.spec._replace(id=number, submit=submit, estimate=job.work))


class Stopwatch:
    """Runs only while the candidate may look on: it saves up no time in between."""

    def __init__(self) -> None:
        self._passed, self._begun, self._running = 0.0, 0.0, False

    def __call__(self) -> float:
        return self._passed + (perf_counter() - self._begun if self._running else 0.0)

    def turn(self, on: bool) -> None:
        self._passed, self._begun, self._running = self(), perf_counter(), on


@dataclass
class Spent:
    """Seconds of processor time."""

    decisions: list[float] = field(default_factory=list)
    process: float = 0.0

    @property
    def mean(self) -> float:
        return self.process / len(self.decisions)


class Stream:
    """A controller that decides, with the candidate looking on or without."""

    def __init__(self, folder: Path) -> None:
        parts = Parts("fifo:skip=true")
        # Snapshots are no part of decisions, and would fall on either kind of block by chance.
        site = self.site = Site(folder, CLUSTER, parts, oracle=False, every=10**9)
        self.controller = site.open()
        self.clock = Stopwatch()
        self.shadow = Shadow(self.controller, Parts("srtf"), "fifo", Pace(clock=self.clock))
        self.moments: Iterator[None] = site.moments(self.controller, stream())
        self.fewest = FIRST

    async def block(self, spent: Spent, watched: bool) -> None:
        """Some decisions, and more until the candidate has been asked what it was to be asked."""
        self.clock.turn(watched)
        self.controller.watch = self.shadow if watched else None
        begun, made = process_time(), 0
        while made < BLOCK or (watched and self.shadow.thinks):
            before = thread_time()
            next(self.moments)
            decides = thread_time()
            self.controller.turn()
            spent.decisions.append(thread_time() - decides)
            # Making up what happens next is no part of a decision.
            begun += decides - before
            made += 1
            await asyncio.sleep(0)
        spent.process += process_time() - begun
        self.clock.turn(False)
        self.fewest = min(self.fewest, len(self.controller.scheduler.jobs))

    async def measured(self) -> tuple[Spent, Spent]:
        alone, watched = Spent(), Spent()
        beside = asyncio.create_task(self.shadow.run())
        rounds = 0
        while rounds < ROUNDS or self.shadow.tally.asked < ENOUGH:
            await self.block(alone, False)
            await self.block(watched, True)
            rounds += 1
        beside.cancel()
        return alone, watched


@pytest.mark.real
def test_a_shadow_adds_less_than_a_tenth_to_a_decision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Stream(tmp_path)
    # What other tests left behind is not looked through again and again.
    gc.collect()
    gc.freeze()
    alone, watched = asyncio.run(made.measured())
    made.site.close()
    added = {
        "mean": fmean(watched.decisions) / fmean(alone.decisions) - 1,
        # Clocks that count in ticks may say nothing of a single decision.
        "median": median(watched.decisions) / (median(alone.decisions) or 1.0) - 1,
        "mean with the candidate's thread": watched.mean / alone.mean - 1,
    }
    with capsys.disabled():
        said = ", ".join(f"{name} {more:+.1%}" for name, more in added.items())
        counts = f"{len(alone.decisions):,} decisions without, {len(watched.decisions):,} with"
        print(f"\nshadow: {counts}, {made.shadow.tally.asked} looks; {said}")  # noqa: T201
    assert made.shadow.failures == 0
    assert made.fewest >= WAITING
    assert max(added.values()) < 0.1, added
