"""A scheduler in one line, a world in a page: what the tests of decisions are made with.

`World` performs plans at rate 1 and knows the true lengths. It shares no code with the simulator,
so the two can be compared; it keeps its own books of who physically holds what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, NamedTuple

from dovetail.allocators.proportional import Proportional
from dovetail.core.scheduler import Scheduler
from dovetail.model.allocation import Allocation
from dovetail.model.cluster import Cluster
from dovetail.model.costs import FREE, Costs
from dovetail.model.event import (
    Event,
    Failed,
    Finished,
    NodeDown,
    Started,
    Stopped,
    Submitted,
    Wake,
)
from dovetail.model.job import JobSpec
from dovetail.model.node import Capabilities
from dovetail.model.plan import Change, Plan, Start, Stop
from dovetail.model.quota import read_quotas
from dovetail.model.request import Request, gang
from dovetail.placements import PLACEMENTS
from dovetail.planners import planner_for
from dovetail.predictors.oracle import Declared
from dovetail.recipes import policy as policy_of
from dovetail.simulator.spec import parse_cluster
from dovetail.speed.locality import Locality
from dovetail.tenancy.contracts import contracts_in
from dovetail.tenancy.kinds import Tenants, tenancy_of
from dovetail.tenancy.partitions import Partitions, dealt

NEVER = float("inf")


def spec(
    number: int, gpus: int = 1, at: float = 0.0, *, length: float = 1.0, **more: Any
) -> JobSpec:
    """A job that asks for some GPUs and declares its length truthfully."""
    request: Request = more.pop("request", None) or gang(gpus)
    name = more.pop("name", f"j{number}")
    return JobSpec(number, name, float(at), request, estimate=float(length), **more)


def owners(kind: str, **owned: str) -> Tenants:
    """Who owns what: `owners("cells", red="nodes = 1", blue="gpus = [2, 1]")`."""
    tables = [f'[[tenants]]\nname = "{name}"\n{each}\n' for name, each in owned.items()]
    return Tenants(kind, contracts_in("".join(tables), "tenants.toml"))


def acknowledging(cluster: Cluster, latency: float = 0.0) -> Cluster:
    """The same cluster with executors that confirm what they do."""
    kinds = {pool.type: Capabilities(start_latency=latency) for pool in cluster.pools}
    return Cluster(cluster.nodes, kinds)


def scheduler(
    cluster: str | Cluster = "2x4",
    policy: str = "fifo",
    placement: str = "best-fit",
    *,
    costs: Costs = FREE,
    partitions: dict[str, int] | None = None,
    tenants: Tenants | None = None,
    acknowledged: bool = False,
    planner: Callable[[Cluster], Any] | None = None,
    quotas: str | None = None,
) -> Scheduler:
    """A scheduler that believes what jobs declare."""
    machines = parse_cluster(cluster) if isinstance(cluster, str) else cluster
    if acknowledged:
        machines = acknowledging(machines)
    tenancy = (
        Partitions(machines, dealt(partitions, machines), lambda job: job.tenant)
        if partitions
        else tenancy_of(tenants, machines)
    )
    chosen, where = policy_of(policy), PLACEMENTS.create(placement)

    def default(view: Cluster) -> Any:
        limits = read_quotas(quotas)
        return planner_for(view, chosen.ordering(), where, Proportional(), costs, quotas=limits)

    return Scheduler(machines, tenancy, planner or default, Declared(), Locality(), costs)


class Instant(NamedTuple):
    """One step: when, what went in, what came out."""

    now: float
    batch: list[Event]
    plan: Plan

    @property
    def started(self) -> set[int]:
        return {action.job for action in self.plan.actions if isinstance(action, Start)}

    @property
    def stopped(self) -> set[int]:
        return {action.job for action in self.plan.actions if isinstance(action, Stop)}


class Life:
    """The truth about one job."""

    def __init__(self, job: JobSpec) -> None:
        self.spec = job
        assert job.estimate is not None
        self.left = job.estimate
        self.since = 0.0
        self.epoch = 0
        self.held: Allocation | None = None
        self.running = False


Happening = tuple[float, Event | Callable[["World"], Event | None]]


class World:
    """Performs plans, free of charge; with delays, it confirms starts and stops later."""

    def __init__(
        self,
        decider: Scheduler,
        jobs: Iterable[JobSpec],
        happenings: Sequence[Happening] = (),
        *,
        start_delay: float = 0.0,
        stop_delay: float = 0.0,
    ) -> None:
        self.scheduler = decider
        self.now = 0.0
        self.lives: dict[int, Life] = {}
        #: who ended how
        self.ended: dict[int, str] = {}
        #: seconds each job truly ran
        self.ran: dict[int, float] = {}
        self._arrivals = sorted(jobs, key=lambda job: (job.submit, job.id))
        self._happenings = sorted(happenings, key=lambda item: item[0])
        self._future: list[tuple[float, int, int, int, Event]] = []
        self._count = 0
        self._delays = (start_delay, stop_delay)
        self._acknowledges = any(
            pool.capabilities.start_latency is not None for pool in decider.cluster.pools
        )
        #: what is physically occupied: taking too much raises
        self.machines = decider.cluster.emptied()

    def instants(self, most: int = 10_000) -> Iterator[Instant]:
        """Step after step to the end."""
        wake: float | None = None
        for _ in range(most):
            now = self._next(wake)
            if now == NEVER:
                return
            self.now = now
            batch = self._batch(now, wake)
            plan = self.scheduler.step(now, batch)
            wake = plan.wake_at
            self._perform(plan)
            for job, _ in self.scheduler.ended:
                assert job.spec.id not in self.ended, f"{job} ended twice"
                self.ended[job.spec.id] = str(job.status)
                self._leave(job.spec.id)
            yield Instant(now, batch, plan)
        raise AssertionError(f"no end after {most} instants")

    def run(self) -> list[Instant]:
        return list(self.instants())

    def _leave(self, number: int) -> None:
        life = self.lives.pop(number)
        if life.held is not None:
            self._let_go(life)

    def _next(self, wake: float | None) -> float:
        while self._future and not self._live(self._future[0]):
            heappop(self._future)
        times = [self._future[0][0]] if self._future else []
        times += [job.submit for job in self._arrivals[:1]]
        times += [item[0] for item in self._happenings[:1]]
        # A wake alone keeps nothing going: with no event in sight, nothing can change.
        if wake is not None and times:
            times.append(wake)
        return min(times, default=NEVER)

    def _live(self, entry: tuple[float, int, int, int, Event]) -> bool:
        life = self.lives.get(entry[2])
        return life is not None and life.epoch == entry[3]

    def _batch(self, now: float, wake: float | None) -> list[Event]:
        batch: list[Event] = []
        while self._future and self._future[0][0] <= now:
            entry = heappop(self._future)
            if self._live(entry):
                batch.append(self._happened(entry[4]))
        while self._happenings and self._happenings[0][0] <= now:
            event = self._happenings.pop(0)[1]
            found = event(self) if callable(event) else event
            if found is not None:
                self._suffer(found)
                batch.append(found)
        while self._arrivals and self._arrivals[0].submit <= now:
            job = self._arrivals.pop(0)
            self.lives[job.id] = Life(job)
            batch.append(Submitted(job))
        if wake is not None and wake <= now:
            batch.append(Wake())
        return batch

    def _happened(self, event: Event) -> Event:
        if isinstance(event, Finished):
            life = self.lives[event.job]
            self._halt(life)
            self._let_go(life)
        elif isinstance(event, Stopped):
            self._let_go(self.lives[event.job])
        return event

    def _suffer(self, event: Event) -> None:
        """Things from outside: what a node or a job loses when it breaks."""
        if isinstance(event, NodeDown):
            for life in self.lives.values():
                parts = life.held.parts if life.held is not None else ()
                if any(part.node == event.node for part in parts):
                    self._crash(life)
        elif isinstance(event, Failed) and event.job in self.lives:
            self._crash(self.lives[event.job])

    def _crash(self, life: Life) -> None:
        self._halt(life)
        assert life.spec.estimate is not None
        done = life.spec.estimate - life.left
        life.left = life.spec.estimate - self.scheduler.costs.kept(done, life.spec.resumable)
        if life.held is not None:
            self._let_go(life)

    def _perform(self, plan: Plan) -> None:
        """Action by action; jobs that change places are lifted together, before the first lands."""
        moves = [action for action in plan.actions if isinstance(action, Change)]
        for action in plan.actions:
            if isinstance(action, Stop):
                self._stop(self.lives[action.job])
            elif isinstance(action, Change):
                self._lift(moves)
                moves = []
                self._land(action, fresh=False)
            elif isinstance(action, Start) and not action.awaits:
                self._land(action, fresh=True)

    def _lift(self, moves: list[Change]) -> None:
        for move in moves:
            self._halt(self.lives[move.job])
            self._let_go(self.lives[move.job])

    def _land(self, action: Start | Change, fresh: bool) -> None:
        life = self.lives[action.job]
        self.machines.take(action.allocation)
        life.held = action.allocation
        self._go(life, fresh)

    def _go(self, life: Life, fresh: bool) -> None:
        begin = self.now
        if self._acknowledges and fresh:
            begin += self._delays[0]
            assert life.held is not None
            self._later(begin, life, Started(life.spec.id, life.held))
        life.since, life.running = begin, True
        self._later(begin + life.left, life, Finished(life.spec.id))

    def _stop(self, life: Life) -> None:
        if life.held is None:
            return  # a start that was still waiting for its devices
        self._halt(life)
        if self._acknowledges:
            self._later(self.now + self._delays[1], life, Stopped(life.spec.id))
        else:
            self._let_go(life)

    def _halt(self, life: Life) -> None:
        if life.running:
            ran = max(0.0, self.now - life.since)
            life.left -= ran
            self.ran[life.spec.id] = self.ran.get(life.spec.id, 0.0) + ran
        life.running = False
        life.epoch += 1

    def _let_go(self, life: Life) -> None:
        assert life.held is not None
        self.machines.release(life.held)
        life.held = None

    def _later(self, time: float, life: Life, event: Event) -> None:
        self._count += 1
        heappush(self._future, (time, self._count, life.spec.id, life.epoch, event))
