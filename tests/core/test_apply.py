"""Recorded plans applied, not decided again, leave a scheduler in the very same state."""

from __future__ import annotations

from typing import Any

import pytest
from test_snapshots import COSTS, OUTAGES, POLICIES, comparable
from workbench import World, scheduler, spec
from workloads import fixed_jobs

from dovetail.core.scheduler import Scheduler, Unlike
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.event import Cancelled, Finished, Offered, Started, Stopped, Submitted, Withheld
from dovetail.model.plan import EMPTY, Plan, Start


def follow(make: Any, world: World, switch: int) -> None:
    """One twin only applies; an heir applies at first and then decides for itself."""
    original: Scheduler = world.scheduler
    twin, heir = make(), make()
    for number, (now, batch, plan) in enumerate(world.instants()):
        twin.apply(now, batch, plan)
        if number < switch:
            heir.apply(now, batch, plan)
        else:
            assert heir.step(now, batch) == plan
        if number % 5 == 0:
            assert comparable(twin) == comparable(original)
    assert number > switch
    assert twin.served == original.served
    assert comparable(twin) == comparable(heir) == comparable(original)


@pytest.mark.parametrize("policy", POLICIES)
def test_an_heir_of_recorded_plans_decides_like_the_original(policy: str) -> None:
    def make() -> Scheduler:
        return scheduler("2x4", policy, costs=COSTS)

    follow(make, World(make(), fixed_jobs(40, seed=1), OUTAGES), switch=30)


@pytest.mark.parametrize("policy", ["fifo", "srtf", "las:round=7", "fair-share", "srtf:patience=9"])
def test_partitions_and_their_views_too(policy: str) -> None:
    def make() -> Scheduler:
        return scheduler("4x4", policy, costs=COSTS, partitions={"red": 3, "blue": 1})

    follow(make, World(make(), fixed_jobs(40, seed=2), OUTAGES), switch=30)


@pytest.mark.parametrize("policy", ["srtf", "las:round=7", "priority:preempt=true"])
def test_and_starts_that_wait_for_devices(policy: str) -> None:
    def make() -> Scheduler:
        return scheduler("2x4", policy, costs=COSTS, acknowledged=True)

    world = World(make(), fixed_jobs(40, seed=5), start_delay=1.0, stop_delay=2.0)
    follow(make, world, switch=40)


def test_a_plan_for_a_job_nobody_knows_is_refused() -> None:
    with pytest.raises(Unlike):
        scheduler().apply(0.0, [], Plan((Start(7, allocation_of((Part(0, 1),))),)))


def test_a_plan_that_lacks_what_the_books_owe_is_refused() -> None:
    with pytest.raises(Unlike):
        scheduler("1x4").apply(0.0, [Submitted(spec(0, 99))], EMPTY)


# ---- cancelling where stops are confirmed ------------------------------------------------------

ALL = allocation_of((Part(0, 0b1111),))


def given_up() -> Scheduler:
    """Job 0 runs on everything and was just given up; job 1 takes its place."""
    decider = scheduler("1x4", "fifo", acknowledged=True)
    decider.step(0.0, [Submitted(spec(0, 4)), Submitted(spec(1, 4))])
    decider.step(0.0, [Started(0, ALL)])
    plan = decider.step(2.0, [Cancelled(0)])
    assert [type(action).__name__ for action in plan.actions] == ["Stop", "Start"]
    assert plan.actions[1].awaits == (0,)
    return decider


@pytest.mark.parametrize("news", [Stopped(0), Finished(0)])
def test_a_job_that_was_given_up_is_over_when_it_let_go(news: Any) -> None:
    decider = given_up()
    again = decider.step(3.0, [Cancelled(0)])
    assert not again.actions
    plan = decider.step(4.0, [news])
    assert [str(job.status) for job, _ in decider.ended] == ["cancelled"]
    assert [(action.job, action.awaits) for action in plan.actions] == [(1, ())]
    decider.validate()


def test_a_snapshot_knows_who_was_given_up() -> None:
    fork = scheduler("1x4", "fifo", acknowledged=True)
    fork.restore(given_up().snapshot())
    fork.step(4.0, [Stopped(0)])
    assert [str(job.status) for job, _ in fork.ended] == ["cancelled"]


# ---- withholding -------------------------------------------------------------------------------


def test_a_withheld_job_does_not_start_and_keeps_its_place() -> None:
    decider = scheduler("1x4", "fifo")
    decider.step(0.0, [Submitted(spec(0, 4)), Submitted(spec(1, 4)), Submitted(spec(2, 4, 1.0))])
    decider.step(1.0, [Withheld(1), Withheld(0)])
    assert [action.job for action in decider.step(2.0, [Finished(0)]).actions] == [2]
    assert decider.explain(1).cause == "withheld"
    decider.validate()
    fork = scheduler("1x4", "fifo")
    fork.restore(decider.snapshot())
    for each in (decider, fork):
        each.step(3.0, [Submitted(spec(3, 4, 3.0)), Offered(1)])
        assert [action.job for action in each.step(4.0, [Finished(2)]).actions] == [1]


def test_a_withheld_job_can_be_given_up() -> None:
    decider = scheduler("1x4", "fifo")
    decider.step(0.0, [Submitted(spec(0, 4)), Submitted(spec(1, 4))])
    decider.step(1.0, [Withheld(1)])
    decider.step(2.0, [Cancelled(1), Offered(1)])
    assert [job.id for job, _ in decider.ended] == [1]
    assert 1 not in decider.jobs
