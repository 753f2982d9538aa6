"""Single decisions to be timed: one plan of a joint allocator, or one solved program."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from dovetail.allocators import ALLOCATORS
from dovetail.allocators.ideal import ideal
from dovetail.core.claims import Claim, Curves
from dovetail.model.costs import Costs
from dovetail.model.job import Job, JobSpec
from dovetail.model.request import gang
from dovetail.orderings import ORDERINGS
from dovetail.placements import PLACEMENTS
from dovetail.planners import planner_for
from dovetail.profiles import published
from dovetail.simulator.spec import read_spec


def workload(jobs: int, seed: int = 3) -> list[tuple[int, str]]:
    """GPUs and model of so many jobs: the mix of Synergy's generator, models evenly drawn."""
    rng, names = Random(seed), sorted(published())
    sizes = rng.choices((1, 2, 4, 8), (0.70, 0.10, 0.15, 0.05), k=jobs)
    return [(gpus, rng.choice(names)) for gpus in sizes]


def plan(cluster: str, policy: str, allocator: str, jobs: int) -> Callable[[], object]:
    """One plan for an empty cluster and so many waiting jobs. Planning changes nothing."""
    machines = read_spec(cluster).cluster
    planner = planner_for(
        machines,
        ORDERINGS.create(policy),
        PLACEMENTS.create("best-fit"),
        ALLOCATORS.create(allocator),
        Costs(),
        Curves(machines, published()),
        ALLOCATORS.create("proportional"),
    )
    for number, (gpus, model) in enumerate(workload(jobs)):
        spec = JobSpec(number, f"j{number}", 0.0, gang(gpus), model=model)
        planner.submitted(Job(spec, 3600.0 + number), 0.0)
    return lambda: planner.plan(0.0)


def solve(cluster: str, jobs: int) -> Callable[[], object]:
    """The ideal amounts for as many of the jobs as the cluster has GPUs for."""
    machines = read_spec(cluster).cluster
    curves = Curves(machines, published())
    left, claims = machines.gpus, []
    for number, (gpus, model) in enumerate(workload(jobs)):
        curve = curves.of(model, 0, gang(gpus).alternatives[0].groups[0].each)
        if gpus <= left and curve is not None:
            claims.append(Claim(number, gpus, curve))
            left -= gpus
    return lambda: ideal(claims, sum(machines.cpu), sum(machines.memory))


KINDS: dict[str, Callable[..., Callable[[], object]]] = {"plan": plan, "solve": solve}
