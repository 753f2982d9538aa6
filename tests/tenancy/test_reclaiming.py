"""Numbers of GPUs are reclaimed from who can resume before who would lose its work."""

from __future__ import annotations

import pytest
from workbench import owners, scheduler, spec

from dovetail.core.scheduler import Scheduler
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.event import Submitted
from dovetail.model.node import Node
from dovetail.model.plan import Start, Stop
from dovetail.tenancy.kinds import Tenants
from dovetail.tenancy.reclaiming import leaving
from dovetail.tenancy.standing import Taken

BEFORE = owners("shares", red="gpus = 8")
AFTER = owners("shares", blue="gpus = 8")


def box(tenants: Tenants, cluster: str) -> Scheduler:
    return scheduler(cluster, "fifo:skip=true", tenants=tenants)


def changed(cluster: str, *resumable: bool) -> Scheduler:
    """Jobs of two GPUs each, which run on what is another tenant's from now on."""
    before = box(BEFORE, cluster)
    for number, can in enumerate(resumable):
        job = spec(number, 2, tenant="red")._replace(resumable=can)
        before.step(0.0, [Submitted(job)])
    made = box(AFTER, cluster)
    made.take_over(before)
    made.validate()
    return made


def stopped(made: Scheduler, number: int, gpus: int) -> list[int]:
    """Who goes for a job of the owner's, which starts."""
    wanted = spec(number, gpus, made.now, tenant="blue")
    plan = made.step(made.now + 1, [Submitted(wanted)])
    made.validate()
    assert number in [action.job for action in plan.actions if isinstance(action, Start)]
    return [action.job for action in plan.actions if isinstance(action, Stop)]


def test_who_would_lose_its_work_goes_last_wherever_it_is() -> None:
    made = changed("1x8", False, True, True, False)
    assert [stopped(made, number, 2) for number in (10, 11)] == [[1], [2]]
    assert {made.jobs[job].status for job in (0, 3)} == {"running"}
    # All that is left is owed, too.
    assert sorted(stopped(made, 12, 4)) == [0, 3]


def test_one_job_takes_from_who_can_resume_as_much_as_there_is() -> None:
    made = changed("1x8", False, True, False, True)
    assert sorted(stopped(made, 10, 4)) == [1, 3]


def test_what_is_free_is_taken_before_anybody_goes() -> None:
    made = changed("1x8", False, False, False)
    assert stopped(made, 10, 2) == []
    assert len(stopped(made, 11, 2)) == 1


def test_cores_and_memory_are_reclaimed_in_the_same_order() -> None:
    cluster = Cluster([Node("n0", 4, cpu=4000)])
    held = [Part(0, 1 << device, 1000) for device in range(3)]
    borrowers = {
        number: Taken(0, allocation_of((part,)), True, resumable)
        for number, (part, resumable) in enumerate(zip(held, (True, True, False), strict=True))
    }
    for each in borrowers.values():
        cluster.take(each.allocation)
    for wanted, gone in {1000: [], 2000: [1], 3000: [1, 0], 4000: [1, 0, 2], 5000: None}.items():
        asked = allocation_of((Part(0, 0b1000, wanted),))
        assert leaving(cluster, borrowers, asked) == gone


def test_whoever_forgets_and_remembers_decides_alike() -> None:
    made = changed("1x8", False, True, True, False)
    again = box(AFTER, "1x8")
    again.restore(made.snapshot())
    for each in (made, again):
        assert stopped(each, 10, 2) == [1]
    assert made.snapshot() == again.snapshot()


def test_it_is_told_how_much_of_what_an_owner_wants_is_lent() -> None:
    tenants = owners("cells", red="gpus = [4]", blue="gpus = [4]")
    made = scheduler("1x8", "fifo:skip=true", tenants=tenants, acknowledged=True)
    kept = spec(0, 4, tenant="red")
    made.step(0.0, [Submitted(kept), Submitted(spec(1, 2, tenant="blue", priority=-1.0))])
    made.step(1.0, [Submitted(spec(2, 4, 1.0, tenant="blue"))])
    text = "2 of its 4 GPUs are lent to j1, which must leave first"
    assert made.explain(2).text == text


def test_who_waits_behind_one_that_may_not_borrow_is_told_so() -> None:
    made = box(owners("shares", red="gpus = 2", blue="gpus = 6"), "1x8")
    made.step(0.0, [Submitted(spec(0, 2, tenant="red"))])
    fixed = spec(1, 4, 1.0, tenant="red")._replace(resumable=False)
    made.step(1.0, [Submitted(fixed), Submitted(spec(2, 4, 1.0, tenant="red"))])
    assert made.explain(1).text == (
        "red has 0 GPUs left of its own, and a job that cannot resume may not borrow"
    )
    assert made.explain(2).text == (
        "a job of red comes first that cannot resume, so it may not borrow, and red has 0 GPUs "
        "left of its own"
    )


@pytest.mark.parametrize("kind", ["cells", "shares"])
def test_who_names_no_tenant_is_told_which_there_are(kind: str) -> None:
    made = box(owners(kind, red="gpus = [2]", blue="gpus = [4]"), "1x8")
    (refused,) = made.step(0.0, [Submitted(spec(0, 2))]).actions
    assert refused.cause == "it counts for no tenant; there are: blue, red"
