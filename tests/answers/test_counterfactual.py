"""What would help: every idea that is offered is true when it is tried."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.answers.counterfactual import Trials
from dovetail.controller.parts import Parts, composer
from dovetail.core.scheduler import Scheduler
from dovetail.executors.fake import FakeExecutor, Machine
from dovetail.model.costs import Costs
from dovetail.model.event import Submitted
from dovetail.model.job import JobSpec, Status
from dovetail.model.request import gang
from dovetail.model.why import Instead
from dovetail.simulator.spec import parse_cluster
from dovetail.speed.locality import Locality
from dovetail.tenancy.contracts import Contract, Holding
from dovetail.tenancy.kinds import Tenants

BORROW = "--borrow, on what others leave idle"
PRIORITIES = {"normal priority": 0.0, "high priority": 1.0, BORROW: -1.0}

Make = Callable[[], Scheduler]


def maker(
    policy: str = "fifo:skip=true", cluster: str = "1x4,cpus=16,mem=64", kind: str = ""
) -> Make:
    machine = Machine(parse_cluster(cluster), Locality(), Costs(), lambda: 0.0)
    owners = tuple(Contract(name, (Holding(gpus=(2,)),)) for name in "ab")
    tenancy = Tenants(kind, owners).written() if kind else None
    parts = Parts(policy, allocator="proportional", tenancy=tenancy)
    return composer(parts, FakeExecutor(machine))


def job(number: int, gpus: int, cpu: int | None = None, **more: object) -> JobSpec:
    cores = None if cpu is None else cpu * 1000
    return JobSpec(number, f"j{number}", 0.0, gang(gpus, cores), resumable=True, **more)  # type: ignore[arg-type]


def trials(scheduler: Scheduler, make: Make) -> Trials:
    lends = scheduler.tenancy.lends
    return Trials(scheduler.image(), make, 10.0, lambda job: job.expected, None, 30.0, lends)


def offered(make: Make, specs: list[JobSpec], number: int) -> tuple[Instead, ...]:
    scheduler = make()
    scheduler.step(0.0, [Submitted(spec) for spec in specs])
    assert scheduler.jobs[number].status is Status.WAITING
    return trials(scheduler, make).instead(scheduler.jobs[number].spec)


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


SHAPES = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.none() | st.integers(1, 16),
        st.sampled_from("ab"),
        st.sampled_from([0.0, 0.0, -1.0]),
    ),
    min_size=2,
    max_size=8,
)
KINDS = [("fifo", ""), ("fifo:skip=true", ""), ("fair-share:skip=true", ""), ("las", "")]
KINDS += [("fifo", "cells"), ("fifo:skip=true", "cells"), ("las", "cells")]
KINDS += [("fifo:skip=true", "shares")]


@pytest.mark.parametrize(("policy", "kind"), KINDS)
@settings(max_examples=15)
@given(shapes=SHAPES)
def test_what_is_offered_is_true_when_tried(
    policy: str, kind: str, shapes: list[tuple[int, int | None, str, float]]
) -> None:
    make = maker(policy, kind=kind)
    specs = [
        job(number, gpus, cpu, tenant=tenant, priority=priority)
        for number, (gpus, cpu, tenant, priority) in enumerate(shapes, 1)
    ]
    scheduler = make()
    scheduler.step(0.0, [Submitted(spec) for spec in specs])
    waits = [each for each in scheduler.jobs.values() if each.status is Status.WAITING]
    for each in waits[:2]:
        for idea in trials(scheduler, make).instead(each.spec):
            if idea.starts_in == 0:
                _try(make, specs, each.id, idea)


def _try(make: Make, specs: list[JobSpec], number: int, idea: Instead) -> None:
    """The same from the beginning, with the job as the idea has it."""
    old = specs[number - 1]
    if idea.change in PRIORITIES:
        _hold(make, specs, old, old._replace(priority=PRIORITIES[idea.change]), idea)
        return
    amount, unit = idea.change.split()[:2]
    gpus = old.request.gpus
    cpu = sum(group.most * (group.each.cpu or 0) for group in old.request.alternatives[0].groups)
    each = cpu // gpus if cpu else None
    if unit.startswith("GPU"):
        request = gang(int(amount), None if each is None else each * int(amount))
    else:
        request = gang(gpus, int(amount) * 1000)
    _hold(make, specs, old, old._replace(request=request), idea)


def _hold(make: Make, specs: list[JobSpec], old: JobSpec, new: JobSpec, idea: Instead) -> None:
    """The job that was changed holds devices at the moment it was told it would."""
    number = old.id
    changed = [new if spec is old else spec for spec in specs]
    again = make()
    again.step(0.0, [Submitted(spec) for spec in changed])
    again.step(10.0, [])
    assert again.jobs[number].allocation is not None, (idea, specs)
