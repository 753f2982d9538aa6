"""What would help: every idea that is offered is true when it is tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from scattered import Scattered, by_words, scattered

from dovetail.answers.counterfactual import AT_ITS_PLACE, Trials
from dovetail.answers.foresight import Present, fork
from dovetail.controller.parts import Parts, composer
from dovetail.core.scheduler import Scheduler
from dovetail.executors.fake import FakeExecutor, Machine
from dovetail.model.costs import Costs
from dovetail.model.event import Cancelled, Submitted, Wake
from dovetail.model.job import Job, JobSpec, Status
from dovetail.model.request import gang
from dovetail.model.why import Instead
from dovetail.simulator.spec import parse_cluster
from dovetail.speed.locality import Locality
from dovetail.tenancy.contracts import Contract, Holding
from dovetail.tenancy.kinds import Tenants

BORROW = "--borrow, on what others leave idle"

Make = Callable[[], Scheduler]


def maker(
    policy: str = "fifo:skip=true",
    cluster: str = "1x4,cpus=16,mem=64",
    kind: str = "",
    quotas: str | None = None,
) -> Make:
    machine = Machine(parse_cluster(cluster), Locality(), Costs(), lambda: 0.0)
    owners = tuple(Contract(name, (Holding(gpus=(2,)),)) for name in "ab")
    tenancy = Tenants(kind, owners).written() if kind else None
    parts = Parts(
        policy, allocator="proportional", predictor="declared", quotas=quotas, tenancy=tenancy
    )
    return composer(parts, FakeExecutor(machine))


def job(number: int, gpus: int, cpu: int | None = None, **more: object) -> JobSpec:
    cores = None if cpu is None else cpu * 1000
    return JobSpec(number, f"j{number}", 0.0, gang(gpus, cores), resumable=True, **more)  # type: ignore[arg-type]


def trials(scheduler: Scheduler, make: Make, unlimited: Make | None = None) -> Trials:
    return Trials(
        Present(scheduler.image(), make),
        10.0,
        lambda job: job.expected,
        types=tuple(pool.type for pool in scheduler.cluster.pools),
        packed=not scheduler.cluster.idle,
        budget=30.0,
        lends=scheduler.tenancy.lends,
        reserves=True,
        unlimited=unlimited,
    )


def offered(
    make: Make, specs: list[JobSpec], number: int, unlimited: Make | None = None
) -> tuple[Instead, ...]:
    scheduler = make()
    scheduler.step(0.0, [Submitted(spec) for spec in specs])
    assert scheduler.jobs[number].status is Status.WAITING
    return trials(scheduler, make, unlimited).instead(number)


def test_fewer_cores_would_do() -> None:
    found = offered(maker(), [job(1, 1, 12), job(2, 1, 16)], 2)
    assert [each.change for each in found if not each.starts_in] == ["4 cores instead of 16"]


def test_fewer_gpus_would_do() -> None:
    found = offered(maker(), [job(1, 1), job(2, 4)], 2)
    assert found[0] == Instead("3 GPUs instead of 4", 0.0)


def test_fewer_gpus_would_be_sooner() -> None:
    specs = [job(1, 2, estimate=100.0), job(2, 2, estimate=1000.0), job(3, 4)]
    found = offered(maker(), specs, 3)
    assert [each.change for each in found] == ["1 GPU instead of 4"]
    assert (found[0].starts_in, found[0].sooner) == pytest.approx((90.0, 900.0))


def test_urgency_would_stop_others() -> None:
    make = maker("priority:skip=true,displace=lower")
    found = offered(make, [job(1, 4, priority=0.0), job(2, 4)], 2)
    assert Instead("high priority", 0.0, None, (1,)) in found


def test_nothing_helps_where_all_is_taken_for_good() -> None:
    assert offered(maker(), [job(1, 4), job(2, 1)], 2) == ()


def test_borrowing_would_do() -> None:
    specs = [job(1, 2, tenant="a"), job(2, 2, tenant="a")]
    assert offered(maker(kind="cells"), specs, 2)[-1] == Instead(BORROW, 0.0)


def test_who_cannot_resume_is_not_told_to_borrow() -> None:
    specs = [job(1, 2, tenant="a"), job(2, 2, tenant="a")._replace(resumable=False)]
    assert offered(maker(kind="cells"), specs, 2) == ()


def test_what_its_tenant_owns_would_do_for_a_job_that_borrows() -> None:
    specs = [job(1, 4, tenant="b", priority=-1.0), job(2, 2, tenant="a", priority=-1.0)]
    found = offered(maker(kind="cells"), specs, 2)
    assert Instead("normal priority", 0.0, None, (1,)) in found


def test_what_others_would_take_once_it_is_submitted_again_would_do_at_its_place() -> None:
    specs = [job(1, 3), job(2, 4), job(3, 1)]
    found = offered(maker("fifo"), specs, 2)
    assert found[0] == Instead("1 GPU instead of 4, at its place in the queue", 0.0)


def test_fewer_cores_are_as_many_as_there_are() -> None:
    found = offered(maker(), [job(1, 1, 5), job(2, 1, 16)], 2)
    assert [each.change for each in found if not each.starts_in] == ["11 cores instead of 16"]


def test_fewer_gpus_alone_do_not_help_where_cores_are_short() -> None:
    found = offered(maker(), [job(1, 1, 12), job(2, 2, 8)], 2)
    changes = [each.change for each in found if not each.starts_in]
    assert changes == [
        "4 cores instead of 8",
        "1 GPU instead of 2, and as much less CPU and memory",
    ]


def test_another_type_would_do() -> None:
    make = maker(cluster="1x4,cpus=16,mem=64,type=a+1x4,cpus=16,mem=64,type=b")
    wants = [job(number, 4)._replace(request=gang(4, types=("a",))) for number in (1, 2)]
    assert offered(make, wants, 2)[0] == Instead("GPUs of type b instead of a", 0.0)


def test_a_smaller_part_of_a_gpu_would_do() -> None:
    parts = [gang(1, share=600), gang(3), gang(1)]
    specs = [job(number, 1)._replace(request=each) for number, each in enumerate(parts, 1)]
    assert offered(maker(), specs, 3)[0] == Instead("0.4 of a GPU instead of 1", 0.0)


def test_who_would_end_in_time_may_fill_a_hole() -> None:
    make = maker("fifo:backfill=easy")
    lengths = [(3, 1200.0), (4, 1000.0), (1, 7200.0)]
    specs = [job(number, gpus, estimate=s) for number, (gpus, s) in enumerate(lengths, 1)]
    assert offered(make, specs, 3) == (Instead("an estimate of 18 min instead of 120", 0.0),)


def test_a_larger_quota_would_do() -> None:
    specs = [job(1, 2, user="ann"), job(2, 1, user="ann")]
    assert Instead("a larger quota", 0.0) in offered(maker(quotas="ann=2"), specs, 2, maker())


def test_what_a_rank_of_its_own_would_do_is_no_merit_of_an_idea() -> None:
    # Ratios are taken at each re-ranking: a job that is submitted again would be first.
    make = maker("finish-time-fairness")
    assert offered(make, [job(1, 4, estimate=1000.0), job(2, 4, estimate=1000.0)], 2) == ()


def test_what_was_done_before_a_stop_counts_for_an_idea_too() -> None:
    make = maker("las")
    scheduler = make()
    scheduler.step(0.0, [Submitted(job(1, 4, estimate=9000.0))])
    scheduler.step(1000.0, [Submitted(job(2, 4, estimate=9000.0)._replace(submit=1000.0))])
    scheduler.step(1100.0, [])
    assert scheduler.jobs[1].status is Status.WAITING
    found = replace(trials(scheduler, make), now=1101.0).instead(1)
    assert all(each.starts_in for each in found)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_offered_is_true_when_tried(seed: int) -> None:
    world = scattered(seed)
    for each in world.waiting[:2]:
        for idea in world.trials.instead(each.id):
            if idea.starts_in == 0 and idea.change != "a larger quota":
                _hold(world, each, by_words(each.spec, idea.change), idea)


def _hold(world: Scattered, job: Job, changed: JobSpec, idea: Instead) -> None:
    """The job as the words have it starts: at its place, and cancelled and submitted again."""
    now, image = world.trials.now, world.trials.present.image
    others = [each for each in image["jobs"] if each.id != job.id]
    there = fork(world.make, {**image, "jobs": others})
    twin = job.twin()
    twin.spec = changed
    if changed.estimate != job.spec.estimate:
        twin.expected = there.predictor.expect(changed)
    there.take_in(twin)
    there.step(now, [Wake()])
    assert twin.allocation is not None, (idea, job.spec)
    if idea.change.endswith(AT_ITS_PLACE):
        return
    again = fork(world.make, image)
    again.step(now, [Cancelled(job.id)])
    again.step(now, [Submitted(changed._replace(id=1000, submit=now))])
    assert again.jobs[1000].allocation is not None, (idea, job.spec)
