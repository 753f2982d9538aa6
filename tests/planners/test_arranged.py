"""Joint allocators under every ordering: nobody lost, nothing over-committed, plans pure and final.

The keys of `srtf`, `srsf` and `finish-time-fairness` are times left, which depend on the speed a
job was granted: after their own plan they may want another. All other orderings must settle.
"""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from sensitive_world import MODELS, STANDARD, SensitiveWorld, job, tuned
from workbench import Instant

from dovetail.core.scheduler import Scheduler
from dovetail.model.allocation import Difference, Part, allocation_of, classify
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.model.event import (
    Freed,
    Held,
    NodeDown,
    NodeDraining,
    NodeUp,
    Submitted,
)
from dovetail.model.job import JobSpec
from dovetail.model.node import Capabilities
from dovetail.model.plan import Change, Start
from dovetail.orderings import BUILTIN as ORDERINGS
from dovetail.simulator.spec import parse_cluster

ALLOCATORS = ("proportional", "greedy", "tune", "optimal")
RATED = ("srtf", "srsf", "finish-time-fairness")
SETTLING = [name for name in ORDERINGS if name not in RATED]


def random_jobs(seed: int, count: int = 24, span: int = 60, length: int = 80) -> list[JobSpec]:
    """Gangs of published models, and some of no model, within a minute."""
    rng = Random(seed)
    times = sorted(rng.randrange(span) for _ in range(count))
    return [
        job(
            number,
            rng.choice([1, 1, 1, 2, 4, 8]),
            at,
            rng.choice([*MODELS, ""]),
            length=rng.randrange(1, length),
            priority=float(rng.randrange(3)),
            tenant=rng.choice(["red", "blue"]),
            deadline=at + 300.0,
            retries=9,
        )
        for number, at in enumerate(times)
    ]


def assert_nobody_slower_than_fair(decider: Scheduler) -> None:
    """Running jobs of a model are as fast as with their proportional share, looked up anew."""
    profiles = decider.speed.profiles  # type: ignore[attr-defined]
    for each in decider.jobs.values():
        if each.allocation is None or each.spec.model not in profiles:
            continue
        profile = profiles[each.spec.model]
        for part in each.allocation.parts:
            node, gpus = decider.cluster.nodes[part.node], part.devices.bit_count()
            fair = profile.rate(node.cpu / node.gpus / 1000, node.memory / node.gpus / 1024)
            assert profile.rate(part.cpu / gpus / 1000, part.memory / gpus / 1024) >= fair - 1e-9


def finish(world: SensitiveWorld, jobs: list[JobSpec], fair: bool = False) -> list[Instant]:
    """Run to the end, checking the books at every instant; everybody must be done."""
    instants = []
    for instant in world.instants(4000):
        world.scheduler.validate()
        if fair:
            assert_nobody_slower_than_fair(world.scheduler)
        instants.append(instant)
    assert {number: how for number, how in world.ended.items() if how != "done"} == {}
    assert sorted(world.ended) == [each.id for each in jobs]
    for cluster in (world.scheduler.cluster, world.machines):
        fresh = cluster.emptied()
        assert (cluster.masks, cluster.cpu, cluster.memory) == (
            fresh.masks,
            fresh.cpu,
            fresh.memory,
        )
    return instants


# ---- every ordering ----------------------------------------------------------------------------


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize(
    "policy", [*ORDERINGS, "fifo:skip=true,preempt=true", "fifo:backfill=easy"]
)
def test_all_jobs_are_done_under_every_ordering(policy: str, allocator: str) -> None:
    for seed in range(1 if allocator == "optimal" else 2):
        jobs = random_jobs(seed, count=14)
        world = SensitiveWorld(tuned(policy=policy, allocator=allocator), jobs)
        finish(world, jobs, fair=allocator in ("tune", "optimal"))
        held = sum(world.ran[each.id] * each.request.milli_gpus for each in jobs)
        assert world.scheduler.served[0] == pytest.approx(held)


@pytest.mark.parametrize("allocator", ["tune", "optimal"])
def test_jobs_that_do_not_profit_take_exactly_their_time(allocator: str) -> None:
    jobs = [each._replace(model="gnmt") for each in random_jobs(7)]
    world = SensitiveWorld(tuned(policy="srtf", allocator=allocator), jobs)
    finish(world, jobs)
    assert world.ran == pytest.approx({each.id: each.estimate for each in jobs})


@pytest.mark.parametrize("placement", ["best-fit", "first-fit", "consolidated", "random"])
def test_every_kind_of_placement_goes_with_tune(placement: str) -> None:
    for seed in range(3):
        jobs = random_jobs(seed)
        world = SensitiveWorld(tuned(policy="srtf", placement=placement), jobs)
        instants = finish(world, jobs, fair=True)
        if placement == "consolidated":
            starts = [a for i in instants for a in i.plan.actions if isinstance(a, Start | Change)]
            assert all(len(start.allocation.parts) == 1 for start in starts)


def lasting(cluster: str = STANDARD) -> Cluster:
    """Machines whose executor can neither resize nor move a running job."""
    machines = parse_cluster(cluster)
    able = Capabilities(resize_in_place=False, move=False, start_latency=0.5)
    return Cluster(machines.nodes, {pool.type: able for pool in machines.pools})


@pytest.mark.parametrize("allocator", ["tune", "optimal"])
@pytest.mark.parametrize("policy", ["fifo", "srtf", "las:thresholds=20/60"])
def test_what_runs_is_left_as_it_is_where_it_cannot_be_changed(policy: str, allocator: str) -> None:
    for seed in range(1 if allocator == "optimal" else 4):
        jobs = random_jobs(seed)
        world = SensitiveWorld(tuned(lasting(), policy, allocator), jobs)
        instants = finish(world, jobs, fair=True)
        assert not [a for i in instants for a in i.plan.actions if isinstance(a, Change)]


def test_where_amounts_are_final_free_gpus_keep_their_shares() -> None:
    """Otherwise the first job has all cores, and nobody who comes later can begin."""
    jobs = [job(number, 4, at=number, model="alexnet", length=50) for number in range(4)]
    decider = tuned(lasting("2x8,cpus=24,mem=500"))
    world = SensitiveWorld(decider, jobs)
    for instant in world.instants():
        if instant.now >= 3:
            break
    assert decider.running == 4


@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_a_wide_job_runs_over_several_servers_with_equal_parts(penalty: float) -> None:
    jobs = [job(0, 12, model="res18", length=50), job(1, 4, model="gnmt", length=50)]
    decider = tuned(span_penalty=penalty)
    world = SensitiveWorld(decider, jobs)
    first = next(world.instants())
    wide = decider.jobs[0].allocation
    assert wide is not None and wide.gpus == 12
    assert first.started == {0, 1}
    assert (
        len({(p.cpu / p.devices.bit_count(), p.memory / p.devices.bit_count()) for p in wide.parts})
        == 1
    )
    finish(world, jobs)


# ---- pure, final, continued --------------------------------------------------------------------


def state(decider: Scheduler) -> Any:
    cluster = decider.cluster
    books = (bytes(cluster.free), [*cluster.masks], [*cluster.cpu], [*cluster.memory])
    held = [(each.spec.id, str(each.status), each.allocation) for each in decider.jobs.values()]
    return books, held


def observed(decider: Scheduler) -> None:
    """Ask for every plan twice: both must be equal, and asking must change nothing."""
    planner = decider.planners[0]
    plan = planner.plan

    def ask(now: float) -> Any:
        before = state(decider)
        first = plan(now)
        assert state(decider) == before, "planning changed what it looked at"
        assert plan(now) == first, "the same input gave another plan"
        return first

    planner.plan = ask  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("policy", "allocator"),
    [
        *((each, "tune") for each in (*ORDERINGS, "fifo:skip=true,preempt=true")),
        *((each, "optimal") for each in ("fifo", "srtf")),
    ],
)
def test_planning_is_pure(policy: str, allocator: str) -> None:
    jobs = random_jobs(11)
    decider = tuned(policy=policy, allocator=allocator)
    observed(decider)
    finish(SensitiveWorld(decider, jobs), jobs)


@pytest.mark.parametrize("policy", SETTLING)
def test_planning_again_after_a_plan_changes_nothing(policy: str) -> None:
    jobs = random_jobs(12)
    decider = tuned(policy=policy, costs=Costs(restart=30.0))
    for instant in SensitiveWorld(decider, jobs).instants(4000):
        planner = decider.planners[0]
        planner.advance(instant.now)
        planner.inner.capacity_changed()  # type: ignore[attr-defined]
        assert planner.plan(instant.now) == []


@pytest.mark.parametrize("walls", [None, {"red": 1, "blue": 1}])
@pytest.mark.parametrize("acknowledged", [False, True])
@pytest.mark.parametrize("policy", ["fifo", "srtf", "las"])
def test_a_fork_in_mid_run_continues_identically(
    policy: str, acknowledged: bool, walls: dict[str, int] | None
) -> None:
    def make() -> Scheduler:
        return tuned(policy=policy, acknowledged=acknowledged, partitions=walls)

    jobs, original, forks = random_jobs(13), make(), list[Scheduler]()
    delay = 2.0 if acknowledged else 0.0
    world = SensitiveWorld(original, jobs, start_delay=delay, stop_delay=delay)
    for number, (now, batch, plan) in enumerate(world.instants(4000)):
        for fork in forks:
            assert fork.step(now, batch).actions == plan.actions
        if number % 9 == 4:
            forks.append(make())
            forks[-1].restore(json.loads(json.dumps(original.snapshot())))
            forks[-1].validate()
    assert len(forks) > 2
    for fork in forks:
        assert not fork.jobs
        assert fork.served == original.served


# ---- what changes cost -------------------------------------------------------------------------


def test_a_change_in_place_is_free_and_a_move_is_charged() -> None:
    costs = Costs(restart=50.0, move=7.0)
    jobs = random_jobs(14, count=40, length=4000)
    decider = tuned("4x8,cpus=24,mem=500", "srtf", costs=costs)
    kinds: Counter[Difference] = Counter()
    before: dict[int, Any] = {}
    for instant in SensitiveWorld(decider, jobs).instants(4000):
        for action in instant.plan.actions:
            if isinstance(action, Change):
                held, paid = before[action.job]
                kind = classify(held, action.allocation)
                kinds[kind] += 1
                left = max(0.0, paid - instant.now)
                charged = max(left, 7.0) if kind is Difference.MOVE else left
                assert decider.jobs[action.job].overhead == pytest.approx(charged)
        before = {
            n: (each.allocation, each.since + each.overhead) for n, each in decider.jobs.items()
        }
    assert kinds[Difference.IN_PLACE] > 20
    assert decider.moves == kinds[Difference.MOVE] > 0


def test_nobody_moves_where_a_move_costs_more_than_it_can_earn() -> None:
    jobs = random_jobs(15, count=40)
    decider = tuned("4x8,cpus=24,mem=500", "fifo", costs=Costs(restart=0.0, move=1e9))
    finish(SensitiveWorld(decider, jobs), jobs, fair=True)
    assert decider.moves == 0


def test_when_a_neighbour_leaves_its_cores_are_handed_out_at_once() -> None:
    jobs = [
        job(0, length=500, model="res18"),
        *(job(n, 1, model="res18", length=100) for n in range(1, 8)),
    ]
    decider = tuned("1x8,cpus=24,mem=500")
    world = SensitiveWorld(decider, jobs)
    rates = [decider.jobs[0].rate for _ in world.instants() if 0 in decider.jobs]
    assert rates[0] == 1.0
    assert rates[-1] == pytest.approx(2.4)


@pytest.mark.parametrize("policy", ["dominant-share", "fair-share"])
def test_what_tenants_hold_follows_every_resize(policy: str) -> None:
    jobs = random_jobs(3)
    decider = tuned(policy=policy)
    for _ in SensitiveWorld(decider, jobs).instants(4000):
        held = dict.fromkeys(["red", "blue"], (0, 0, 0))
        for each in decider.jobs.values():
            if each.allocation:
                now = each.allocation.milli_gpus, each.allocation.cpu, each.allocation.memory
                before = held[each.spec.tenant]
                held[each.spec.tenant] = (
                    before[0] + now[0],
                    before[1] + now[1],
                    before[2] + now[2],
                )
        view = decider.planners[0].inner.view  # type: ignore[attr-defined]
        assert {**dict.fromkeys(held, (0, 0, 0)), **view.held} == held


# ---- when things go wrong ----------------------------------------------------------------------


def outages(seed: int, nodes: int = 2) -> list[tuple[float, Any]]:
    rng, found = Random(seed), list[tuple[float, Any]]()
    for _ in range(4):
        at, node = rng.randrange(150), rng.randrange(nodes)
        gone = rng.choice([NodeDown, NodeDraining])(node)
        found += [(float(at), gone), (float(at + rng.randrange(1, 60)), NodeUp(node))]
    return found


@pytest.mark.parametrize("allocator", ["tune", "optimal"])
@pytest.mark.parametrize("policy", ["fifo", "srtf", "las", "fifo:skip=true,preempt=true"])
def test_nodes_that_fail_or_drain_lose_nobody(policy: str, allocator: str) -> None:
    for seed in range(3 if allocator == "tune" else 1):
        jobs = random_jobs(seed)
        decider = tuned(policy=policy, allocator=allocator)
        finish(SensitiveWorld(decider, jobs, outages(seed)), jobs, fair=True)


def test_nobody_comes_to_a_draining_node() -> None:
    jobs = random_jobs(3, count=40)
    decider = tuned(policy="srtf")
    world = SensitiveWorld(decider, jobs, [(20.0, NodeDraining(1)), (90.0, NodeUp(1))])
    there: set[int] = set()
    for instant in world.instants(4000):
        held = {
            n
            for n, each in decider.jobs.items()
            if each.allocation and any(p.node == 1 for p in each.allocation.parts)
        }
        if 20.0 < instant.now < 90.0:
            assert held <= there
        there = held


def test_what_others_hold_is_left_to_them() -> None:
    foreign = allocation_of((Part(0, 0b11, 6000, 128_000),))
    decider = tuned(policy="srtf")
    decider.step(0.0, [Held("slurm", foreign)])
    for number, each in enumerate(random_jobs(5, span=1)):
        decider.step(1.0 + number, [Submitted(each)])
        decider.validate()
        assert decider.cluster.masks[0] & 0b11 == 0
    decider.step(99.0, [Freed("slurm")])
    decider.validate()
    assert any(part.devices & 0b11 for part in parts_on(decider, 0))


def parts_on(decider: Scheduler, node: int) -> list[Part]:
    held = [each.allocation for each in decider.jobs.values() if each.allocation]
    return [part for allocation in held for part in allocation.parts if part.node == node]


@pytest.mark.parametrize("allocator", ["tune", "optimal"])
@pytest.mark.parametrize("policy", ["fifo", "srtf", "las"])
@pytest.mark.parametrize("delays", [(0.0, 0.0), (2.0, 3.0)])
def test_executors_that_take_their_time_never_hold_more_than_there_is(
    policy: str, allocator: str, delays: tuple[float, float]
) -> None:
    for seed in range(2 if allocator == "tune" else 1):
        jobs = random_jobs(seed, count=18)
        decider = tuned(policy=policy, allocator=allocator, acknowledged=True)
        world = SensitiveWorld(decider, jobs, start_delay=delays[0], stop_delay=delays[1])
        finish(world, jobs)


@pytest.mark.parametrize("policy", ["fifo", "srtf"])
def test_partitions_keep_to_themselves(policy: str) -> None:
    jobs = random_jobs(6)
    decider = tuned("3x8,cpus=24,mem=500", policy, partitions={"red": 2, "blue": 1})
    world = SensitiveWorld(decider, jobs)
    for _ in world.instants(4000):
        decider.validate()
        for each in decider.jobs.values():
            nodes = {part.node for part in each.allocation.parts} if each.allocation else set()
            assert nodes <= ({0, 1} if each.spec.tenant == "red" else {2})
    assert sorted(world.ended) == [each.id for each in jobs]


# ---- clusters that are not Synergy's -----------------------------------------------------------


@pytest.mark.parametrize("allocator", ["tune", "optimal"])
@pytest.mark.parametrize(
    "cluster",
    [
        "2x8",
        "2x8,cpus=24",
        "2x8,mem=500",
        "1x8,cpus=24,mem=500+2x4,cpus=24,mem=250",
        "1x8,cpus=48,mem=500+1x8,cpus=8,mem=500",
        "1x8,cpus=24,mem=500,type=A+2x4,cpus=12,mem=250,type=B",
        "2x8,cpus=24,mem=500+2x0,cpus=64,mem=100",
        "4x3,cpus=7,mem=100",
    ],
)
def test_clusters_of_all_kinds_are_shared_out(cluster: str, allocator: str) -> None:
    for seed in range(2):
        jobs = [each for each in random_jobs(seed) if each.request.gpus <= 8]
        finish(SensitiveWorld(tuned(cluster, allocator=allocator), jobs), jobs)
