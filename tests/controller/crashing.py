"""A life with everything in it, and ways to die at the n-th thing a controller does.

Whatever is done to the data base or the engine burns a bit of a fuse. A fuse that burns through
kills the process with SIGKILL; what is outside of it (machines, the clock) goes on.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from sqlalchemy import Connection, select
from virtual import NEVER, Site, submission

from dovetail.controller import schema
from dovetail.controller.commands import Requeue, Submit
from dovetail.controller.loop import Controller
from dovetail.controller.parts import Parts
from dovetail.controller.replaying import first_difference
from dovetail.controller.store import Store
from dovetail.executors.fake import FakeExecutor, Machine
from dovetail.executors.protocol import Attempt, Launch, Report
from dovetail.model.costs import Costs
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob

COSTS = Costs(restart=2.0, stop=1.0, checkpoint_every=4.0)


class Fuse:
    """Counts what is done and burns through at some of them."""

    def __init__(self, at: int = 0, leave: Callable[[], None] = lambda: None) -> None:
        self.count = 0
        self.at = at
        #: what the world outside does when the process dies
        self.leave = leave

    def burn(self) -> None:
        self.count += 1
        if self.count == self.at:
            self.leave()
            os.kill(os.getpid(), signal.SIGKILL)


class FragileStore(Store):
    """Can die inside a transaction before its commit, and right after it: before any effect."""

    def __init__(self, url: str, fuse: Fuse) -> None:
        self.fuse = fuse
        super().__init__(url, durable=False)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with super().transaction() as connection:
            yield connection
            self.fuse.burn()
        self.fuse.burn()


class FragileExecutor(FakeExecutor):
    """Can die after every call: before the next one."""

    def __init__(self, machine: Machine, fuse: Fuse) -> None:
        super().__init__(machine)
        self.fuse = fuse

    def start(self, launch: Launch) -> None:
        assert launch.attempt not in self.machine.known, "an attempt was started twice"
        super().start(launch)
        self.fuse.burn()

    def stop(self, attempt: Attempt, grace: float) -> None:
        super().stop(attempt, grace)
        self.fuse.burn()

    def reports(self) -> list[Report]:
        told = super().reports()
        if told:
            self.fuse.burn()
        return told


# ---- the life ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """Something somebody submits at a moment, if it is not there yet."""

    at: float
    jobs: tuple[TraceJob, ...]
    array: bool = False
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def first(self) -> int:
        """The first number it takes: its array's, or its first job's."""
        return self.jobs[0].spec.id - self.array


REQUEUED = 2
"""The job somebody wants to begin again while it runs."""


def workload(count: int = 15) -> tuple[list[Step], dict[int, str]]:
    """What is submitted, and how each job must end.

    Jobs that displace each other, fail once, are too large once; an array, a job after it, one
    after a job that fails, and one that runs longer than it may.
    """
    draw, steps, at = Random(4), [], 0.0
    ends = dict.fromkeys(range(1, count + 1), "done")
    ends[5] = "rejected"
    for number in range(1, count + 1):
        at += draw.choice((0.0, 2.0, 5.0))
        gpus = 50 if number == 5 else draw.choice((1, 2, 4))
        length = float(draw.randrange(3, 30))
        breaks = (length / 2,) if number % 4 == 0 else ()
        steps.append(Step(at, (_job(number, at, gpus, length, breaks, number % 3 > 0),)))
    first = count + 2
    members = tuple(_job(first + place, at, 1, 5.0 + place) for place in range(3))
    steps.append(Step(at, members, array=True))
    numbers = tuple(job.spec.id for job in members)
    after, fails, never, long = range(first + 3, first + 7)
    steps.append(Step(at, (_job(after, at, 2, 4.0),), more={"after": numbers}))
    broken = _job(fails, at, 1, 6.0, (3.0,), retries=0)
    steps.append(Step(at, (broken,)))
    steps.append(Step(at, (_job(never, at, 1, 6.0),), more={"after": (fails,)}))
    steps.append(Step(at, (_job(long, at, 1, 30.0),), more={"time_limit": 8.0}))
    ends |= dict.fromkeys((*numbers, after), "done")
    return steps, {**ends, fails: "failed", never: "cancelled", long: "failed"}


def _job(
    number: int,
    at: float,
    gpus: int,
    length: float,
    breaks: tuple[float, ...] = (),
    resumable: bool = False,
    retries: int = 2,
) -> TraceJob:
    spec = JobSpec(
        number,
        f"j{number}",
        at,
        gang(gpus),
        estimate=length,
        resumable=resumable,
        retries=retries,
    )
    return TraceJob(spec, length, breaks)


def make_site(folder: Path, url: str | None = None) -> Site:
    """Where such a life is lived."""
    parts = Parts("srtf", costs=COSTS)
    return Site(folder, "1x4", parts, 0.5, url=url, every=7, backoff=lambda failures: 3.0)


class World:
    """What is outside of the controller's process and outlives it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.file = site.folder / "world"
        if self.file.exists():
            site.machine, site.clock = pickle.loads(self.file.read_bytes())

    def leave(self) -> None:
        self.file.write_bytes(pickle.dumps((self.site.machine, self.site.clock)))


def live(folder: Path, url: str | None, at: int) -> int:
    """One life, to the end of all jobs or of the fuse; returns how much was done in it."""
    site = make_site(folder, url)
    fuse = Fuse(at, World(site).leave)
    site.store = FragileStore(site.url, fuse)
    controller = site.open(site.store, FragileExecutor(site.machine, fuse))
    controller.journal.snapshots.piece = 2
    steps, ends = workload()
    _drive(site, controller, [each for each in steps if each.first >= controller.roster.next_id])
    check(site, controller, ends)
    assert first_difference(controller.journal, site.make) is None
    site.close()
    return fuse.count


def _drive(site: Site, controller: Controller, ahead: list[Step]) -> None:
    controller.turn()
    for _ in range(100_000):
        happens = min(ahead[0].at if ahead else NEVER, site.machine.next_at())
        now = min(happens, controller.next_at())
        if now == NEVER or (happens == NEVER and not controller.roster):
            return
        site.clock.now = max(site.clock.now, now)
        while ahead and ahead[0].at <= site.clock.now:
            _submit(site, controller, ahead.pop(0))
        _requeue(controller)
        controller.turn()
    raise AssertionError("the jobs never end")


def _submit(site: Site, controller: Controller, step: Step) -> None:
    for job in step.jobs:
        site.machine.tell(job)
    wanted = tuple(submission(job.spec, **step.more) for job in step.jobs)
    controller.post(Submit(wanted, step.array))


def _requeue(controller: Controller) -> None:
    job = controller.roster.get(REQUEUED)
    if job is not None and job.run is not None and job.attempts == 1 and not job.run.fate:
        controller.post(Requeue((REQUEUED,)))


# ---- the checks --------------------------------------------------------------------------------


def check(site: Site, controller: Controller, ends: dict[int, str]) -> None:
    """Nothing was lost, nothing ran twice, and the books are in order."""
    controller.scheduler.validate()
    assert not controller.scheduler.jobs
    assert not controller.roster
    # The last two are kept, and one that somebody died before dropping.
    assert len(controller.journal.snapshots.numbers()) in (2, 3)
    store = controller.journal.store
    rows = {row["id"]: row for row in store.rows(select(schema.jobs))}
    assert {number: row["state"] for number, row in rows.items()} == ends
    assert rows[max(ends)]["reason"] == "its time limit of 8 s is over"
    check_runs(site.machine, ends)
    runs = store.rows(select(schema.attempts))
    assert all(run["ended"] is not None for run in runs)
    assert {Attempt(run["job"], run["number"]) for run in runs} >= site.machine.known.keys()
    assert any(run["job"] == REQUEUED and run["fate"] == "requeue" for run in runs)


def check_runs(machine: Machine, ends: dict[int, str]) -> None:
    """Each job came to its end once, and no device had two attempts at a time."""
    finished: dict[int, int] = {}
    used: list[tuple[int, int, float, float]] = []
    for attempt, known in machine.known.items():
        ended: Any = known.last
        finished[attempt.job] = finished.get(attempt.job, 0) + (ended.code == 0)
        assert known.over is not None
        for part in known.launch.allocation.parts:
            for device in range(part.devices.bit_length()):
                if part.devices >> device & 1:
                    used.append((part.node, device, known.begun, known.over))
    assert finished == {job: int(ends[job] == "done") for job in finished}
    assert finished.keys() == {job for job in ends if ends[job] in ("done", "failed")}
    used.sort()
    for one, other in pairwise(used):
        if one[:2] == other[:2]:
            assert one[3] <= other[2], f"{one} and {other} at the same time"
