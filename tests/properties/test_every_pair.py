"""What must hold for every ordering with every placement, on any workload.

Parametrised over the tables of built-ins: a new ordering or placement is tested by being listed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import Instant, World, scheduler, spec
from workloads import CLUSTERS, VARIANTS, any_jobs, effort, troubles

from dovetail.allocators.proportional import Proportional
from dovetail.core.scheduler import Scheduler
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.model.event import Submitted
from dovetail.model.job import JobSpec
from dovetail.model.plan import Change, Stop, Suspend
from dovetail.model.request import Alternative, gang
from dovetail.orderings import BUILTIN as ORDERINGS
from dovetail.placements import BUILTIN as PLACEMENTS
from dovetail.placements import PLACEMENTS as PLACEMENT_REGISTRY
from dovetail.planners import planner_for
from dovetail.recipes import policy as policy_of

PAIRS = [(o, p) for o in ORDERINGS for p in PLACEMENTS]
PAIRS += [(o, p) for o in VARIANTS for p in ("best-fit", "consolidated")]

every_pair = pytest.mark.parametrize(("policy", "placement"), PAIRS)


class Observer:
    """Looks over the shoulder of a scheduler: every plan is asked for twice and must be pure."""

    def __init__(self, cluster: str, policy: str, placement: str, restart: float) -> None:
        self.asked = 0
        costs = Costs(restart=restart)
        chosen, where = policy_of(policy), PLACEMENT_REGISTRY.create(placement)

        def watched(view: Cluster) -> Any:
            planner = planner_for(view, chosen.ordering(), where, Proportional(), costs)
            planner.plan = self.observed(planner, planner.plan)  # type: ignore[method-assign]
            return planner

        self.scheduler = scheduler(cluster, planner=watched, costs=costs)

    def observed(self, planner: Any, plan: Callable[[float], Any]) -> Callable[[float], Any]:
        def ask(now: float) -> Any:
            self.asked += 1
            before = self.state(planner)
            first = plan(now)
            assert self.state(planner) == before, "planning changed what it looked at"
            assert plan(now) == first, "the same input gave another plan"
            return first

        return ask

    def state(self, planner: Any) -> Any:
        cluster = self.scheduler.cluster
        books = (bytes(cluster.free), list(cluster.masks), list(cluster.cpu), dict(cluster.shared))
        jobs = [
            (job.spec.id, str(job.status), job.allocation) for job in planner.view.jobs.values()
        ]
        stored = planner.snapshot()
        return books, jobs, {**stored, "now": None, "turns": sorted(stored["turns"])}

    def assert_settled(self) -> None:
        """Planning again on the result, with open eyes, wants nothing more."""
        for planner in self.scheduler.planners:
            planner.capacity_changed()
            assert planner.plan(self.scheduler.now) == []


def assert_gangs_whole(decider: Scheduler) -> None:
    for job in decider.jobs.values():
        if job.allocation is not None:
            sizes = [part.devices.bit_count() for part in job.allocation.parts]
            assert sum(sizes) == job.allocation.gpus
            assert any(fits(shape, sizes) for shape in job.spec.request.alternatives)


def fits(shape: Alternative, sizes: list[int]) -> bool:
    """Could these parts be that alternative, at some width, with no replica torn?"""
    least = sum(group.least * group.each.gpus for group in shape.groups)
    most = sum(group.most * group.each.gpus for group in shape.groups)
    whole = [group.each.gpus for group in shape.groups if group.each.gpus]
    torn = len(whole) == 1 and any(size % whole[0] for size in sizes)
    return least <= sum(sizes) <= most and not torn


def assert_nobody_lost(world: World, submitted: set[int], instant: Instant) -> None:
    submitted |= {event.spec.id for event in instant.batch if isinstance(event, Submitted)}
    inside = set(world.scheduler.jobs)
    assert inside | set(world.ended) == submitted
    assert not inside & set(world.ended)


def assert_nobody_was_torn_away(world: World, instant: Instant) -> None:
    """A policy never stops a job that cannot resume."""
    for action in instant.plan.actions:
        if isinstance(action, Stop | Suspend | Change):
            assert world.scheduler.jobs[action.job].spec.resumable, action


def assert_everything_returned(world: World) -> None:
    for cluster in (world.scheduler.cluster, world.machines):
        fresh = cluster.emptied()
        assert cluster.masks == fresh.masks
        assert cluster.cpu == fresh.cpu
        assert cluster.memory == fresh.memory
        assert not cluster.shared


def observe(world: World, check: Callable[[Instant], None] = lambda instant: None) -> None:
    """Run to the end and look at every instant."""
    submitted: set[int] = set()
    for instant in world.instants():
        world.scheduler.validate()
        assert_gangs_whole(world.scheduler)
        assert_nobody_lost(world, submitted, instant)
        assert_nobody_was_torn_away(world, instant)
        assert instant.plan.wake_at is None or instant.plan.wake_at >= instant.now
        check(instant)


@every_pair
@effort(8)
@given(cluster=st.sampled_from(CLUSTERS), jobs=any_jobs())
def test_all_jobs_are_served_whole_and_once(
    policy: str, placement: str, cluster: str, jobs: list[JobSpec]
) -> None:
    world = World(scheduler(cluster, policy, placement), jobs)
    observe(world)
    assert set(world.ended.values()) <= {"done", "rejected"}
    assert sorted(world.ended) == [job.id for job in jobs]
    done = [job for job in jobs if world.ended[job.id] == "done"]
    demand = sum((job.estimate or 0.0) * job.request.milli_gpus for job in done)
    assert world.scheduler.served[0] == demand
    assert_everything_returned(world)


@every_pair
@effort(5)
@given(
    cluster=st.sampled_from(CLUSTERS),
    jobs=any_jobs(most=9, shares=False),
    restart=st.sampled_from([0.0, 2.0]),
)
def test_planning_is_pure_repeatable_and_settles(
    policy: str, placement: str, cluster: str, jobs: list[JobSpec], restart: float
) -> None:
    observer = Observer(cluster, policy, placement, restart)
    world = World(observer.scheduler, jobs)
    observe(world, lambda instant: observer.assert_settled())
    assert observer.asked


def test_planning_settles_with_shares_too() -> None:
    shares = [spec(number, request=gang(1, share=500)) for number in (1, 2)]
    observer = Observer("1x1", "fifo", "best-fit", 0.0)
    world = World(observer.scheduler, [*shares, spec(3, at=1)])
    observe(world, lambda instant: observer.assert_settled())


def test_planning_settles_where_others_leave_cores_to_a_job_without_gpus() -> None:
    jobs = [spec(1, 4, length=3.0), spec(2, 4, length=4.0)]
    jobs += [spec(3, at=2.0, request=gang(0, 1000)), spec(4, at=2.0)]
    observer = Observer("2x4,cpus=8", "las:thresholds=3/9", "best-fit", 0.0)
    observe(World(observer.scheduler, jobs), lambda instant: observer.assert_settled())


@every_pair
@effort(3)
@given(cluster=st.sampled_from(CLUSTERS), jobs=any_jobs())
def test_the_same_input_gives_the_same_plans(
    policy: str, placement: str, cluster: str, jobs: list[JobSpec]
) -> None:
    runs = [World(scheduler(cluster, policy, placement), jobs).run() for _ in range(2)]
    assert runs[0] == runs[1]


@every_pair
@effort(5)
@given(
    cluster=st.sampled_from(CLUSTERS),
    jobs=any_jobs(flexible=True),
    happenings=troubles(),
    retries=st.integers(0, 2),
)
def test_nobody_is_lost_when_things_go_wrong(
    policy: str,
    placement: str,
    cluster: str,
    jobs: list[JobSpec],
    happenings: list[tuple[float, Any]],
    retries: int,
) -> None:
    willing = [job._replace(retries=retries) for job in jobs]
    world = World(scheduler(cluster, policy, placement), willing, happenings)
    observe(world)
    assert set(world.ended.values()) <= {"done", "rejected", "failed"}
    assert sorted(world.ended) == [job.id for job in jobs]
    assert_everything_returned(world)


SLOW = [*ORDERINGS, *(variant.replace("round=2", "round=20") for variant in VARIANTS)]


delays = st.tuples(st.integers(0, 3), st.integers(0, 3))


@pytest.mark.parametrize("placement", ["best-fit", "consolidated"])
@pytest.mark.parametrize("policy", SLOW)
@effort(6)
@given(
    cluster=st.sampled_from(["2x4", "4x2", "1x4+2x2"]),
    jobs=any_jobs(flexible=True),
    delays=delays,
    happenings=st.one_of(st.just([]), troubles()),
)
def test_executors_that_take_their_time_never_hold_more_than_there_is(
    policy: str,
    placement: str,
    cluster: str,
    jobs: list[JobSpec],
    delays: tuple[int, int],
    happenings: list[tuple[float, Any]],
) -> None:
    decider = scheduler(cluster, policy, placement, acknowledged=True)
    willing = [job._replace(retries=9) for job in jobs]
    world = World(decider, willing, happenings, start_delay=delays[0], stop_delay=delays[1])
    observe(world)
    assert set(world.ended.values()) <= {"done", "rejected"}
    assert sorted(world.ended) == [job.id for job in jobs]
    assert_everything_returned(world)


@pytest.mark.parametrize("policy", [*ORDERINGS, *VARIANTS])
@effort(6)
@given(jobs=any_jobs(), happenings=st.one_of(st.just([]), troubles()))
def test_partitions_keep_to_themselves_and_their_views_are_true(
    policy: str, jobs: list[JobSpec], happenings: list[tuple[float, Any]]
) -> None:
    decider = scheduler("3x4,cpus=8,mem=8", policy, partitions={"red": 2, "blue": 1})
    willing = [job._replace(retries=9) for job in jobs]
    world = World(decider, willing, happenings)

    def look(instant: Instant) -> None:
        masks = [*decider.tenancy.view(0).masks, *decider.tenancy.view(1).masks]
        assert masks == list(decider.cluster.masks)
        for job in decider.jobs.values():
            nodes = {part.node for part in job.allocation.parts} if job.allocation else set()
            assert nodes <= ({0, 1} if job.spec.tenant == "red" else {2})

    observe(world, look)
    assert sorted(world.ended) == [job.id for job in jobs]
    assert_everything_returned(world)
