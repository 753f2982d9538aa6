"""Running jobs in another tenancy: at home if their tenant's cells cover them, else as if lent."""

from __future__ import annotations

from workbench import owners, scheduler, spec

from dovetail.core.scheduler import Scheduler
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.event import (
    Cancelled,
    Finished,
    Freed,
    Held,
    NodeDraining,
    Offered,
    Submitted,
    Wake,
    Withheld,
)
from dovetail.model.plan import Start, Stop
from dovetail.model.request import gang
from dovetail.model.tenants import Use
from dovetail.tenancy.kinds import Tenants

ONE_QUEUE = None
CELLS = owners("cells", red="nodes = 1\ngpus = [2]", blue="gpus = [1, 1]")
NO_RED = owners("cells", blue="nodes = 1")
SHARES = owners("shares", red="gpus = 4", blue="gpus = 4")


def box(tenants: Tenants | None) -> Scheduler:
    return scheduler("2x4", "fifo:skip=true", tenants=tenants)


def taken_over(tenants: Tenants | None, before: Scheduler) -> Scheduler:
    held = {job.id: job.allocation for job in before.jobs.values()}
    made = box(tenants)
    made.take_over(before)
    made.validate()
    assert {job.id: job.allocation for job in made.jobs.values()} == held
    return made


def home(made: Scheduler, job: int) -> str:
    return made.tenancy.domains[made.jobs[job].home]


def test_who_fits_what_its_tenant_owns_is_at_home_there() -> None:
    before = box(ONE_QUEUE)
    before.step(0.0, [Submitted(spec(0, 4, tenant="red")), Submitted(spec(1, 1, tenant="blue"))])
    made = taken_over(CELLS, before)
    assert [home(made, job) for job in (0, 1)] == ["red", "blue"]
    # Red has its two loose GPUs left, and its node is in use.
    view = made.tenancy.view(made.jobs[0].home)
    assert sorted(view.free) == [0, 2]
    plan = made.step(1.0, [Submitted(spec(2, 2, 1.0, tenant="red"))])
    assert [action.job for action in plan.actions] == [2]
    made.step(2.0, [Finished(0), Finished(1), Finished(2)])
    made.validate()


def test_who_does_not_fit_runs_on_as_if_lent_until_owners_come() -> None:
    before = box(ONE_QUEUE)
    before.step(0.0, [Submitted(spec(0, 8, length=50.0, tenant="blue", resumable=True))])
    made = taken_over(CELLS, before)
    assert home(made, 0) == "lent"
    plan = made.step(1.0, [Submitted(spec(1, 4, 1.0, tenant="red"))])
    assert isinstance(plan.actions[0], Stop)
    # Now that it waits it waits at home, where it can never fit and says so.
    assert home(made, 0) == "blue"
    assert "8 GPUs" in made.explain(0).text
    made.validate()


def test_two_tenants_on_one_device_are_both_lent_it() -> None:
    half = gang(1, share=500)
    before = box(ONE_QUEUE)
    jobs = [spec(number, request=half, tenant=("red", "blue")[number]) for number in (0, 1)]
    before.step(0.0, [Submitted(job) for job in jobs])
    made = taken_over(CELLS, before)
    assert [home(made, job) for job in (0, 1)] == ["lent", "lent"]
    made.step(1.0, [Finished(0)])
    made.validate()
    made.step(2.0, [Finished(1)])
    assert made.cluster.idle == 8


def test_who_runs_on_what_its_tenant_has_pinned_is_at_home_there() -> None:
    tenants = owners("cells", red='pinned = ["n0:0-1", "n1"]', blue="gpus = [2]")
    before = box(tenants)
    jobs = [spec(number, 2, tenant="red", length=9.0, resumable=False) for number in range(3)]
    before.step(0.0, [Submitted(job) for job in jobs])
    assert all(job.allocation is not None for job in before.jobs.values())
    made = taken_over(tenants, before)
    assert [home(made, job) for job in range(3)] == ["red"] * 3
    plan = made.step(1.0, [Submitted(spec(3, 2, 1.0, tenant="red"))])
    assert not plan.actions, "what red owns is in use, by red"


def test_who_is_stopped_by_others_who_borrow_starts_at_home_at_once() -> None:
    """It ran as if lent, and a shorter job wanted that: its tenant is asked in the same step."""
    before = scheduler("2x4", "srtf")
    before.step(0.0, [Submitted(spec(0, 8, tenant="blue", length=90.0))])
    before.step(0.0, [Finished(0), Submitted(spec(1, 4, tenant="red", length=50.0))])
    before.step(0.0, [Submitted(spec(2, 4, tenant="red", length=50.0))])
    made = scheduler("2x4", "srtf", tenants=owners("cells", red="nodes = 1"))
    made.take_over(before)
    made.step(1.0, [Finished(1), Wake()])
    assert home(made, 2) == "lent"
    shorter = spec(3, 8, 2.0, priority=-1.0, length=2.0, resumable=True)
    plan = made.step(2.0, [Submitted(shorter)])
    stopped = {each.job for each in plan.actions if isinstance(each, Stop)}
    assert {2} <= stopped, "the shorter one comes first among those who borrow"
    assert home(made, 2) == "red"
    assert made.jobs[2].allocation is not None, "it has what its tenant owns"
    made.validate()


def test_all_that_is_owed_can_still_be_had_at_once() -> None:
    """Of three GPUs close to each other there are two cells left, if nobody wants a whole node."""
    before = scheduler("3x6", "fifo:skip=true")
    before.step(0.0, [Submitted(spec(0, 1, tenant="red", length=9.0))])
    tenants = owners(
        "cells", red="gpus = [3, 1]", blue="nodes = 1", green='pinned = ["n0:5", "n1"]'
    )
    made = scheduler("3x6", "fifo:skip=true", tenants=tenants)
    made.take_over(before)
    made.validate()
    assert home(made, 0) == "red"
    wanted = [spec(1, 6, tenant="blue"), spec(2, 2, tenant="red"), spec(3, 1, tenant="red")]
    made.step(1.0, [Submitted(job) for job in wanted])
    assert all(job.allocation is not None for job in made.jobs.values())
    made.validate()


def test_higher_priorities_have_the_cells_if_there_are_too_few() -> None:
    before = box(ONE_QUEUE)
    before.step(
        0.0, [Submitted(spec(n, 4, tenant="red", priority=float(n), length=9.0)) for n in (0, 1)]
    )
    made = taken_over(CELLS, before)
    assert [home(made, job) for job in (0, 1)] == ["lent", "red"]


def test_who_would_lose_its_work_is_first_to_have_what_its_tenant_owns() -> None:
    for tenants in (CELLS, owners("shares", red="gpus = 4", blue="gpus = 2")):
        before = box(ONE_QUEUE)
        jobs = [
            spec(0, 4, tenant="red", priority=5.0, resumable=True, length=9.0),
            spec(1, 4, tenant="red", resumable=False, length=9.0),
        ]
        before.step(0.0, [Submitted(job) for job in jobs])
        made = taken_over(tenants, before)
        lent = {
            job
            for patch in made.tenancy.overview().patches
            for job in patch.jobs
            if patch.use is Use.LENT
        }
        assert lent == {0}


def test_owners_have_other_hardware_before_somebody_loses_its_work() -> None:
    before = scheduler("3x4", "fifo:skip=true")
    fixed, able = (spec(n, 4, tenant="gone", length=9.0, resumable=bool(n)) for n in (0, 1))
    before.step(0.0, [Submitted(fixed), Submitted(able)])
    three = owners("cells", red="nodes = 3")
    made = scheduler("3x4", "fifo:skip=true", tenants=three)
    made.take_over(before)
    fork = scheduler("3x4", "fifo:skip=true", tenants=three)
    fork.restore(made.snapshot())
    for number, stopped in ((2, []), (3, [1]), (4, [0])):
        batch = [Submitted(spec(number, 4, number, tenant="red"))]
        plan = made.step(float(number), batch)
        assert [each.job for each in plan.actions if isinstance(each, Stop)] == stopped
        assert fork.step(float(number), batch) == plan
        assert made.jobs[number].allocation is not None, "what it owns it has at once"
        made.validate()


def test_so_they_have_on_one_machine() -> None:
    before = scheduler("1x8", "fifo:skip=true")
    jobs = [spec(n, 2, tenant="gone", length=9.0, resumable=n != 1) for n in range(4)]
    before.step(0.0, [Submitted(job) for job in jobs])
    made = scheduler("1x8", "fifo:skip=true", tenants=owners("cells", red="gpus = [2, 2, 2]"))
    made.take_over(before)
    batch = [Submitted(spec(number, 2, 1.0, tenant="red")) for number in (4, 5, 6)]
    stopped = {each.job for each in made.step(1.0, batch).actions if isinstance(each, Stop)}
    assert stopped == {0, 2, 3}
    made.validate()


def test_who_waits_for_a_tenant_that_is_gone_waits_until_it_is_named_again() -> None:
    before = box(CELLS)
    jobs = [spec(0, 4, tenant="red"), spec(1, 4, tenant="red"), spec(2, 1, tenant="red")]
    before.step(0.0, [Submitted(job) for job in jobs])
    before.step(0.0, [Withheld(1)])
    assert before.jobs[2].allocation is not None
    gone = taken_over(NO_RED, before)
    assert home(gone, 0) == home(gone, 2) == "lent"
    assert gone.explain(1).cause == "tenant"
    assert gone.explain(1).text == "no tenant is called 'red'; there are: blue"
    assert not gone.step(1.0, [Wake(), Offered(1), Finished(0)]).actions
    fork = box(NO_RED)
    fork.restore(gone.snapshot())
    fork.validate()
    back = taken_over(CELLS, fork)
    plan = back.step(2.0, [Wake()])
    assert [action.job for action in plan.actions if isinstance(action, Start)] == [1]


def test_who_has_no_tenant_can_be_given_up() -> None:
    before = box(CELLS)
    before.step(0.0, [Submitted(spec(n, 4, tenant="red")) for n in (0, 1)])
    gone = taken_over(NO_RED, before)
    gone.step(1.0, [Cancelled(0), Cancelled(1)])
    assert not gone.jobs
    gone.validate()


def test_numbers_take_over_too_and_who_is_gone_only_borrows() -> None:
    before = box(CELLS)
    jobs = [spec(0, 4, tenant="red", length=50.0, resumable=True), spec(1, 1, tenant="blue")]
    before.step(0.0, [Submitted(job) for job in jobs])
    made = taken_over(owners("shares", blue="gpus = 8"), before)
    assert [home(made, job) for job in (0, 1)] == ["lent", "blue"]
    plan = made.step(1.0, [Submitted(spec(2, 7, 1.0, tenant="blue"))])
    assert [type(action) for action in plan.actions] == [Stop, Start]
    assert made.explain(0).cause == "tenant"
    made.validate()
    again = taken_over(SHARES, made)
    assert again.jobs[0].stray == ""


def test_what_others_hold_and_closed_nodes_are_taken_over() -> None:
    before = box(ONE_QUEUE)
    before.step(0.0, [Held("slurm", allocation_of((Part(0, 0b1),))), NodeDraining(1)])
    made = taken_over(CELLS, before)
    plan = made.step(1.0, [Submitted(spec(0, 1, 1.0, tenant="red"))])
    assert not plan.actions
    made.step(2.0, [Freed("slurm")])
    assert made.jobs[0].allocation is not None
    assert made.jobs[0].allocation.parts[0].node == 0
    made.validate()
