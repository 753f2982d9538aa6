"""Jobs that are no claims beside claims: their amounts are taken back, and nobody starves."""

from __future__ import annotations

from random import Random

import pytest
from sensitive_world import MODELS, SensitiveWorld, job, tuned

from dovetail.core.scheduler import Scheduler
from dovetail.model.event import Submitted
from dovetail.model.job import JobSpec, Status
from dovetail.model.plan import Stop
from dovetail.model.request import Alternative, Group, Mode, Replica, Request, gang

ONE = "1x8,cpus=24,mem=500"

WORKERS, SERVER = Group(2, Replica(), 2), Group(1, Replica(0, cpu=4000), 1)
ELASTIC = Request((Alternative((Group(4, Replica(), 2),)),))
EITHER = Request((Alternative((Group(4, Replica(), 4),)), Alternative((Group(1, Replica(), 1),))))
LEAN = Request(
    (Alternative((Group(1, Replica(memory=400_000), 1),)),),
    modes=(Mode("plain"), Mode("lean", 0.25, 2.0)),
)

SHAPES = {
    "CPU only": gang(0, cpu=10_000),
    "more CPU than its share": gang(1, cpu=11_000),
    "more memory than its share": gang(1, memory=250_000),
    "half a device": gang(1, share=500),
    "two groups": Request((Alternative((WORKERS, SERVER)),)),
    "two GPUs of one node": Request((Alternative((Group(1, Replica(2), 1),)),)),
    "elastic": ELASTIC,
    "one of two shapes": EITHER,
    "one of two modes": LEAN,
}


def filled(decider: Scheduler, gpus: int) -> None:
    """Some hungry jobs that together take every core of a node."""
    for number in range(gpus):
        decider.step(0.0, [Submitted(job(number, model="res18", length=1000))])
    assert decider.cluster.cpu[0] == 0


@pytest.mark.parametrize("allocator", ["tune", "optimal"])
@pytest.mark.parametrize("shape", SHAPES)
def test_amounts_are_taken_back_from_claims_for(shape: str, allocator: str) -> None:
    decider = tuned(ONE, allocator=allocator)
    filled(decider, 4)
    decider.step(1.0, [Submitted(job(9, model="", length=10, request=SHAPES[shape]))])
    decider.validate()
    newcomer = decider.jobs[9]
    assert newcomer.status is Status.RUNNING
    assert all(decider.jobs[number].rate >= 1.0 for number in range(4))
    each = SHAPES[shape].alternatives[0].groups[-1].each
    assert newcomer.allocation is not None
    assert newcomer.allocation.parts[-1].cpu >= (each.cpu or 0)


def test_what_was_taken_back_is_returned_when_the_job_leaves() -> None:
    decider = tuned(ONE)
    jobs = [job(number, model="res18", length=100) for number in range(4)]
    jobs.append(job(9, at=1.0, model="", length=10, request=gang(0, cpu=10_000)))
    rates = [
        [decider.jobs[number].rate for number in range(4)]
        for _, instant in zip(range(3), SensitiveWorld(decider, jobs).instants(), strict=False)
        if instant
    ]
    assert sum(rates[0]) > sum(rates[1])
    assert rates[2] == rates[0]


@pytest.mark.parametrize(
    ("request_", "free", "gpus"), [(ELASTIC, 3, 3), (ELASTIC, 2, 2), (EITHER, 3, 1), (EITHER, 4, 4)]
)
def test_who_can_live_with_less_starts_with_what_is_free(
    request_: Request, free: int, gpus: int
) -> None:
    decider = tuned(ONE)
    decider.step(0.0, [Submitted(job(0, 8 - free, model="res18", length=1000))])
    decider.step(1.0, [Submitted(job(9, model="alexnet", length=10, request=request_))])
    newcomer = decider.jobs[9]
    assert newcomer.allocation is not None, "it waits although it would fit"
    assert newcomer.allocation.gpus == gpus


def test_a_job_that_insists_in_vain_stops_nobody() -> None:
    decider = tuned(ONE, "priority:preempt=true")
    filled(decider, 8)
    greedy = job(9, model="", length=10, request=gang(1, cpu=24_000), priority=9.0)
    plan = decider.step(1.0, [Submitted(greedy)])
    assert not any(isinstance(action, Stop) for action in plan.actions)
    assert decider.jobs[9].status is Status.WAITING
    decider.validate()


def mixed_jobs(seed: int, count: int = 30) -> list[JobSpec]:
    rng = Random(seed)
    requests = [gang(gpus) for gpus in (1, 1, 1, 2, 4, 8)] + list(SHAPES.values())
    times = sorted(rng.randrange(60) for _ in range(count))
    return [
        job(
            number,
            at=at,
            model=rng.choice([*MODELS, ""]),
            length=rng.randrange(1, 60),
            request=rng.choice(requests),
            tenant=rng.choice(["red", "blue"]),
            deadline=at + 300.0,
        )
        for number, at in enumerate(times)
    ]


@pytest.mark.parametrize("placement", ["best-fit", "consolidated"])
@pytest.mark.parametrize("allocator", ["tune", "optimal"])
@pytest.mark.parametrize("policy", ["fifo", "srtf", "fair-share", "fifo:skip=true,preempt=true"])
def test_all_kinds_of_jobs_run_beside_each_other_to_the_end(
    policy: str, allocator: str, placement: str
) -> None:
    for seed in range(3 if allocator == "tune" else 1):
        jobs = mixed_jobs(seed)
        decider = tuned("2x8,cpus=24,mem=500", policy, allocator, placement)
        world = SensitiveWorld(decider, jobs)
        for _ in world.instants(4000):
            decider.validate()
        assert world.ended == {each.id: "done" for each in jobs}


@pytest.mark.parametrize("policy", ["fifo", "srtf"])
def test_all_kinds_of_jobs_run_within_partitions(policy: str) -> None:
    for seed in range(3):
        jobs = mixed_jobs(seed)
        decider = tuned("2x8,cpus=24,mem=500", policy, partitions={"red": 1, "blue": 1})
        world = SensitiveWorld(decider, jobs)
        for _ in world.instants(4000):
            decider.validate()
        assert world.ended == {each.id: "done" for each in jobs}


def blocked(policy: str) -> Scheduler:
    """One job has 20 of 24 cores; the second wants 4 of 7 GPUs and 12 cores, the third 4 GPUs."""
    decider = tuned(ONE, policy)
    wide = [gang(1, cpu=20_000), gang(4, cpu=12_000), gang(4, cpu=4_000)]
    comes = [
        job(number, at=float(number), request=request, model="", length=1000.0)
        for number, request in enumerate(wide)
    ]
    decider.step(0.0, [Submitted(comes[0])])
    decider.step(2.0, [Submitted(each) for each in comes[1:]])
    decider.validate()
    return decider


@pytest.mark.parametrize("policy", ["shared", "synergy", "synergy:order=fifo,skip=true"])
def test_who_cannot_be_arranged_is_passed_over_where_the_order_looks_past_misfits(
    policy: str,
) -> None:
    decider = blocked(policy)
    assert decider.jobs[2].status is Status.RUNNING
    assert decider.explain(1).blockers


@pytest.mark.parametrize("policy", ["synergy:order=srtf", "synergy:order=srsf"])
def test_who_cannot_be_arranged_though_others_made_room_is_passed_over(policy: str) -> None:
    """The first has 20 of 24 cores and stays; the second makes room for the fourth alone."""
    decider = tuned(ONE, policy)
    wide = [(1, 20_000, 10.0), (7, 1_000, 9000.0), (4, 12_000, 50.0), (4, 4_000, 100.0)]
    comes = [
        job(number, request=gang(gpus, cpu=cpu), model="", length=length)
        for number, (gpus, cpu, length) in enumerate(wide)
    ]
    decider.step(0.0, [Submitted(each) for each in comes[:2]])
    plan = decider.step(1.0, [Submitted(each._replace(submit=1.0)) for each in comes[2:]])
    decider.validate()
    assert [action.job for action in plan.actions if isinstance(action, Stop)] == [1]
    assert [decider.jobs[number].status for number in (0, 2, 3)] == [
        "running",
        "waiting",
        "running",
    ]


def test_who_cannot_be_arranged_holds_up_a_strict_order() -> None:
    decider = blocked("synergy:order=fifo")
    assert (decider.explain(1).cause, decider.explain(1).blockers) == ("cpu or memory", (0,))
    assert (decider.explain(2).cause, decider.explain(2).blockers) == ("order", (1,))


def test_who_comes_first_is_not_passed_over_for_amounts_that_go_to_a_later_one() -> None:
    decider = tuned(ONE, "synergy:order=fifo,skip=true")
    first = job(0, request=gang(8), model="", length=1000.0)
    later = job(1, request=gang(0, cpu=20_000), model="", length=1000.0)
    decider.step(0.0, [Submitted(first), Submitted(later)])
    assert decider.jobs[0].status is Status.RUNNING
    assert decider.explain(1).cause == "cpu or memory"


def test_nor_where_somebody_makes_room_for_it() -> None:
    decider = tuned(ONE, "synergy:order=srtf")
    long = job(0, request=gang(8), model="", length=9000.0)
    first = job(1, at=1.0, request=gang(8), model="", length=50.0)
    later = job(2, at=1.0, request=gang(0, cpu=20_000), model="", length=60.0)
    decider.step(0.0, [Submitted(long)])
    decider.step(1.0, [Submitted(first), Submitted(later)])
    assert [decider.jobs[number].status for number in range(3)] == ["waiting", "running", "waiting"]
