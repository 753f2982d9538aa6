"""The live controller under load: durable data base, fake machines, time that jumps in paces.

Everything a controller does is real but the machines: turns, transactions that are on disk when
they return, reports of engines. Time jumps by one pace a turn, so that a turn takes in what a live
one would and the rates are those of a controller that never sleeps.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from dovetail.controller.commands import Submit
from dovetail.controller.finding import Filter
from dovetail.controller.journal import Journal
from dovetail.controller.loop import Controller, Settings
from dovetail.controller.parts import Parts, composer
from dovetail.controller.reading import describe, history
from dovetail.controller.store import Store
from dovetail.controller.submission import Submission
from dovetail.executors.fake import FakeExecutor, Machine
from dovetail.model.costs import Costs
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.simulator.spec import parse_cluster
from dovetail.speed.locality import Locality

PACE = 0.1
BULK = 1000
"""Jobs in one command."""


class Spent(NamedTuple):
    """Seconds on the clock, waiting for the disk included, and seconds of CPU."""

    clock: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: object) -> Spent:
        assert isinstance(other, Spent)
        return Spent(self.clock + other.clock, self.cpu + other.cpu)

    def per(self, count: int) -> dict[str, float]:
        """So many things were done in it."""
        return {
            "rate": round(count / self.clock),
            "ms": round(1e3 * self.clock / count, 3),
            "cpu_ms": round(1e3 * self.cpu / count, 3),
        }


def spent(work: Callable[[], object]) -> Spent:
    """What something takes."""
    begun, used = time.perf_counter(), time.process_time()
    work()
    return Spent(time.perf_counter() - begun, time.process_time() - used)


class Clock:
    """Time that jumps when it is told to."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return 1_700_000_000.0 + self.now

    def boot(self) -> str:
        return "bench"


class Site:
    """Fake machines and a data folder."""

    def __init__(self, folder: Path, cluster: str, policy: str, seed: int = 1) -> None:
        self.folder, self.clock, self.draw = folder, Clock(), Random(seed)
        self.parts = Parts(policy, costs=Costs(restart=0.0, stop=0.0))
        machines = parse_cluster(cluster)
        clock = self.clock.monotonic
        self.machine = Machine(machines, Locality(), self.parts.costs, clock, latency=PACE)
        self.store: Store | None = None

    def open(self) -> Controller:
        self.store = Store(f"sqlite:///{self.folder / 'dovetail.db'}")
        engine = FakeExecutor(self.machine)
        make = composer(self.parts, engine)
        settings = Settings(pace=PACE)
        return Controller(make, Journal(self.store), engine, settings, self.clock, self.parts)

    def close(self) -> None:
        if self.store is not None:
            self.store.close()

    def jobs(self, first: int, count: int) -> tuple[Submission, ...]:
        """New jobs, and their truth for the machines."""
        wanted = []
        for number in range(first, first + count):
            gpus, length = self.draw.choice((1, 1, 1, 2, 4, 8)), self.draw.uniform(10.0, 60.0)
            request = gang(gpus)
            self.machine.tell(TraceJob(JobSpec(number, f"j{number}", 0.0, request), length))
            wanted.append(Submission(("train",), request, f"j{number}", "ann", estimate=length))
        return tuple(wanted)

    def submit(self, controller: Controller, count: int, **more: Any) -> Spent:
        """Submit so many in bulk; returns what it took."""
        took = Spent()
        for first in range(0, count, BULK):
            some = self.jobs(controller.roster.next_id, min(BULK, count - first))
            wanted = tuple(replace(each, **more) for each in some) if more else some
            answer = controller.post(Submit(wanted))
            took += spent(controller.turn)
            answer.result(0)
        return took

    def step(self, controller: Controller) -> Spent:
        """One pace later; returns what the turn took."""
        self.clock.now += PACE
        return spent(controller.turn)


@contextmanager
def site(cluster: str, policy: str) -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as folder:
        made = Site(Path(folder), cluster, policy)
        try:
            yield made
        finally:
            made.close()


def drain(cluster: str, policy: str, jobs: int) -> dict[str, float]:
    """All jobs from submission to their ends."""
    with site(cluster, policy) as here:
        controller = here.open()
        took = here.submit(controller, jobs)
        while controller.roster:
            took += here.step(controller)
        controller.scheduler.validate()
    return took.per(jobs)


def bulk(cluster: str, policy: str, jobs: int) -> dict[str, float]:
    """Submission alone, a thousand at a time, to a cluster that is full."""
    with site(cluster, policy) as here:
        return here.submit(here.open(), jobs).per(jobs)


def single(cluster: str, policy: str, jobs: int) -> dict[str, float]:
    """Submission one by one, each on disk before the next."""
    with site(cluster, policy) as here:
        controller, took = here.open(), Spent()
        for _ in range(jobs):
            took += here.submit(controller, 1)
    return took.per(jobs)


def restart(cluster: str, policy: str, jobs: int, snapshot: bool = False) -> dict[str, float]:
    """A controller that was killed, to the first decision of the next; then what people ask it."""
    with site(cluster, policy) as here:
        controller = here.open()
        here.submit(controller, jobs)
        here.step(controller)
        if snapshot:
            controller.journal.snapshot(controller.scheduler)
        here.close()
        opened: list[Controller] = []
        took = spent(lambda: opened.append(here.open())) + here.step(opened[0])
        why = _why(opened[0])
    return {**took.per(1), "why_cpu_ms": why}


def decide(cluster: str, policy: str, jobs: int, turns: int) -> dict[str, float]:
    """Turns of a full cluster with so many waiting, refilled as they start: the 99th percentile."""
    with site(cluster, policy) as here:
        controller, times = here.open(), []
        capacity = controller.scheduler.cluster.gpus
        while controller.scheduler.cluster.idle > 0 and len(controller.roster) < capacity:
            here.submit(controller, BULK)
        here.submit(controller, jobs)
        for _ in range(turns):
            times.append(here.step(controller))
            waiting = len(controller.roster) - controller.scheduler.running
            if waiting < jobs - 100:
                here.submit(controller, jobs - waiting)
        why = _why(controller)
    place = int(0.99 * len(times))
    slow = Spent(*(sorted(each)[place] for each in zip(*times, strict=True)))
    return {**slow.per(1), "why_cpu_ms": why}


def snapshot(cluster: str, policy: str, jobs: int) -> dict[str, float]:
    """Turns while a snapshot of so many waiting jobs is written: the longest, and its part of what
    writing it at once takes.
    """
    with site(cluster, policy) as here:
        controller = here.open()
        journal = controller.journal
        turns: list[Spent] = []
        here.submit(controller, jobs)
        journal.every = 1
        while not turns or journal.snapshots.busy:
            # Others have a moment between turns, as live.
            time.sleep(PACE / 10)
            turns.append(here.submit(controller, 1))
            journal.every = 10 * jobs
        whole = spent(lambda: journal.snapshot(controller.scheduler))
        longest = max(turns)
        journal.close()
    return {**longest.per(1), "turns": len(turns), "part": round(longest.clock / whole.clock, 3)}


def pages(cluster: str, policy: str, jobs: int) -> dict[str, float]:
    """Pages of the history of so many jobs, from its beginning and from its middle: the slowest."""
    with site(cluster, policy) as here:
        controller = here.open()
        # Jobs that can never fit have ended as soon as they are submitted.
        here.submit(controller, jobs, request=gang(9999))
        middle = (history(controller, 1)[0].ended or 0.0, jobs // 2)
        asked: list[Callable[[], object]] = [
            lambda: history(controller, 100),
            lambda: history(controller, 100, before=middle),
            lambda: history(controller, 100, Filter(owner="ann", state="rejected")),
            lambda: history(controller, 100, Filter(owner="bob")),
        ]
        return max(spent(ask) for ask in asked).per(1)


def _why(controller: Controller) -> float:
    """Milliseconds for the reason why the last of all jobs waits."""
    last = max(controller.roster)
    return round(1e3 * spent(lambda: describe(controller, last)).cpu, 2)


KINDS: dict[str, Callable[..., dict[str, float]]] = {
    "drain": drain,
    "bulk": bulk,
    "single": single,
    "restart": restart,
    "decide": decide,
    "snapshot": snapshot,
    "pages": pages,
}
