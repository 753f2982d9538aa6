"""Schedulers with joint allocators, and a world in which speed depends on CPU and memory.

The world is the workbench's, which shares no code with the simulator: it keeps its own books of who
physically holds what, so whoever is given more than there is makes it fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from workbench import Happening, Life, World, acknowledging, spec

from dovetail.allocators import ALLOCATORS
from dovetail.core.claims import Curves
from dovetail.core.scheduler import Scheduler
from dovetail.model.cluster import Cluster
from dovetail.model.costs import FREE, Costs
from dovetail.model.event import Finished, Started
from dovetail.model.job import JobSpec
from dovetail.model.profile import Profile
from dovetail.model.quota import read_quotas
from dovetail.placements import PLACEMENTS
from dovetail.planners import planner_for
from dovetail.predictors.oracle import Declared
from dovetail.profiles import published
from dovetail.recipes import policy as policy_of
from dovetail.simulator.spec import parse_cluster
from dovetail.speed.locality import Locality
from dovetail.speed.sensitivity import Sensitivity
from dovetail.tenancy.partitions import Partitions, dealt
from dovetail.tenancy.whole import Whole

STANDARD = "2x8,cpus=24,mem=500"
"""Two of Synergy's servers: 3 cores and 62.5 GiB go with each GPU."""

MODELS = tuple(published())


def tuned(
    cluster: str | Cluster = STANDARD,
    policy: str = "fifo",
    allocator: str = "tune",
    placement: str = "best-fit",
    *,
    costs: Costs = FREE,
    partitions: dict[str, int] | None = None,
    acknowledged: bool = False,
    span_penalty: float = 0.0,
    profiles: dict[str, Profile] | None = None,
    quotas: str | None = None,
) -> Scheduler:
    """A scheduler that believes what jobs declare and knows the published models."""
    machines = parse_cluster(cluster) if isinstance(cluster, str) else cluster
    if acknowledged:
        machines = acknowledging(machines)
    tenancy = (
        Partitions(machines, dealt(partitions, machines), lambda job: job.tenant)
        if partitions
        else Whole(machines)
    )
    known = profiles or published()
    chosen, where = policy_of(policy), PLACEMENTS.create(placement)
    sharing = ALLOCATORS.create(allocator)

    def make(view: Cluster) -> Any:
        curves = Curves(view, known, span_penalty)
        fallback = ALLOCATORS.create("proportional")
        limits = read_quotas(quotas)
        return planner_for(view, chosen.ordering(), where, sharing, costs, curves, fallback, limits)

    speed = Sensitivity(known, Locality(span_penalty))
    return Scheduler(machines, tenancy, make, Declared(), speed, costs)


def job(
    number: int, gpus: int = 1, at: float = 0.0, model: str = "alexnet", **more: Any
) -> JobSpec:
    """A job of a published model."""
    return spec(number, gpus, at, model=model, **more)


class SensitiveWorld(World):
    """Jobs run as fast as the scheduler's speed model says of what they truly hold."""

    def __init__(
        self,
        decider: Scheduler,
        jobs: Iterable[JobSpec],
        happenings: Sequence[Happening] = (),
        **delays: float,
    ) -> None:
        super().__init__(decider, jobs, happenings, **delays)
        self.rates: dict[int, float] = {}
        #: when a job that was sent off begins
        self.begins: dict[int, float] = {}

    def _go(self, life: Life, fresh: bool) -> None:
        number, held = life.spec.id, life.held
        assert held is not None
        begin = self.now
        if self._acknowledges and fresh:
            begin += self._delays[0]
        elif self._acknowledges:
            begin = max(begin, self.begins.get(number, 0.0))
        if self._acknowledges and begin >= self.now and (fresh or begin > self.now):
            self._later(begin, life, Started(number, held))
        self.begins[number] = begin
        self.rates[number] = self.scheduler.speed.rate(life.spec, held, self.scheduler.cluster)
        life.since, life.running = begin, True
        self._later(begin + life.left / self.rates[number], life, Finished(number))

    def _halt(self, life: Life) -> None:
        if life.running:
            ran = max(0.0, self.now - life.since)
            life.left = max(0.0, life.left - ran * self.rates[life.spec.id])
            self.ran[life.spec.id] = self.ran.get(life.spec.id, 0.0) + ran
        life.running = False
        life.epoch += 1
