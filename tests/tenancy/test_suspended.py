"""Suspended jobs of tenants: what they keep is theirs until somebody is owed it."""

from __future__ import annotations

from typing import Any

import pytest
from scripted import Scripted
from workbench import owners, scheduler, spec

from dovetail.core.scheduler import Scheduler
from dovetail.model.allocation import Allocation, Part, allocation_of
from dovetail.model.event import Cancelled, NodeDown, Started, Stopped, Submitted
from dovetail.model.plan import Action, Plan, Resume, Start, Stop, Suspend
from dovetail.tenancy.kinds import Tenants

CELLS = owners("cells", red="nodes = 1", blue="nodes = 1")
SHARES = owners("shares", red="gpus = 4", blue="gpus = 4")
MEMORY = 1024


def on(devices: int, memory: int = 0) -> Allocation:
    """Something on the only machine of a tenant's view."""
    return allocation_of((Part(0, devices, 0, memory),))


class Play:
    """Two tenants with a machine each, whose planners do as they are told."""

    def __init__(self, tenants: Tenants = CELLS, slow: bool = False) -> None:
        self.tenants = tenants
        self.made = self._make(slow)

    def _make(self, slow: bool) -> Scheduler:
        cluster = "2x4,cpus=8,mem=1"
        return scheduler(cluster, planner=Scripted, tenants=self.tenants, acknowledged=slow)

    def planner(self, tenant: str) -> Any:
        return self.made.planners[self.made.tenancy.domains.index(tenant)]

    def step(self, now: float, *events: Any, **wanted: list[Action]) -> Plan:
        for tenant, actions in wanted.items():
            self.planner(tenant).wanted = actions
            self.made._planner(self.made.tenancy.domains.index(tenant))
        plan = self.made.step(now, list(events))
        self.made.validate()
        return plan


@pytest.fixture(params=["cells", "shares"])
def play(request: pytest.FixtureRequest) -> Play:
    """A job of red's is suspended and keeps a quarter of its machine's memory."""
    made = Play({"cells": CELLS, "shares": SHARES}[request.param])
    job = spec(0, 4, tenant="red", length=100.0, resumable=True)
    made.step(0.0, Submitted(job), red=[Start(0, on(0b1111, MEMORY))])
    made.step(30.0, red=[Suspend(0, on(0, MEMORY // 4))])
    return made


def test_a_suspended_job_keeps_its_residual_and_resumes(play: Play) -> None:
    job = play.made.jobs[0]
    assert (job.status, job.attained) == ("suspended", 30.0)
    assert sum(play.made.cluster.memory) == 2 * MEMORY - MEMORY // 4
    play.step(50.0, red=[Resume(0, on(0b1111, MEMORY))])
    assert (job.status, job.residual) == ("running", None)
    play.step(60.0, Cancelled(0))
    assert play.made.cluster.memory.tolist() == [MEMORY, MEMORY]


def test_a_fork_and_another_tenancy_know_of_it(play: Play) -> None:
    fork = Play(play.tenants)
    fork.made.restore(play.made.snapshot())
    fork.made.validate()
    assert fork.made.snapshot() == play.made.snapshot()
    other = Play(SHARES if play.tenants is CELLS else CELLS)
    other.made.take_over(play.made)
    other.made.validate()
    assert other.made.jobs[0].residual is not None
    other.step(40.0, Cancelled(0))
    assert other.made.cluster.memory.tolist() == [MEMORY, MEMORY]


def test_it_goes_with_its_node(play: Play) -> None:
    job = play.made.jobs[0]
    assert job.residual is not None
    play.step(40.0, NodeDown(job.residual[0].parts[0].node))
    assert (job.status, job.residual) == ("waiting", None)


@pytest.mark.parametrize("slow", [False, True], ids=["at once", "confirmed"])
def test_owners_have_the_memory_that_a_suspended_job_keeps_on_their_machine(slow: bool) -> None:
    """It was suspended on a machine that its tenant's cell is not bound to any more."""
    play = Play(CELLS, slow)
    whole, rest = on(0b1111, MEMORY), on(0b1111, MEMORY * 3 // 4)

    def start(number: int, tenant: str, wanted: Allocation) -> int:
        job = spec(number, 4, number, tenant=tenant, length=100.0, resumable=True)
        play.step(float(number), Submitted(job), **{tenant: [Start(number, wanted)]})
        at = play.made.jobs[number].allocation
        assert at is not None, f"{tenant} owns it"
        if slow and not play.made.jobs[number].awaits:
            play.step(float(number), Started(number, at))
        return at.parts[0].node

    start(0, "blue", whole)
    node = start(1, "red", whole)
    play.step(20.0, Cancelled(0))
    if slow:
        play.step(20.0, Stopped(0))
    play.step(30.0, red=[Suspend(1, on(0, MEMORY // 4))])
    if slow:
        play.step(30.0, Stopped(1))
    assert start(32, "red", rest) != node
    assert start(33, "blue", whole) == node
    # What it kept is gone, what it has done is not.
    job = play.made.jobs[1]
    assert (job.residual, job.attained) == (None, 29.0)
    if slow:
        assert (job.status, play.made.jobs[33].awaits) == ("stopping", {1})
        play.step(34.0, Stopped(1))
        assert not play.made.jobs[33].awaits
    assert job.status == "waiting"


@pytest.fixture(params=[False, True], ids=["at once", "confirmed"])
def owner(request: pytest.FixtureRequest) -> Play:
    """Red has both machines. A job of its own has one of them, the other one is lent."""
    made = Play(owners("cells", red="nodes = 2"), slow=request.param)
    jobs = [spec(n, 4, tenant="red", length=100.0, resumable=True) for n in (0, 1)]
    borrower = spec(2, 4, length=100.0, resumable=True, priority=-1.0)
    events = [Submitted(job) for job in (*jobs, borrower)]
    made.step(0.0, *events, red=[Start(0, on(0b1111, MEMORY))])
    held = made.made.jobs[0].allocation
    assert held is not None
    elsewhere = allocation_of((Part(1 - held.parts[0].node, 0b1111),))
    made.step(1.0, Started(0, held), lent=[Start(2, elsewhere)])
    made.step(2.0, Started(2, elsewhere))
    return made


#: the other machine of its view is bound to the one in fact that nobody was lent
OTHER = Start(1, allocation_of((Part(1, 0b1111, 0, MEMORY),)))


def test_who_gives_up_what_it_kept_for_another_start_of_the_plan_does_not_resume(
    owner: Play,
) -> None:
    owner.step(30.0, red=[Suspend(0, on(0, MEMORY // 4))])
    if owner.made.jobs[0].status == "stopping":
        owner.step(31.0, Stopped(0))
    plan = owner.step(40.0, red=[OTHER, Resume(0, on(0b1111, MEMORY))])
    assert [(type(each), each.job) for each in plan.actions] == [(Stop, 0), (Start, 1)]
    owner.step(41.0, Stopped(0))
    assert owner.made.jobs[0].status == "waiting"


def test_who_gives_up_what_it_was_to_keep_is_only_stopped(owner: Play) -> None:
    plan = owner.step(30.0, red=[Suspend(0, on(0, MEMORY // 4)), OTHER])
    assert [(type(each), each.job) for each in plan.actions] == [(Stop, 0), (Start, 1)]
    owner.step(31.0, Stopped(0))
    assert owner.made.jobs[0].status == "waiting"
