"""A controller on virtual time: the same turns as live, driven by a clock that jumps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from functools import cached_property
from pathlib import Path
from typing import Any

from dovetail.controller.commands import Submit
from dovetail.controller.journal import Journal
from dovetail.controller.loop import Controller, Settings
from dovetail.controller.parts import Parts, composer
from dovetail.controller.store import Store
from dovetail.controller.submission import Submission
from dovetail.core.scheduler import Scheduler
from dovetail.executors.fake import FakeExecutor, Machine
from dovetail.model.cluster import Cluster
from dovetail.model.job import JobSpec
from dovetail.model.trace import TraceJob
from dovetail.simulator.spec import parse_cluster
from dovetail.speed.locality import Locality

NEVER = float("inf")


class VirtualClock:
    """Time that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.jump = 0.0
        self.booted = "first"

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return 1_700_000_000.0 + self.now + self.jump

    def boot(self) -> str:
        return self.booted


class AtOnce(Executor):
    """Does what a thread would do later, so that every run is the same."""

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*given, **named))
        return done


def submission(spec: JobSpec, **more: Any) -> Submission:
    """What somebody would have to ask for to get this job."""
    return Submission(
        ("train", spec.name),
        spec.request,
        spec.name,
        owner=spec.user,
        tenant=spec.tenant,
        model=spec.model,
        priority=spec.priority,
        deadline=None if spec.deadline is None else spec.deadline - spec.submit,
        estimate=spec.estimate,
        group=spec.group,
        resumable=spec.resumable,
        retries=spec.retries,
        **more,
    )


class Site:
    """Machines, a data folder, and the controllers that come and go there."""

    def __init__(
        self,
        folder: Path,
        cluster: str | Cluster = "2x4",
        parts: Parts | None = None,
        latency: float | None = 0.0,
        *,
        url: str | None = None,
        oracle: bool = True,
        speed: Any = None,
        every: int = 1000,
        durable: bool = False,
        backoff: Callable[[int], float] = lambda failures: 0.0,
        **settings: Any,
    ) -> None:
        self.folder = folder
        self.url = url or f"sqlite:///{folder / 'dovetail.db'}"
        self.parts = parts or Parts()
        self.clock = VirtualClock()
        machines = parse_cluster(cluster) if isinstance(cluster, str) else cluster
        self.machine = Machine(
            machines, speed or Locality(), self.parts.costs, self.clock.monotonic, latency
        )
        self.every, self.durable, self.oracle = every, durable, oracle
        self.settings = Settings(backoff=backoff, **settings)
        self.store: Store | None = None

    @cached_property
    def make(self) -> Callable[[], Scheduler]:
        told = self.machine.truth if self.oracle else None
        return composer(self.parts, FakeExecutor(self.machine), told)

    def open(self, store: Store | None = None, executor: Any = None) -> Controller:
        """A controller, new or recovered."""
        self.store = store or Store(self.url, self.durable)
        journal = Journal(self.store, self.every, beside=AtOnce())
        engine = executor or FakeExecutor(self.machine)
        parts = None if self.oracle else self.parts
        return Controller(self.make, journal, engine, self.settings, self.clock, parts)

    def close(self) -> None:
        if self.store is not None:
            self.store.close()
            self.store = None

    def submit(self, controller: Controller, jobs: Sequence[TraceJob]) -> None:
        """Jobs whose ids are the next ones the controller gives."""
        for job in jobs:
            self.machine.tell(job)
        controller.post(Submit(tuple(submission(job.spec) for job in jobs)))

    def drive(self, controller: Controller, jobs: Sequence[TraceJob], most: int = 100_000) -> None:
        """Let time pass until nothing happens any more."""
        for _ in self.moments(controller, jobs, most):
            controller.turn()

    def moments(
        self, controller: Controller, jobs: Sequence[TraceJob], most: int = 100_000
    ) -> Iterator[None]:
        """Let time pass from one thing that happens to the next; each wants a turn."""
        ahead = deque(jobs)
        # What an engine tells of attempts it kept is there at once.
        yield
        for _ in range(most):
            coming = ahead[0].spec.submit if ahead else NEVER
            happens = min(coming, self.machine.next_at())
            now = min(happens, controller.next_at())
            idle = happens == NEVER and not controller.roster.resting
            if now == NEVER or (idle and not controller.scheduler.running):
                return
            self.clock.now = max(self.clock.now, now)
            due = []
            while ahead and ahead[0].spec.submit <= self.clock.now:
                due.append(ahead.popleft())
            if due:
                self.submit(controller, due)
            yield
        raise AssertionError("the jobs never end")
