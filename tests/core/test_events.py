"""What can happen to jobs and nodes, and what the scheduler makes of it."""

from __future__ import annotations

import pytest
from workbench import scheduler, spec

from dovetail.core.scheduler import Scheduler
from dovetail.model.allocation import Allocation, Part, allocation_of
from dovetail.model.costs import Costs
from dovetail.model.event import (
    ORDER,
    Cancelled,
    Checkpointed,
    Event,
    Failed,
    Finished,
    Freed,
    Held,
    NodeDown,
    NodeDraining,
    NodeUp,
    Progressed,
    Started,
    Stopped,
    Submitted,
    Wake,
    Withheld,
)
from dovetail.model.plan import Plan, Start


def on(node: int, devices: int, **more: int) -> Allocation:
    return allocation_of((Part(node, devices, **more),))


def step(decider: Scheduler, now: float, *batch: Event) -> Plan:
    plan = decider.step(now, batch)
    decider.validate()
    return plan


def started(plan: Plan) -> list[int]:
    return [action.job for action in plan.actions if isinstance(action, Start)]


# ---- batches -----------------------------------------------------------------------------------


def test_one_batch_one_plan_and_what_ends_makes_room_for_what_comes() -> None:
    decider = scheduler("1x4")
    step(decider, 0.0, Submitted(spec(0, 4)))
    plan = step(decider, 5.0, Submitted(spec(1, 4, 5.0)), Finished(0))
    assert started(plan) == [1]


def test_inside_a_batch_ends_come_before_nodes_before_arrivals_before_wakes() -> None:
    kinds = sorted(ORDER, key=lambda kind: ORDER[kind])
    assert kinds.index(Finished) < kinds.index(NodeDown) < kinds.index(Submitted)
    assert kinds[-1] is Wake
    assert set(ORDER) == set(Event.__args__)  # type: ignore[attr-defined]


def test_a_job_that_ends_when_its_node_dies_has_ended() -> None:
    decider = scheduler("1x4")
    step(decider, 0.0, Submitted(spec(0, 4)))
    step(decider, 5.0, NodeDown(0), Finished(0))
    assert [str(job.status) for job, _ in decider.ended] == ["done"]


def test_an_empty_batch_decides_nothing() -> None:
    decider = scheduler("1x4")
    step(decider, 0.0, Submitted(spec(0, 4)), Submitted(spec(1, 4)))
    assert not step(decider, 1.0).actions
    assert decider.ended == []


def test_same_submit_time_is_decided_by_id_whatever_the_order_of_events() -> None:
    decider = scheduler("1x4")
    plan = step(decider, 0.0, Submitted(spec(7, 4)), Submitted(spec(3, 4)))
    assert started(plan) == [3]


# ---- others on our machines --------------------------------------------------------------------


def test_what_others_hold_is_not_ours_until_they_let_go() -> None:
    decider = scheduler("1x4")
    step(decider, 0.0, Held("slurm", on(0, 0b0111)))
    assert started(step(decider, 1.0, Submitted(spec(0, 2, 1.0)))) == []
    assert decider.explain(0).cause == "others"
    assert started(step(decider, 2.0, Freed("slurm"))) == [0]


def test_several_others_hold_and_free_each_their_own() -> None:
    decider = scheduler("1x4,cpus=4")
    step(decider, 0.0, Held("a", on(0, 0b0001, cpu=1000)), Held("b", on(0, 0b0010)))
    assert list(decider.cluster.free) == [2]
    step(decider, 1.0, Freed("a"))
    assert list(decider.cluster.masks) == [0b1101]
    assert list(decider.cluster.cpu) == [4000]


def test_one_who_holds_twice_lets_go_of_all() -> None:
    decider = scheduler("1x4")
    step(decider, 0.0, Held("a", on(0, 0b0001)))
    step(decider, 1.0, Held("a", on(0, 0b0010)))
    step(decider, 2.0, Freed("a"))
    assert decider.cluster.idle == 4


def test_holdings_count_inside_partitions_too() -> None:
    decider = scheduler("2x4", partitions={"red": 1, "blue": 1})
    step(decider, 0.0, Held("slurm", on(1, 0b1111)))
    assert started(step(decider, 1.0, Submitted(spec(0, 2, 1.0, tenant="blue")))) == []


# ---- nodes -------------------------------------------------------------------------------------


def test_devices_that_others_use_beside_our_job_are_theirs_when_it_ends() -> None:
    decider = scheduler("1x4")
    step(decider, 0.0, Submitted(spec(0, 2)))
    step(decider, 1.0, Held("someone", on(0, 0b0111)))
    assert decider.jobs[0].allocation == on(0, 0b0011)
    step(decider, 2.0, Submitted(spec(1, 2, 2.0)))
    assert decider.jobs[1].allocation is None
    heir = scheduler("1x4")
    heir.restore(decider.snapshot())
    for each in (decider, heir):
        assert started(step(each, 3.0, Finished(0))) == []
        assert each.cluster.masks[0] == 0b1000
        assert started(step(each, 4.0, Freed("someone"))) == [1]


def test_others_may_use_more_than_is_free_and_running_jobs_stay() -> None:
    decider = scheduler("1x4,cpus=8,mem=8")
    step(decider, 0.0, *(Submitted(spec(number, 1)) for number in range(3)))
    step(decider, 1.0, Held("someone", on(0, 0, cpu=99_000)))
    assert [decider.jobs[number].allocation is not None for number in range(3)] == [True] * 3
    assert decider.cluster.cpu[0] == -6000
    step(decider, 2.0, Submitted(spec(3, 1, 2.0)))
    assert decider.explain(3).cause == "others"
    heir = scheduler("1x4,cpus=8,mem=8")
    heir.restore(decider.snapshot())
    for each in (decider, heir):
        step(each, 3.0, Finished(0), Finished(1), Finished(2))
        assert each.cluster.cpu[0] == 0
        assert started(step(each, 4.0, Freed("someone"))) == [3]


def test_nobody_but_others_may_use_more_than_there_is() -> None:
    decider = scheduler("1x4,cpus=8,mem=8")
    decider.cluster.cpu[0] = -1
    with pytest.raises(AssertionError):
        decider.validate()
    decider.cluster.cpu[0] = 8000


def test_jobs_on_a_node_that_dies_wait_again_and_keep_their_checkpoint() -> None:
    decider = scheduler("2x4", costs=Costs(restart=0.0, checkpoint_every=10.0))
    step(decider, 0.0, Submitted(spec(0, 4, length=100)), Submitted(spec(1, 4, length=100)))
    step(decider, 37.0, NodeDown(0))
    lost, kept = decider.jobs[0], decider.jobs[1]
    assert (lost.status, lost.attained, lost.allocation) == ("waiting", 30.0, None)
    assert (lost.failures, lost.preemptions) == (0, 0)
    assert kept.status == "running"
    assert list(decider.cluster.free) == [0, 0]
    assert started(step(decider, 40.0, NodeUp(0))) == [0]
    assert lost.time_left(40.0) == 70.0


def test_a_job_that_cannot_resume_begins_anew() -> None:
    decider = scheduler("1x4", costs=Costs(checkpoint_every=10.0))
    step(decider, 0.0, Submitted(spec(0, 4, length=100, resumable=False)))
    step(decider, 37.0, NodeDown(0))
    assert decider.jobs[0].attained == 0.0


def test_a_job_on_two_nodes_dies_with_either() -> None:
    for node in (0, 1):
        decider = scheduler("2x4")
        step(decider, 0.0, Submitted(spec(0, 6)))
        step(decider, 1.0, NodeDown(node))
        assert decider.jobs[0].status == "waiting"
        assert decider.cluster.idle == 4


def test_a_job_that_loses_its_node_finds_another_in_the_same_plan() -> None:
    decider = scheduler("2x4")
    step(decider, 0.0, Submitted(spec(0, 4)))
    plan = step(decider, 1.0, NodeDown(0))
    assert started(plan) == [0]
    assert decider.jobs[0].allocation == on(1, 0b1111)


def test_what_runs_on_a_draining_node_may_finish() -> None:
    decider = scheduler("1x4")
    step(decider, 0.0, Submitted(spec(0, 2)))
    step(decider, 1.0, NodeDraining(0))
    assert decider.jobs[0].status == "running"
    assert started(step(decider, 2.0, Submitted(spec(1, 1, 2.0)))) == []
    assert started(step(decider, 3.0, Finished(0))) == []
    assert started(step(decider, 4.0, NodeUp(0))) == [1]


def test_a_draining_node_that_dies_takes_its_jobs_along() -> None:
    decider = scheduler("1x4")
    step(decider, 0.0, Submitted(spec(0, 2)))
    step(decider, 1.0, NodeDraining(0))
    step(decider, 2.0, NodeDown(0))
    assert decider.jobs[0].status == "waiting"
    assert started(step(decider, 3.0, NodeUp(0))) == [0]


def test_nodes_close_and_open_in_the_partition_that_owns_them() -> None:
    decider = scheduler("2x4", partitions={"red": 1, "blue": 1})
    step(decider, 0.0, Submitted(spec(0, 4, tenant="blue")), NodeDown(1))
    assert decider.jobs[0].status == "waiting"
    assert list(decider.tenancy.view(1).free) == [0]
    assert list(decider.tenancy.view(0).free) == [4]
    assert started(step(decider, 1.0, NodeUp(1))) == [0]


def test_a_preemptive_order_does_not_displace_for_a_place_on_a_closed_node() -> None:
    decider = scheduler("2x4", "srtf")
    step(decider, 0.0, Submitted(spec(0, 4, length=100)), Submitted(spec(1, 4, length=100)))
    step(decider, 1.0, NodeDraining(0))
    step(decider, 2.0, Submitted(spec(2, 4, 2.0, length=5)))
    assert decider.jobs[2].allocation == on(1, 0b1111)


# ---- beliefs -----------------------------------------------------------------------------------


def test_progress_corrects_what_we_believe() -> None:
    decider = scheduler("1x4")
    step(decider, 0.0, Submitted(spec(0, 4, length=100)))
    step(decider, 10.0, Progressed(0, 20.0, 2.0))
    job = decider.jobs[0]
    assert job.worked(15.0) == 30.0
    assert job.time_left(10.0) == 40.0
    assert job.held_for(15.0) == 15.0
    step(decider, 50.0, Finished(0))
    assert decider.served[0] == 50 * 4000


def test_a_checkpoint_says_what_is_safe() -> None:
    decider = scheduler("1x4")
    step(decider, 0.0, Submitted(spec(0, 4, length=100)))
    assert decider.jobs[0].unsaved(30.0) == 30.0
    step(decider, 40.0, Checkpointed(0))
    assert decider.jobs[0].unsaved(45.0) == 5.0
    step(decider, 50.0, Progressed(0, 60.0, 2.0))
    assert decider.jobs[0].unsaved(51.0) == 22.0


def test_a_running_job_that_was_stopped_by_others_waits_again_and_has_not_failed() -> None:
    decider = scheduler("1x4", costs=Costs(restart=0.0, checkpoint_every=10.0))
    step(decider, 0.0, Submitted(spec(0, 4, length=100)), Submitted(spec(1, 4, length=1)))
    plan = step(decider, 25.0, Stopped(0), Withheld(0))
    assert started(plan) == [1]
    job = decider.jobs[0]
    assert (str(job.status), job.attained, job.failures) == ("waiting", 20.0, 0)


def test_progress_moves_a_job_in_the_order() -> None:
    decider = scheduler("1x4", "srtf")
    step(decider, 0.0, Submitted(spec(0, 4, length=100)), Submitted(spec(1, 4, length=110)))
    plan = step(decider, 10.0, Progressed(0, 10.0, 0.5))
    assert [type(action).__name__ for action in plan.actions] == ["Stop", "Start"]
    assert decider.jobs[1].status == "running"


def test_progress_of_a_waiting_job_is_believed_too() -> None:
    decider = scheduler("1x4", "srtf:preempt=false")
    step(decider, 0.0, Submitted(spec(0, 4, length=10)))
    step(decider, 0.0, Submitted(spec(1, 4, length=50)), Submitted(spec(2, 4, length=60)))
    step(decider, 5.0, Progressed(2, 40.0, 1.0))
    assert started(step(decider, 10.0, Finished(0))) == [2]


# ---- ends --------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["waiting", "running", "starting", "stopping", "reserved"])
def test_a_job_can_be_cancelled_in_any_state(state: str) -> None:
    slow = state in ("starting", "stopping", "reserved")
    decider = scheduler("1x4", "srtf", acknowledged=slow)
    step(decider, 0.0, Submitted(spec(0, 4, length=100)))
    if slow and state != "starting":
        step(decider, 0.0, Started(0, on(0, 0b1111)))
    if state in ("waiting", "stopping", "reserved"):
        length = 200.0 if state == "waiting" else 10.0
        step(decider, 1.0, Submitted(spec(1, 4, 1.0, length=length)))
    victim = 1 if state in ("waiting", "reserved") else 0
    job = decider.jobs[victim]
    assert str(job.status) == {"reserved": "starting"}.get(state, state)
    step(decider, 2.0, Cancelled(victim))
    if state in ("starting", "stopping"):
        assert job.status == "stopping"
        step(decider, 3.0, Stopped(victim))
    assert job.status == "cancelled"
    assert victim not in decider.jobs
    assert [one for one, _ in decider.ended] == [job]
    assert decider.explain(victim).cause == "unknown"


def test_cancelling_what_is_not_there_is_harmless() -> None:
    decider = scheduler("1x4")
    assert not step(decider, 0.0, Cancelled(5)).actions


def test_a_cancelled_job_makes_room() -> None:
    decider = scheduler("1x4")
    step(decider, 0.0, Submitted(spec(0, 4)), Submitted(spec(1, 4)))
    assert started(step(decider, 3.0, Cancelled(0))) == [1]


def test_a_cancelled_head_lets_the_next_go() -> None:
    decider = scheduler("1x4")
    step(decider, 0.0, Submitted(spec(0, 2)), Submitted(spec(1, 4)), Submitted(spec(2, 2)))
    assert started(step(decider, 3.0, Cancelled(1))) == [2]


def test_a_job_fails_as_often_as_it_may_and_then_for_good() -> None:
    decider = scheduler("1x4", costs=Costs(restart=0.0, checkpoint_every=10.0))
    step(decider, 0.0, Submitted(spec(0, 4, length=100, retries=2)))
    job = decider.jobs[0]
    assert started(step(decider, 25.0, Failed(0, "oom"))) == [0]
    assert (job.attained, job.failures) == (20.0, 1)
    step(decider, 27.0, Failed(0, "oom"))
    assert (job.attained, job.failures) == (20.0, 2)
    step(decider, 50.0, Failed(0, "oom"))
    assert job.status == "failed"
    assert decider.ended == [(job, "oom")]
    assert decider.cluster.idle == 4


def test_a_failure_may_say_what_was_kept() -> None:
    decider = scheduler("1x4")
    step(decider, 0.0, Submitted(spec(0, 4, length=100, retries=1)))
    step(decider, 25.0, Failed(0, kept=12.5))
    assert decider.jobs[0].attained == 12.5


def test_a_job_that_is_broken_itself_is_not_tried_again() -> None:
    decider = scheduler("1x4")
    step(decider, 0.0, Submitted(spec(0, 4, retries=9)))
    step(decider, 1.0, Failed(0, "no such module", final=True))
    assert not decider.jobs


def test_a_failed_job_queues_again_from_its_failure_on() -> None:
    decider = scheduler("1x4")
    step(decider, 0.0, Submitted(spec(0, 4, retries=1)), Submitted(spec(1, 4)))
    plan = step(decider, 5.0, Failed(0))
    assert started(plan) == [0]
    assert decider.jobs[0].since == 5.0
