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
from typing import Any

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
        settings = Settings(self.folder, pace=PACE)
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

    def submit(self, controller: Controller, count: int, **more: Any) -> float:
        """Submit so many in bulk; returns the seconds it took."""
        took = 0.0
        for first in range(0, count, BULK):
            some = self.jobs(controller.roster.next_id, min(BULK, count - first))
            wanted = tuple(replace(each, **more) for each in some) if more else some
            begun = time.perf_counter()
            answer = controller.post(Submit(wanted))
            controller.turn()
            answer.result(0)
            took += time.perf_counter() - begun
        return took

    def step(self, controller: Controller) -> float:
        """One pace later; returns the seconds of the turn."""
        self.clock.now += PACE
        begun = time.perf_counter()
        controller.turn()
        return time.perf_counter() - begun


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
        bulk = jobs / took
        while controller.roster:
            took += here.step(controller)
        controller.scheduler.validate()
    return {"rate": round(jobs / took), "ms": round(1e3 * took / jobs, 3), "bulk": round(bulk)}


def bulk(cluster: str, policy: str, jobs: int) -> dict[str, float]:
    """Submission alone, a thousand at a time, to a cluster that is full."""
    with site(cluster, policy) as here:
        took = here.submit(here.open(), jobs)
    return {"rate": round(jobs / took), "ms": round(1e3 * took / jobs, 3)}


def single(cluster: str, policy: str, jobs: int) -> dict[str, float]:
    """Submission one by one, each on disk before the next."""
    with site(cluster, policy) as here:
        controller, took = here.open(), 0.0
        for _ in range(jobs):
            took += here.submit(controller, 1)
    return {"rate": round(jobs / took), "ms": round(1e3 * took / jobs, 3)}


def restart(cluster: str, policy: str, jobs: int) -> dict[str, float]:
    """A controller that was killed, to the first decision of the next; then what people ask it."""
    with site(cluster, policy) as here:
        controller = here.open()
        here.submit(controller, jobs)
        here.step(controller)
        here.close()
        begun = time.perf_counter()
        controller = here.open()
        here.step(controller)
        took = time.perf_counter() - begun
        waiting = max(controller.roster)
        why = _timed(lambda: describe(controller, waiting))
    return {"rate": round(jobs / took), "ms": round(1e3 * took), "why_ms": why}


def decide(cluster: str, policy: str, jobs: int, turns: int) -> dict[str, float]:
    """Turns of a full cluster with so many waiting, refilled as they start."""
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
        times.sort()
        why = _timed(lambda: describe(controller, max(controller.roster)))
    p99 = times[int(0.99 * len(times))]
    return {
        "rate": round(len(times) / sum(times)),
        "ms": round(1e3 * p99, 1),
        "median_ms": round(1e3 * times[len(times) // 2], 1),
        "why_ms": why,
    }


def pages(cluster: str, policy: str, jobs: int) -> dict[str, float]:
    """Pages of the history of so many jobs, from its beginning to its end."""
    with site(cluster, policy) as here:
        controller = here.open()
        here.submit(controller, jobs, after=(), request=gang(9999))
        latest = history(controller, 1)[0]
        middle = (latest.ended or 0.0, jobs // 2)
        times = [
            _timed(lambda: history(controller, 100)),
            _timed(lambda: history(controller, 100, before=middle)),
            _timed(lambda: history(controller, 100, Filter(owner="ann", state="rejected"))),
            _timed(lambda: history(controller, 100, Filter(owner="bob"))),
        ]
    return {"rate": round(1e3 / max(times)), "ms": max(times)}


def _timed(ask: Callable[[], object]) -> float:
    begun = time.perf_counter()
    ask()
    return round(1e3 * (time.perf_counter() - begun), 2)


KINDS: dict[str, Callable[..., dict[str, float]]] = {
    "drain": drain,
    "bulk": bulk,
    "single": single,
    "restart": restart,
    "decide": decide,
    "pages": pages,
}
