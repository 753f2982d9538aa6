"""Ways to die: at the n-th thing a controller does to its data base or its engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from random import Random
from typing import Any

from sqlalchemy import Connection, select
from virtual import Site

from dovetail.controller import schema
from dovetail.controller.loop import Controller
from dovetail.controller.store import Store
from dovetail.executors.fake import FakeExecutor, Machine
from dovetail.executors.protocol import Attempt, Launch, Report
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob


class Killed(BaseException):
    """What SIGKILL would be: nothing may catch it."""


class Twice(BaseException):
    """An attempt was started again: the journal had forgotten it."""


class Fuse:
    """Counts what is done and burns through at one of them."""

    def __init__(self, at: int = 0) -> None:
        self.count = 0
        self.at = at

    def burn(self) -> None:
        self.count += 1
        if self.count == self.at:
            raise Killed


class FragileStore(Store):
    """Can die before a transaction, inside it before the commit, and right after it."""

    def __init__(self, url: str, fuse: Fuse) -> None:
        self.fuse = fuse
        try:
            super().__init__(url, durable=False)
        except Killed:
            self.close()
            raise

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        self.fuse.burn()
        with super().transaction() as connection:
            yield connection
            self.fuse.burn()
        self.fuse.burn()


class FragileExecutor(FakeExecutor):
    """Can die before and after every call."""

    def __init__(self, machine: Machine, fuse: Fuse) -> None:
        super().__init__(machine)
        self.fuse = fuse

    def start(self, launch: Launch) -> None:
        if launch.attempt in self.machine.known:
            raise Twice(launch.attempt)
        self.fuse.burn()
        super().start(launch)
        self.fuse.burn()

    def stop(self, attempt: Attempt, grace: float) -> None:
        self.fuse.burn()
        super().stop(attempt, grace)
        self.fuse.burn()

    def reports(self) -> list[Report]:
        told = super().reports()
        if told:
            self.fuse.burn()
        return told


def workload(count: int = 15) -> list[TraceJob]:
    """Jobs that displace each other, fail once, and are too large once."""
    draw, jobs, at = Random(4), [], 0.0
    for number in range(1, count + 1):
        at += draw.choice((0.0, 2.0, 5.0))
        length = float(draw.randrange(3, 30))
        spec = JobSpec(
            number,
            f"j{number}",
            at,
            gang(50 if number == 5 else draw.choice((1, 2, 4))),
            estimate=length,
            resumable=number % 3 > 0,
            retries=2,
        )
        jobs.append(TraceJob(spec, length, (length / 2,) if number % 4 == 0 else ()))
    return jobs


def live_through(site: Site, jobs: list[TraceJob], fuse: Fuse) -> tuple[Controller, int]:
    """Run all jobs to their ends, with a new controller whenever one dies."""
    deaths = 0
    while True:
        try:
            site.store = FragileStore(site.url, fuse)
            controller = site.open(site.store, FragileExecutor(site.machine, fuse))
            missing = [job for job in jobs if job.spec.id >= controller.roster.next_id]
            site.drive(controller, missing)
            return controller, deaths
        except Killed:
            deaths += 1
            site.close()


def check(site: Site, controller: Controller, jobs: list[TraceJob]) -> None:
    """Nothing was lost, nothing ran twice, and the books are in order."""
    controller.scheduler.validate()
    assert not controller.scheduler.jobs
    assert not controller.roster
    store = controller.journal.store
    rows = {row["id"]: row for row in store.rows(select(schema.jobs))}
    assert sorted(rows) == [job.spec.id for job in jobs]
    for job in jobs:
        wanted = "rejected" if job.spec.request.gpus == 50 else "done"
        assert rows[job.spec.id]["state"] == wanted, rows[job.spec.id]
    _check_runs(site.machine)
    opened = select(schema.attempts).where(schema.attempts.c.ended.is_(None))
    assert not store.rows(opened)


def _check_runs(machine: Machine) -> None:
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
    assert set(finished.values()) == {1}
    used.sort()
    for one, other in pairwise(used):
        if one[:2] == other[:2]:
            assert one[3] <= other[2], f"{one} and {other} at the same time"


class Recurring(Fuse):
    """Burns through again and again, every `period` things."""

    def __init__(self, period: int, offset: int) -> None:
        super().__init__()
        self.period, self.offset = period, offset

    def burn(self) -> None:
        self.at = self.count + 1 if self.count % self.period == self.offset else 0
        super().burn()
