"""The promise of the design: simulated and live, the same batches give the same plans."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from virtual import Site
from workbench import owners

from dovetail.controller.parts import Parts, cluster_of
from dovetail.core.books import RECLAIMED
from dovetail.executors.fake import FakeExecutor
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.model.event import Event
from dovetail.model.job import JobSpec
from dovetail.model.node import Capabilities
from dovetail.model.plan import Plan
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.profiles import catalogue
from dovetail.recipes import RECIPES
from dovetail.simulator.loop import Simulation
from dovetail.simulator.spec import parse_cluster
from dovetail.simulator.world import World
from dovetail.speed.locality import Locality
from dovetail.speed.sensitivity import Sensitivity

ORDERINGS = (
    "fifo:skip=true",
    "fifo:backfill=conservative",
    "sjf",
    "srtf",
    "srtf:patience=50",
    "las:round=40",
    "las:thresholds=60/200",
    "priority:preempt=true",
    "fair-share",
    "tetris",
    "deadline",
    "las:round=40,min-run=60",
    "fifo:displace=lower",
    "sjf:backfill=easy,displace=lower,min-run=5",
)
COSTS = Costs(restart=3.0, first_start=1.0, checkpoint_every=5.0)
MODELS = ("resnet18", "gnmt", "")
Told = tuple[float, list[Event], Plan]


def trace(seed: int, count: int = 30, lent: float = 0.0) -> list[TraceJob]:
    """Random jobs; some at the same moment, some that cannot resume, one too large.

    A part of them lives on what is `lent`.
    """
    draw = Random(seed)
    jobs, at = [], 0.0
    for number in range(1, count + 1):
        at += draw.choice((0.0, 0.0, 3.0, draw.expovariate(0.2)))
        length = draw.choice((5.0, 20.0, draw.uniform(1, 120)))
        spec = JobSpec(
            number,
            f"j{number}",
            at,
            gang(99 if number == 7 else draw.choice((1, 1, 2, 4, 8))),
            tenant=draw.choice(("red", "blue")),
            user=draw.choice(("ann", "bob")),
            model=draw.choice(MODELS),
            priority=float(draw.randrange(3)),
            deadline=at + 500.0 + (8.0 if number % 2 else 0.0),
            estimate=length,
            group=draw.choice(("a", "b")),
            resumable=draw.random() < 0.8,
        )
        if draw.random() < lent:
            spec = spec._replace(priority=-1.0, resumable=True)
        jobs.append(TraceJob(spec, length))
    return jobs


def machines(text: str, latency: float | None) -> Cluster:
    cluster = parse_cluster(text)
    kinds = {pool.type: Capabilities(start_latency=latency) for pool in cluster.pools}
    return Cluster(cluster.nodes, kinds)


def simulated(site: Site, jobs: list[TraceJob]) -> list[Told]:
    """What the simulator decides for a trace, on a cluster and parts like the site's."""
    scheduler = site.make()
    engine = site.machine
    world = World(scheduler.cluster, engine.speed, engine.costs, engine.latency)
    if hasattr(scheduler.predictor, "told"):
        scheduler.predictor.told = world.truth
    told: list[Told] = []
    step = scheduler.step

    def noted(now: float, batch: list[Event]) -> Plan:
        plan = step(now, batch)
        told.append((now, list(batch), plan))
        return plan

    scheduler.step = noted  # type: ignore[method-assign]
    Simulation(scheduler, world, iter(jobs)).run()
    return told


def live(site: Site, jobs: list[TraceJob]) -> list[Told]:
    """What the controller decides for the same trace."""
    controller = site.open()
    told: list[Told] = []
    controller.watch = lambda now, batch, plan: told.append((now, list(batch), plan))
    site.drive(controller, jobs)
    controller.scheduler.validate()
    site.close()
    return told


def compare(folder: Path, policy: str, latency: float | None, seed: int, **more: Any) -> None:
    costs = more.pop("costs", COSTS)
    cluster = machines(more.pop("cluster", "2x4"), latency)
    speed = None
    if cluster.limits_cpu:
        speed = Sensitivity(catalogue(None), Locality())
    parts = Parts(
        policy, costs=costs, quotas=more.pop("quotas", None), tenancy=more.pop("tenancy", None)
    )
    site = Site(folder, cluster, parts, latency, speed=speed)
    jobs = trace(seed, lent=0.4 if parts.tenancy else 0.0)
    expected, got = simulated(site, jobs), live(site, jobs)
    assert len(expected) > 0.8 * len(jobs)
    actions = [action for _, _, plan in got for action in plan.actions]
    if latency is not None and "srtf" in policy:
        assert any(getattr(action, "awaits", ()) for action in actions)
    if parts.tenancy:
        assert any(getattr(action, "cause", "") == RECLAIMED for action in actions)
    for (now, batch, plan), (then, others, made) in zip(expected, got, strict=False):
        assert (then, made) == (now, plan), f"{batch} against {others}"
    assert len(got) == len(expected)


WITH_CPU = "2x4,cpus=24,mem=500"


@pytest.mark.parametrize("latency", [None, 0.0, 2.0])
@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_decide_alike_simulated_and_live(
    recipe: str, latency: float | None, tmp_path: Path
) -> None:
    joint = RECIPES[recipe].allocator != "proportional"
    compare(tmp_path, recipe, latency, 1, cluster=WITH_CPU if joint else "2x4")


@pytest.mark.parametrize("latency", [None, 1.0])
@pytest.mark.parametrize("policy", ORDERINGS)
def test_orderings_decide_alike_simulated_and_live(
    policy: str, latency: float | None, tmp_path: Path
) -> None:
    compare(tmp_path, policy, latency, 2)


@pytest.mark.parametrize("latency", [None, 0.0, 2.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("min_run", [1, 15])
def test_a_shared_box_with_quotas_decides_alike(
    latency: float | None, seed: int, min_run: int, tmp_path: Path
) -> None:
    policy = f"shared:min-run={min_run},patience=120"
    quotas = "ann=5,*=4,group:red=6"
    compare(tmp_path, policy, latency, seed, cluster=WITH_CPU, quotas=quotas)


@pytest.mark.parametrize("seed", range(3, 9))
def test_slow_stops_are_waited_for_alike(seed: int, tmp_path: Path) -> None:
    slow = Costs(restart=3.0, stop=4.0)
    compare(tmp_path, "srtf", 1.5, seed, costs=slow)


CELLS = owners("cells", red="nodes = 2", blue="nodes = 1\ngpus = [2, 1]").written()
SHARES = owners("shares", red="gpus = 8", blue="gpus = 5").written()


@pytest.mark.parametrize("latency", [None, 0.0, 2.0])
@pytest.mark.parametrize(
    ("policy", "tenancy"),
    [
        ("fifo:skip=true", CELLS),
        ("srtf", CELLS),
        ("las:round=40", CELLS),
        ("shared", CELLS),
        ("fifo:skip=true", SHARES),
        ("sjf:backfill=easy", SHARES),
    ],
    ids=["cells-fifo", "cells-srtf", "cells-las", "cells-shared", "shares-fifo", "shares-sjf"],
)
def test_tenants_get_the_same_simulated_and_live(
    policy: str, tenancy: str, latency: float | None, tmp_path: Path
) -> None:
    for seed in (1, 2, 3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        compare(folder, policy, latency, seed, cluster="4x4,cpus=24,mem=500", tenancy=tenancy)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("latency", [None, 0.0, 2.0])
def test_tenants_that_displace_their_own_do_not_reclaim_from_each_other_for_ever(
    latency: float | None, seed: int, tmp_path: Path
) -> None:
    compare(tmp_path, "srtf", latency, seed, cluster="4x4,cpus=24,mem=500", tenancy=SHARES)


def test_the_cluster_of_an_engine_is_the_one_it_was_made_of(tmp_path: Path) -> None:
    site = Site(tmp_path, machines(WITH_CPU, 1.0), latency=1.0)
    made = cluster_of(FakeExecutor(site.machine))
    assert made.pools == site.machine.cluster.pools
    assert list(made.nodes) == list(site.machine.cluster.nodes)
