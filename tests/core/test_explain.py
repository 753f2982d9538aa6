"""`explain` gives the one binding cause for a job's waiting, and what would unblock it."""

from __future__ import annotations

from workbench import scheduler, spec

from dovetail.core.scheduler import Scheduler
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.event import Event, Finished, Held, NodeDraining, Submitted


def told(policy: str, cluster: str, *sizes: int, placement: str = "best-fit") -> Scheduler:
    """Jobs 0, 1, … of these sizes, submitted in the first seconds; job n takes 100 - n seconds."""
    decider = scheduler(cluster, policy, placement)
    for number, gpus in enumerate(sizes):
        step(decider, number, Submitted(spec(number, gpus, number, length=100 - number)))
    return decider


def step(decider: Scheduler, now: float, *batch: Event) -> None:
    decider.step(float(now), batch)
    decider.validate()


def test_too_few_devices_are_free() -> None:
    decider = told("fifo", "1x4", 1, 2, 3)
    reason = decider.explain(2)
    assert reason.cause == "devices"
    assert reason.text == "needs 3 GPUs; 1 of 4 GPUs is free"
    assert reason.unblock == "the end of j1"
    assert reason.blockers == (1,)


def test_only_as_many_blockers_as_are_missing_and_the_first_to_end_first() -> None:
    decider = told("fifo", "1x4", 1, 1, 2, 2)
    step(decider, 50, Submitted(spec(9, 1, 50.0)))
    assert decider.explain(3).blockers == (0, 1)


def test_jobs_of_one_name_are_named_together() -> None:
    decider = scheduler("1x4", "fifo")
    for number, name in enumerate(("sweep", "sweep", "train")):
        step(decider, number, Submitted(spec(number, 1, float(number), name=name)))
    step(decider, 3, Submitted(spec(3, 4, 3.0, name="wide")))
    assert decider.explain(3).unblock == "the end of sweep (×2) and train"


def test_somebody_else_comes_first() -> None:
    decider = told("fifo", "1x4", 3, 2, 1)
    reason = decider.explain(2)
    assert reason.cause == "order"
    assert reason.text == "it fits, but j1 comes first and does not fit yet"
    assert reason.blockers == (1,)
    assert reason.unblock == "the start of j1, or skip=true"


def test_devices_are_free_but_scattered() -> None:
    decider = told("fifo", "2x4", 3, 3, 2, placement="consolidated")
    reason = decider.explain(2)
    assert reason.cause == "fragmentation"
    assert reason.text == "needs 2 GPUs; 2 GPUs are free, but not where it could use them together"
    assert (reason.blockers, reason.unblock) == ((0,), "the end of j0")


def test_cpu_or_memory_is_short() -> None:
    decider = scheduler("1x4,cpus=8,mem=8")
    step(decider, 0, Submitted(spec(0, 1, name="greedy", request=_cpu(7000))))
    step(decider, 1, Submitted(spec(1, 1, 1.0, request=_cpu(2000))))
    reason = decider.explain(1)
    assert reason.cause == "cpu or memory"
    assert reason.text.startswith("needs 1 GPU with 2 cores; enough GPUs are free, but not with")


def test_a_cpu_job_waits_for_cpu() -> None:
    decider = scheduler("1x1,cpus=4")
    step(decider, 0, Submitted(spec(0, request=_cpu(3000, gpus=0))))
    step(decider, 1, Submitted(spec(1, request=_cpu(3000, gpus=0))))
    assert decider.explain(1).cause == "cpu or memory"


def test_a_closed_node_is_no_place() -> None:
    decider = told("fifo", "1x4", 2)
    step(decider, 5, NodeDraining(0))
    step(decider, 6, Submitted(spec(1, 2, 6.0)))
    reason = decider.explain(1)
    assert reason.cause == "closed nodes"
    assert reason.unblock == "n0 back in service"


def test_others_use_what_it_needs() -> None:
    decider = scheduler("1x4")
    step(decider, 0, Held("someone", allocation_of((Part(0, 0b0111),))))
    step(decider, 1, Submitted(spec(0, 1, 1.0)))
    step(decider, 2, Submitted(spec(1, 2, 2.0)))
    reason = decider.explain(1)
    assert reason.cause == "others"
    assert reason.unblock == "others using less"


def test_whoever_is_passed_over_for_a_quota_blocks_nobody() -> None:
    decider = scheduler("1x4", quotas="ann=1")
    for number, (gpus, user) in enumerate([(1, "ann"), (1, "ann"), (4, "bob"), (1, "bob")]):
        step(decider, number, Submitted(spec(number, gpus, number, user=user, length=50)))
    assert decider.explain(1).cause == "quota"
    assert decider.explain(3).text == "it fits, but j2 comes first and does not fit yet"


def test_it_is_next() -> None:
    decider = told("fifo", "1x4", 4, 2)
    planner = decider.planners[0]
    job = decider.jobs[1]
    # Between the end of a job and the decision that follows, the waiting one simply is next.
    decider.cluster.release(decider.jobs[0].allocation)
    reason = planner.explain(job, 5.0)
    decider.cluster.take(decider.jobs[0].allocation)
    assert reason.cause == "next"
    assert reason.text == "it fits and starts with the next decision"


def test_running_jobs_and_strangers_say_so() -> None:
    decider = told("fifo", "1x4", 4)
    assert decider.explain(0).cause == "running"
    assert decider.explain(17).cause == "unknown"
    step(decider, 9, Finished(0))
    assert decider.explain(0).cause == "unknown"


def test_every_tenant_is_answered_from_its_own_partition() -> None:
    decider = scheduler("2x4", partitions={"red": 1, "blue": 1})
    for number, tenant in enumerate(("red", "blue", "red")):
        step(decider, number, Submitted(spec(number, 3, number, tenant=tenant)))
    assert decider.explain(2).text == "needs 3 GPUs; 1 of 4 GPUs is free"
    assert decider.explain(2).blockers == (0,)


def test_asking_changes_nothing() -> None:
    decider = told("srtf", "2x4", 3, 3, 2, 4, 1, placement="consolidated")
    before = decider.snapshot()
    for number in range(-1, 6):
        decider.explain(number)
    assert decider.snapshot() == before


def _cpu(cores: int, gpus: int = 1):
    from dovetail.model.request import gang

    return gang(gpus, cpu=cores)
