"""Every kind of action, carried out on the books: a scripted planner gives the orders."""

from __future__ import annotations

from typing import Any

import pytest
from scripted import Scripted
from workbench import scheduler, spec

from dovetail.core.scheduler import Scheduler
from dovetail.model.allocation import Allocation, Part, allocation_of
from dovetail.model.costs import FREE, Costs
from dovetail.model.errors import OverCommitted
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
from dovetail.model.plan import Action, Change, Plan, Resume, Start, Stop, Suspend
from dovetail.model.request import WHOLE


def on(node: int, devices: int, **more: int) -> Allocation:
    return allocation_of((Part(node, devices, **more),))


class Stage:
    """A scheduler whose planner follows a script."""

    def __init__(self, cluster: str = "2x4,mem=1", costs: Costs = FREE, **more: Any) -> None:
        self.scheduler = scheduler(cluster, planner=Scripted, costs=costs, **more)
        self.planner: Scripted = self.scheduler.planners[0]  # type: ignore[assignment]

    def step(self, now: float, *batch: Event, then: list[Action] | None = None) -> Plan:
        self.planner.wanted = then or []
        plan = self.scheduler.step(now, batch)
        self.scheduler.validate()
        return plan

    def job(self, number: int) -> Any:
        return self.scheduler.jobs[number]

    @property
    def free(self) -> list[int]:
        return list(self.scheduler.cluster.free)


@pytest.fixture
def stage() -> Stage:
    """Job 0 of length 100 runs on two devices of node 0 since second 0."""
    made = Stage(costs=Costs(restart=7.0, resume=2.0, move=5.0))
    start = Start(0, on(0, 0b0011, memory=800))
    made.step(0.0, Submitted(spec(0, 2, length=100)), then=[start])
    return made


# ---- start and stop ----------------------------------------------------------------------------


def test_a_start_occupies_and_runs_at_once(stage: Stage) -> None:
    assert stage.job(0).status == "running"
    assert stage.free == [2, 4]
    assert stage.scheduler.running == 1
    assert stage.job(0).first_start == 0.0


def test_a_stop_frees_counts_and_lets_the_job_wait(stage: Stage) -> None:
    plan = stage.step(30.0, then=[Stop(0, "why not")])
    assert plan.actions == (Stop(0, "why not"),)
    job = stage.job(0)
    assert (job.status, job.attained, job.run_time, job.preemptions) == ("waiting", 30.0, 30.0, 1)
    assert job.since == 30.0
    assert stage.free == [4, 4]
    assert stage.scheduler.preemptions == 1
    assert stage.scheduler.served[0] == 30 * 2 * WHOLE


def test_a_second_start_pays_for_the_restart(stage: Stage) -> None:
    stage.step(30.0, then=[Stop(0)])
    stage.step(40.0, then=[Start(0, on(1, 0b0011))])
    job = stage.job(0)
    assert job.first_start == 0.0
    assert job.worked(46.0) == 30.0
    assert job.worked(50.0) == 33.0
    assert job.time_left(40.0) == 77.0
    assert job.time_left(50.0) == 67.0


def test_frees_come_before_takes_whatever_the_order_in_the_plan(stage: Stage) -> None:
    stage.step(1.0, Submitted(spec(1, 4, at=1)), then=[Start(1, on(0, 0b1111)), Stop(0)])
    assert (stage.job(0).status, stage.job(1).status) == ("waiting", "running")
    assert stage.free == [0, 4]


def test_a_plan_that_asks_for_too_much_is_refused(stage: Stage) -> None:
    stage.planner.wanted = [Start(1, on(0, 0b0001))]
    with pytest.raises(OverCommitted, match="n0 cannot give"):
        stage.scheduler.step(1.0, [Submitted(spec(1))])


def test_a_planner_may_refuse_a_job_at_the_door() -> None:
    made = Stage()
    plan = made.step(0.0, Submitted(spec(0, name="unwelcome")))
    assert [action.cause for action in plan.actions] == ["it is not welcome"]  # type: ignore
    assert not made.scheduler.jobs


# ---- suspend and resume ------------------------------------------------------------------------


def test_a_suspended_job_keeps_only_its_residual(stage: Stage) -> None:
    stage.step(30.0, then=[Suspend(0, on(0, 0, memory=200))])
    job = stage.job(0)
    assert (job.status, job.attained) == ("suspended", 30.0)
    assert job.allocation is None
    assert stage.free == [4, 4]
    assert stage.scheduler.cluster.memory[0] == 824
    assert stage.scheduler.running == 0


def test_a_resumed_job_gives_its_residual_back_and_pays_for_resuming(stage: Stage) -> None:
    stage.step(30.0, then=[Suspend(0, on(0, 0, memory=200))])
    stage.step(50.0, then=[Resume(0, on(0, 0b1100, memory=800))])
    job = stage.job(0)
    assert (job.status, job.residual) == ("running", None)
    assert stage.free == [2, 4]
    assert stage.scheduler.cluster.memory[0] == 224
    assert job.time_left(50.0) == 72.0
    assert job.worked(62.0) == 40.0


def test_a_job_can_resume_in_the_memory_its_residual_holds(stage: Stage) -> None:
    stage.step(30.0, then=[Suspend(0, on(0, 0, memory=500))])
    stage.step(50.0, then=[Resume(0, on(0, 0b1100, memory=800))])
    assert stage.job(0).status == "running"


def test_the_time_a_job_was_suspended_is_neither_work_nor_service(stage: Stage) -> None:
    stage.step(30.0, then=[Suspend(0, on(0, 0, memory=200))])
    stage.step(50.0, then=[Resume(0, on(0, 0b1100, memory=800))])
    stage.step(122.0, Finished(0))
    assert stage.scheduler.served[0] == (30 + 72) * 2 * WHOLE
    assert [job.attained for job, _ in stage.scheduler.ended] == [100.0]


def test_a_cancelled_suspended_job_leaves_nothing_behind(stage: Stage) -> None:
    stage.step(30.0, then=[Suspend(0, on(0, 0, memory=200))])
    stage.step(40.0, Cancelled(0))
    assert not stage.scheduler.jobs
    assert stage.scheduler.cluster.memory[0] == 1024


def test_a_suspended_job_loses_its_residual_with_its_node_and_waits(stage: Stage) -> None:
    stage.step(30.0, then=[Suspend(0, on(0, 0, memory=200))])
    stage.step(40.0, NodeDown(0))
    assert (stage.job(0).status, stage.job(0).residual) == ("waiting", None)
    assert stage.scheduler.cluster.memory[0] == 1024


def test_a_suspended_job_that_fails_waits_again_or_ends() -> None:
    for retries, status in ((1, "waiting"), (0, "failed")):
        made = Stage()
        made.step(0.0, Submitted(spec(0, retries=retries)), then=[Start(0, on(0, 1, memory=9))])
        job = made.job(0)
        made.step(3.0, then=[Suspend(0, on(0, 0, memory=9))])
        made.step(4.0, Failed(0, "its memory went away"))
        assert job.status == status
        assert made.scheduler.cluster.memory[0] == 1024


# ---- change ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("new", "cost", "moves"),
    [
        (on(0, 0b0011, memory=100), 0.0, 0),
        (on(1, 0b0011, memory=800), 5.0, 1),
        (on(0, 0b1100, memory=800), 5.0, 1),
        (on(0, 0b0111, memory=800), 7.0, 0),
        (on(0, 0b0001, memory=800), 7.0, 0),
        (on(0, 0b0011, memory=800), 0.0, 0),
    ],
)
def test_a_change_costs_what_its_kind_costs(
    stage: Stage, new: Allocation, cost: float, moves: int
) -> None:
    stage.step(30.0, then=[Change(0, new, "it pleased")])
    job = stage.job(0)
    assert (job.status, job.allocation, job.starts) == ("running", new, 1)
    assert job.time_left(30.0) == 70.0 + cost
    assert stage.scheduler.moves == moves
    assert stage.scheduler.preemptions == 0


def test_two_jobs_can_change_places_in_one_plan(stage: Stage) -> None:
    stage.step(1.0, Submitted(spec(1, 2, at=1)), then=[Start(1, on(0, 0b1100))])
    swap: list[Action] = [Change(0, on(0, 0b1100)), Change(1, on(0, 0b0011))]
    stage.step(2.0, then=swap)
    assert stage.job(0).allocation == on(0, 0b1100)
    assert stage.job(1).allocation == on(0, 0b0011)


def test_a_narrower_job_is_charged_for_what_it_holds(stage: Stage) -> None:
    stage.step(10.0, then=[Change(0, on(0, 0b0001))])
    stage.step(20.0, Finished(0))
    assert stage.scheduler.served[0] == (10 * 2 + 10 * 1) * WHOLE


def test_a_change_during_a_restart_does_not_make_the_restart_free(stage: Stage) -> None:
    stage.step(30.0, then=[Stop(0)])
    stage.step(40.0, then=[Start(0, on(0, 0b0011))])
    stage.step(41.0, then=[Change(0, on(0, 0b0011, memory=1))])
    assert stage.job(0).time_left(41.0) == 76.0


# ---- with executors that acknowledge -----------------------------------------------------------


@pytest.fixture
def slow() -> Stage:
    """The same, but starts and stops take effect when an executor says so."""
    made = Stage(acknowledged=True)
    start = Start(0, on(0, 0b0011, memory=800))
    made.step(0.0, Submitted(spec(0, 2, length=100)), then=[start])
    made.step(0.0, Started(0, start.allocation))
    return made


def suspend(stage: Stage) -> None:
    stage.step(30.0, then=[Suspend(0, on(0, 0, memory=200))])
    assert stage.job(0).status == "stopping"
    assert stage.scheduler.releasing == {0: on(0, 0b0011, memory=800)}


def test_a_suspension_is_confirmed_by_stopped(slow: Stage) -> None:
    suspend(slow)
    slow.step(33.0, Stopped(0))
    assert slow.job(0).status == "suspended"
    assert not slow.scheduler.releasing
    slow.step(50.0, then=[Resume(0, on(0, 0b0011, memory=800))])
    assert slow.job(0).status == "starting"
    slow.step(51.0, Started(0, on(0, 0b0011, memory=800)))
    assert slow.job(0).status == "running"
    assert slow.job(0).since == 51.0


def test_a_job_cancelled_while_it_is_being_suspended_leaves_nothing_behind(slow: Stage) -> None:
    suspend(slow)
    slow.step(31.0, Cancelled(0))
    assert slow.scheduler.cluster.memory[0] == 1024


def test_a_job_whose_node_dies_while_it_is_being_suspended_keeps_no_residual(slow: Stage) -> None:
    suspend(slow)
    slow.step(31.0, NodeDown(0))
    assert slow.job(0).status == "waiting"
    assert slow.job(0).residual is None


def test_a_resume_on_devices_that_are_being_released_waits_for_them(slow: Stage) -> None:
    suspend(slow)
    slow.step(33.0, Stopped(0))
    start: list[Action] = [Start(1, on(0, 0b0011))]
    slow.step(34.0, Submitted(spec(1, 2, at=34)), then=start)
    slow.step(34.0, Started(1, on(0, 0b0011)))
    plan = slow.step(35.0, then=[Stop(1), Resume(0, on(0, 0b0011, memory=800))])
    assert not [a for a in plan.actions if isinstance(a, Resume) and not getattr(a, "awaits", ())]


def test_a_move_onto_devices_that_are_being_released_waits_for_them(slow: Stage) -> None:
    slow.step(1.0, Submitted(spec(1, 2, at=1)), then=[Start(1, on(1, 0b0011))])
    slow.step(1.0, Started(1, on(1, 0b0011)))
    plan = slow.step(2.0, then=[Stop(1), Change(0, on(1, 0b0011, memory=800))])
    assert not [a for a in plan.actions if isinstance(a, Change) and not getattr(a, "awaits", ())]


def test_a_resize_onto_devices_that_are_being_released_waits_for_them(slow: Stage) -> None:
    slow.step(1.0, Submitted(spec(1, 2, at=1)), then=[Start(1, on(1, 0b0011))])
    slow.step(1.0, Started(1, on(1, 0b0011)))
    plan = slow.step(2.0, then=[Stop(1), Change(0, on(1, 0b0001, memory=800))])
    assert not [a for a in plan.actions if isinstance(a, Change) and not getattr(a, "awaits", ())]


def test_victims_of_a_scripted_scheduler_are_told_to_the_planner(stage: Stage) -> None:
    stage.planner.heard.clear()
    stage.step(30.0, then=[Stop(0)])
    assert stage.planner.heard == ["j0 left", "j0 waits"]


def test_the_scheduler_asks_for_the_wake_its_planner_wants(stage: Stage) -> None:
    stage.planner.wake = 77.0
    assert stage.step(30.0).wake_at == 77.0


def test_explanations_come_from_the_planner(stage: Stage) -> None:
    stage.step(1.0, Submitted(spec(1, at=1)))
    assert stage.scheduler.explain(1).cause == "script"


def test_a_scripted_run_can_be_stored_and_continued(stage: Stage) -> None:
    stage.step(30.0, then=[Suspend(0, on(0, 0, memory=200))])
    stage.step(31.0, Submitted(spec(1, at=31)), then=[Start(1, on(1, 1))])
    copy = Stage(costs=stage.scheduler.costs)
    copy.scheduler.restore(stage.scheduler.snapshot())
    copy.scheduler.validate()
    for each in (stage, copy):
        each.step(50.0, then=[Resume(0, on(0, 0b1100, memory=800))])
    assert copy.scheduler.snapshot() == stage.scheduler.snapshot()
    assert isinstance(copy.scheduler, Scheduler)
