"""Numbers of GPUs and jobs that cannot resume: these never borrow, and none waits for nothing."""

from __future__ import annotations

import json

import pytest
from workbench import World, owners, scheduler, spec

from dovetail.core.scheduler import Scheduler
from dovetail.model.event import Submitted, Wake
from dovetail.model.plan import Reject
from dovetail.model.request import Alternative, Group, Replica, Request

NESTED = {"lab": "gpus = 3", "lab/a": "gpus = 4", "b": "gpus = 4"}
TWO_TO_FOUR = Request((Alternative((Group(4, Replica(), 2),)),))


def box(**owned: str) -> Scheduler:
    return scheduler("2x4", "fifo", tenants=owners("shares", **(owned or NESTED)))


def fixed(number: int, gpus: int = 1, **more: object) -> Submitted:
    return Submitted(spec(number, gpus, resumable=False, **more))


def test_who_may_not_borrow_and_asks_for_more_than_its_tenant_owns_is_refused() -> None:
    made = box()
    plan = made.step(0.0, [fixed(0, 4, tenant="lab/a"), fixed(1, 3, tenant="lab/a")])
    said = "it asks for 4 GPUs and cannot resume, so it may not borrow; lab/a owns 3"
    assert plan.actions[0] == Reject(0, said), "its group owns 3"
    assert made.jobs[1].allocation is not None, "nobody waits behind what can never run"


def test_after_a_change_it_waits_for_tenants_who_own_enough() -> None:
    before = box()
    before.step(0.0, [fixed(0, 4, tenant="b", length=9.0), fixed(1, 4, tenant="b")])
    made = box(b="gpus = 3")
    made.take_over(before)
    assert made.tenancy.domains[made.jobs[0].home] == "b", "who runs goes on, and it is b's"
    assert made.explain(1).text.endswith("so it may not borrow; b owns 3")
    made.validate()
    again = box()
    again.take_over(made)
    again.step(1.0, [Wake()])
    assert not again.jobs[1].stray


@pytest.mark.parametrize("policy", ["fifo", "srtf", "fifo:backfill=easy", "fifo:displace=lower"])
def test_who_can_do_with_less_is_as_wide_as_its_tenants_number(policy: str) -> None:
    tenants = owners("shares", a="gpus = 3", b="gpus = 4")
    jobs = [
        spec(0, request=TWO_TO_FOUR, tenant="a", resumable=False, length=5.0),
        spec(1, 1, 1.0, tenant="a", length=2.0, resumable=True),
    ]
    made = scheduler("2x4", policy, tenants=tenants)
    fork = scheduler("2x4", policy, tenants=tenants)
    instants = World(made, jobs).instants(most=20)
    next(instants)
    held = made.jobs[0].allocation
    assert held is not None and held.gpus == 3
    fork.restore(json.loads(json.dumps(made.snapshot())))
    for now, batch, plan in instants:
        assert fork.step(now, batch) == plan
    assert not made.jobs, "both of them ran"
