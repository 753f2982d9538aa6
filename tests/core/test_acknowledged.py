"""Executors that confirm: devices are released later than decided, and starts wait for them."""

from __future__ import annotations

from typing import Any

import pytest
from workbench import World, scheduler, spec

from dovetail.core.scheduler import Scheduler
from dovetail.model.allocation import Allocation, Part, allocation_of
from dovetail.model.costs import Costs
from dovetail.model.event import (
    Cancelled,
    Event,
    Failed,
    Finished,
    NodeDown,
    Started,
    Stopped,
    Submitted,
)
from dovetail.model.plan import Plan, Start, Stop
from dovetail.model.request import Alternative, Group, Replica, Request


def on(node: int, devices: int, **more: int) -> Allocation:
    return allocation_of((Part(node, devices, **more),))


class Stage:
    """SRTF on one node of four, where every start and stop must be confirmed."""

    def __init__(self, cluster: str = "1x4", policy: str = "srtf", **more: Any) -> None:
        self.scheduler: Scheduler = scheduler(cluster, policy, acknowledged=True, **more)

    def step(self, now: float, *batch: Event) -> Plan:
        plan = self.scheduler.step(now, batch)
        self.scheduler.validate()
        return plan

    def submit(self, number: int, gpus: int, at: float, length: float, **more: Any) -> Plan:
        return self.step(at, Submitted(spec(number, gpus, at, length=length, **more)))

    def status(self, number: int) -> str:
        return str(self.scheduler.jobs[number].status)


def starts(plan: Plan) -> list[tuple[int, tuple[int, ...]]]:
    return [(a.job, a.awaits) for a in plan.actions if isinstance(a, Start)]


def stops(plan: Plan) -> list[int]:
    return [a.job for a in plan.actions if isinstance(a, Stop)]


@pytest.fixture
def stage() -> Stage:
    """Job 0 (four GPUs, 100 s) runs since second 1; job 1 (four GPUs, 10 s) displaced it at 20."""
    made = Stage()
    assert starts(made.submit(0, 4, 0.0, 100.0)) == [(0, ())]
    assert made.status(0) == "starting"
    made.step(1.0, Started(0, on(0, 0b1111)))
    plan = made.submit(1, 4, 20.0, 10.0)
    assert stops(plan) == [0]
    assert starts(plan) == [(1, (0,))]
    return made


def test_time_before_started_is_not_work() -> None:
    made = Stage()
    made.submit(0, 4, 0.0, 100.0)
    assert made.scheduler.jobs[0].worked(1.0) == 0.0
    made.step(3.0, Started(0, on(0, 0b1111)))
    assert made.scheduler.jobs[0].worked(10.0) == 7.0


def test_a_start_on_releasing_devices_is_reserved(stage: Stage) -> None:
    assert (stage.status(0), stage.status(1)) == ("stopping", "starting")
    assert stage.scheduler.releasing == {0: on(0, 0b1111)}
    assert stage.scheduler.jobs[1].awaits == {0}
    assert stage.scheduler.jobs[0].attained == 19.0


def test_it_is_dispatched_once_the_release_is_confirmed(stage: Stage) -> None:
    plan = stage.step(25.0, Stopped(0))
    assert starts(plan) == [(1, ())]
    assert plan.actions[0].cause == "its devices were released"
    assert (stage.status(0), stage.status(1)) == ("waiting", "starting")
    assert not stage.scheduler.releasing
    stage.step(26.0, Started(1, on(0, 0b1111)))
    assert stage.status(1) == "running"
    plan = stage.step(36.0, Finished(1))
    assert starts(plan) == [(0, ())]


def test_nothing_else_is_dispatched_before_that(stage: Stage) -> None:
    assert not stage.submit(2, 4, 21.0, 200.0).actions
    assert not stage.step(22.0).actions


def test_a_reserved_start_can_be_called_off(stage: Stage) -> None:
    plan = stage.submit(2, 4, 21.0, 2.0)
    assert stops(plan) == [1]
    assert starts(plan) == [(2, (0,))]
    assert stage.status(1) == "waiting"
    assert starts(stage.step(25.0, Stopped(0))) == [(2, ())]


def test_a_start_that_was_called_off_never_was(stage: Stage) -> None:
    stage.submit(2, 4, 21.0, 2.0)
    job = stage.scheduler.jobs[1]
    assert (job.starts, job.first_start, job.preemptions) == (0, None, 0)


def test_a_start_waits_for_all_its_devices() -> None:
    made = Stage()
    made.submit(0, 2, 0.0, 50.0)
    made.submit(1, 2, 0.0, 50.0)
    made.step(1.0, Started(0, on(0, 0b0011)), Started(1, on(0, 0b1100)))
    assert starts(made.submit(2, 4, 5.0, 1.0)) == [(2, (0, 1))]
    assert not made.step(6.0, Stopped(1)).actions
    assert made.scheduler.jobs[2].awaits == {0}
    assert starts(made.step(7.0, Stopped(0))) == [(2, ())]


def test_a_start_beside_the_releasing_devices_does_not_wait() -> None:
    made = Stage("2x4")
    made.submit(0, 4, 0.0, 50.0)
    made.submit(1, 4, 0.0, 50.0)
    made.step(1.0, Started(0, on(0, 0b1111)), Started(1, on(1, 0b1111)))
    plan = made.submit(2, 4, 5.0, 1.0)
    assert starts(plan) == [(2, (1,))]
    made.step(9.0, Stopped(1))
    made.step(9.0, Started(2, on(1, 0b1111)))
    made.step(10.0, Finished(2))
    assert made.status(0) == "running"


def test_where_cpu_is_limited_a_start_waits_for_the_whole_node() -> None:
    made = Stage("1x4,cpus=4", "priority:preempt=true")
    made.submit(0, 2, 0.0, 50.0)
    made.submit(1, 2, 0.0, 50.0)
    made.step(1.0, Started(0, on(0, 0b0011, cpu=2000)), Started(1, on(0, 0b1100, cpu=2000)))
    assert starts(made.submit(2, 1, 5.0, 1.0, priority=1)) == [(2, (1,))]


TWO_PARTS = Request((Alternative((Group(1, Replica(2), 1), Group(1, Replica(2), 1))),))


def test_a_start_with_two_parts_on_a_node_waits_for_both() -> None:
    made = Stage("1x4", "srtf")
    made.submit(0, 2, 0.0, 50.0)
    made.submit(1, 2, 0.0, 50.0)
    made.step(1.0, Started(0, on(0, 0b0011)), Started(1, on(0, 0b1100)))
    assert starts(made.submit(2, 0, 5.0, 1.0, request=TWO_PARTS)) == [(2, (0, 1))]


# ---- what can come in between ------------------------------------------------------------------


def test_the_actual_allocation_is_what_counts() -> None:
    made = Stage("2x4")
    made.submit(0, 2, 0.0, 50.0)
    made.step(1.0, Started(0, on(1, 0b1100)))
    assert made.scheduler.jobs[0].allocation == on(1, 0b1100)
    assert list(made.scheduler.cluster.free) == [4, 2]
    made.step(51.0, Finished(0))
    assert list(made.scheduler.cluster.free) == [4, 4]


def test_a_job_that_got_other_devices_can_be_displaced() -> None:
    made = Stage("2x4")
    made.submit(0, 4, 0.0, 50.0)
    made.submit(1, 4, 0.0, 60.0)
    made.step(1.0, Started(0, on(0, 0b1111)))
    made.step(1.0, Finished(0))
    made.step(2.0, Started(1, on(0, 0b1111)))
    made.submit(2, 4, 3.0, 50.0)
    made.step(4.0, Started(2, made.scheduler.jobs[2].allocation))
    plan = made.submit(3, 4, 5.0, 1.0)
    assert stops(plan) == [1]
    assert made.scheduler.jobs[3].allocation == on(0, 0b1111)


def test_the_actual_allocation_counts_inside_a_partition_too() -> None:
    made = Stage("2x4", partitions={"red": 1, "blue": 1})
    made.submit(0, 2, 0.0, 50.0, tenant="blue")
    made.step(1.0, Started(0, on(1, 0b1100)))
    assert made.scheduler.tenancy.view(1).masks[0] == made.scheduler.cluster.masks[1]


def test_a_job_that_finishes_while_it_is_being_stopped_is_done(stage: Stage) -> None:
    plan = stage.step(22.0, Finished(0))
    assert starts(plan) == [(1, ())]
    assert [str(job.status) for job, _ in stage.scheduler.ended] == ["done"]
    assert 0 not in stage.scheduler.jobs


def test_a_job_that_fails_while_it_is_being_stopped_frees_its_devices(stage: Stage) -> None:
    assert starts(stage.step(22.0, Failed(0, "crashed"))) == [(1, ())]
    assert [(str(job.status), why) for job, why in stage.scheduler.ended] == [("failed", "crashed")]


def test_a_node_that_dies_releases_what_was_being_stopped_there(stage: Stage) -> None:
    stage.step(22.0, NodeDown(0))
    assert (stage.status(0), stage.status(1)) == ("waiting", "waiting")
    assert not stage.scheduler.releasing
    assert stage.scheduler.jobs[1].awaits == frozenset()


def test_a_failed_start_counts_as_a_failure_and_is_tried_again() -> None:
    made = Stage()
    made.submit(0, 4, 0.0, 50.0, retries=1)
    plan = made.step(1.0, Failed(0, "no such image"))
    assert starts(plan) == [(0, ())]
    made.step(2.0, Failed(0, "no such image"))
    assert [why for _, why in made.scheduler.ended] == ["no such image"]


def test_a_confirmation_that_comes_too_late_changes_nothing(stage: Stage) -> None:
    stage.step(25.0, Stopped(0))
    stage.step(26.0, Started(1, on(0, 0b1111)))
    before = stage.scheduler.snapshot()
    stage.step(26.0, Stopped(0), Started(1, on(0, 0b0001)))
    assert stage.scheduler.snapshot() == before


def test_a_running_job_that_was_stopped_by_others_waits_again() -> None:
    made = Stage(costs=Costs(restart=0.0, checkpoint_every=10.0))
    made.submit(0, 4, 0.0, 100.0)
    made.step(1.0, Started(0, on(0, 0b1111)))
    plan = made.step(26.0, Stopped(0))
    job = made.scheduler.jobs[0]
    assert (job.attained, job.failures, job.preemptions) == (20.0, 0, 0)
    assert starts(plan) == [(0, ())]


def test_a_start_that_was_stopped_by_others_waits_again() -> None:
    made = Stage()
    made.submit(0, 4, 0.0, 100.0)
    made.submit(1, 4, 1.0, 5.0)
    assert starts(made.step(2.0, Stopped(0))) == [(1, ())]
    assert made.status(0) == "waiting"


def test_a_start_that_nobody_was_asked_for_cannot_have_been_stopped(stage: Stage) -> None:
    before = stage.scheduler.snapshot()
    stage.step(20.0, Stopped(1))
    assert stage.scheduler.snapshot() == before


@pytest.mark.parametrize("late", [Stopped(0), Finished(0), Failed(0), Started(0, on(0, 1))])
def test_news_of_a_job_that_was_cancelled_meanwhile_changes_nothing(late: Event) -> None:
    made = Stage()
    made.submit(0, 4, 0.0, 50.0)
    made.step(1.0, Started(0, on(0, 0b1111)))
    made.step(2.0, Cancelled(0))
    made.step(3.0, late)


@pytest.mark.parametrize("late", [Finished(0), Failed(0)])
def test_news_of_a_job_that_lost_its_node_meanwhile_changes_nothing(late: Event) -> None:
    made = Stage()
    made.submit(0, 4, 0.0, 50.0, retries=3)
    made.step(1.0, Started(0, on(0, 0b1111)))
    made.step(2.0, NodeDown(0))
    made.step(3.0, late)
    assert made.status(0) == "waiting"


@pytest.fixture
def crossed() -> Stage:
    """Job 2 is reserved on node 0, where job 0 is stopping; job 1 runs on node 1."""
    made = Stage("2x4")
    made.submit(0, 4, 0.0, 100.0)
    made.submit(1, 4, 0.0, 60.0)
    made.step(0.0, Started(0, on(0, 0b1111)), Started(1, on(1, 0b1111)))
    assert starts(made.submit(2, 4, 5.0, 1.0)) == [(2, (0,))]
    return made


def test_devices_released_by_a_node_that_dies_in_the_same_instant_are_not_used(
    crossed: Stage,
) -> None:
    plan = crossed.step(6.0, Stopped(0), Finished(1), NodeDown(0))
    assert starts(plan) == [(2, ())]
    assert plan.actions[0].allocation == on(1, 0b1111)


def test_a_node_that_dies_with_a_stopping_job_takes_the_reserved_start_along(
    crossed: Stage,
) -> None:
    crossed.step(6.0, Finished(1))
    plan = crossed.step(7.0, NodeDown(0))
    assert starts(plan) == [(2, ())]
    assert plan.actions[0].allocation == on(1, 0b1111)


def test_a_job_cancelled_when_its_devices_are_released_is_not_started(crossed: Stage) -> None:
    plan = crossed.step(6.0, Stopped(0), Cancelled(2))
    assert 2 not in [number for number, _ in starts(plan)]
    # Nobody has heard of it, so nobody would ever confirm that it stopped.
    assert stops(plan) == [] and 2 not in crossed.scheduler.jobs


def test_devices_of_a_cancelled_job_are_not_given_away_before_it_let_go() -> None:
    made = Stage("1x4", "fifo")
    made.submit(0, 4, 0.0, 100.0)
    made.step(0.0, Started(0, on(0, 0b1111)))
    made.submit(1, 4, 1.0, 100.0)
    assert starts(made.step(2.0, Cancelled(0))) != [(1, ())]


# ---- ranks while nothing runs yet --------------------------------------------------------------


def test_a_start_that_takes_longer_than_a_round_is_not_displaced_by_an_equal() -> None:
    decider = scheduler("1x1", "las:round=2", acknowledged=True)
    world = World(decider, [spec(0, length=10), spec(1, length=10)], start_delay=5.0)
    for _ in world.instants(most=300):
        decider.validate()
    assert world.ended == {0: "done", 1: "done"}


# ---- explanations ------------------------------------------------------------------------------


def test_a_reserved_start_names_whom_it_waits_for(stage: Stage) -> None:
    reason = stage.scheduler.explain(1)
    assert reason.cause == "releasing"
    assert reason.text == "it has its GPUs as soon as j0 has left them"
    assert reason.blockers == (0,)
    assert stage.scheduler.explain(0).cause == "stopping"
    stage.step(25.0, Stopped(0))
    assert stage.scheduler.explain(1).cause == "starting"


@pytest.mark.parametrize("over", [Failed(1, "broken", final=True), Finished(1), Cancelled(1)])
def test_a_job_that_is_over_while_it_awaits_devices_is_not_waited_for(over: Event) -> None:
    """An engine may say so of a start that was never sent; the stop it waited for comes later."""
    made = scheduler("1x4", "srtf", acknowledged=True)
    made.step(0.0, [Submitted(spec(0, 4, length=1000.0, resumable=True))])
    held = made.jobs[0].allocation
    assert held is not None
    made.step(1.0, [Started(0, held)])
    made.step(10.0, [Submitted(spec(1, 4, 10.0, length=50.0))])
    assert made.jobs[1].awaits == {0}
    made.step(11.0, [over])
    assert not made.reserved
    made.step(12.0, [Stopped(0)])
    assert made.jobs[0].allocation is not None
