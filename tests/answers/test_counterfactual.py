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

Make = Callable[[], Scheduler]


def maker(policy: str = "fifo:skip=true", cluster: str = "1x4,cpus=16,mem=64") -> Make:
    machine = Machine(parse_cluster(cluster), Locality(), Costs(), lambda: 0.0)
    return composer(Parts(policy, allocator="proportional"), FakeExecutor(machine))


def job(number: int, gpus: int, cpu: int | None = None, **more: object) -> JobSpec:
    cores = None if cpu is None else cpu * 1000
    return JobSpec(number, f"j{number}", 0.0, gang(gpus, cores), resumable=True, **more)  # type: ignore[arg-type]


def trials(scheduler: Scheduler, make: Make) -> Trials:
    return Trials(scheduler.image(), make, 10.0, lambda job: job.expected, budget=30.0)


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


SHAPES = st.lists(
    st.tuples(st.integers(1, 4), st.none() | st.integers(1, 16)), min_size=2, max_size=8
)


@pytest.mark.parametrize("policy", ["fifo", "fifo:skip=true", "fair-share:skip=true", "las"])
@settings(max_examples=25)
@given(shapes=SHAPES)
def test_what_is_offered_is_true_when_tried(
    policy: str, shapes: list[tuple[int, int | None]]
) -> None:
    make = maker(policy)
    specs = [job(number, *shape) for number, shape in enumerate(shapes, 1)]
    scheduler = make()
    scheduler.step(0.0, [Submitted(spec) for spec in specs])
    waits = [each for each in scheduler.jobs.values() if each.status is Status.WAITING]
    for each in waits[:2]:
        for idea in trials(scheduler, make).instead(each.spec):
            if idea.starts_in == 0 and idea.change != "high priority":
                _try(make, specs, each.id, idea)


def _try(make: Make, specs: list[JobSpec], number: int, idea: Instead) -> None:
    """The same from the beginning, with the job as the idea has it."""
    amount, unit = idea.change.split()[:2]
    old = specs[number - 1]
    gpus = old.request.gpus
    cpu = sum(group.most * (group.each.cpu or 0) for group in old.request.alternatives[0].groups)
    each = cpu // gpus if cpu else None
    if unit.startswith("GPU"):
        request = gang(int(amount), None if each is None else each * int(amount))
    else:
        request = gang(gpus, int(amount) * 1000)
    changed = [spec._replace(request=request) if spec is old else spec for spec in specs]
    again = make()
    again.step(0.0, [Submitted(spec) for spec in changed])
    again.step(10.0, [])
    assert again.jobs[number].allocation is not None, (idea, specs)
