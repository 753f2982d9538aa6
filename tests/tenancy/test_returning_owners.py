"""Owners come back where stops take time: their starts are reserved until others have let go."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from workbench import World, owners, scheduler, spec

from dovetail.core.books import RECLAIMED
from dovetail.core.scheduler import Scheduler
from dovetail.model.costs import Costs
from dovetail.model.event import (
    Cancelled,
    Event,
    Failed,
    Finished,
    NodeDown,
    NodeUp,
    Progressed,
    Started,
    Stopped,
    Submitted,
)
from dovetail.model.plan import Plan, Start, Stop

CELLS = owners("cells", red="nodes = 1", blue="nodes = 1")
COSTS = Costs(restart=1.0)


def lent_out() -> Scheduler:
    """Job 0 is lent all eight GPUs, and has done some work, when job 1 of red wants its node."""
    made = scheduler("2x4", "fifo:skip=true", costs=COSTS, tenants=CELLS, acknowledged=True)
    lent = spec(0, 8, length=100.0, priority=-1.0, tenant="blue", resumable=True, retries=3)
    plan = made.step(0.0, [Submitted(lent)])
    made.step(1.0, [Started(0, plan.actions[0].allocation)])
    made.step(9.0, [Progressed(0, 8.0, 1.0)])
    return made


def wants_back(made: Scheduler) -> Plan:
    mine = spec(1, 4, 10.0, length=10.0, tenant="red")
    plan = made.step(10.0, [Submitted(mine)])
    stop, start = plan.actions
    assert stop == Stop(0, RECLAIMED)
    assert isinstance(start, Start)
    assert (start.job, start.awaits) == (1, (0,))
    assert made.explain(1).cause == "lent"
    made.validate()
    return plan


def started(plan: Plan) -> list[int]:
    return [each.job for each in plan.actions if isinstance(each, Start) and not each.awaits]


@pytest.mark.parametrize(
    ("news", "kept"),
    [(Stopped(0), 9.0), (Failed(0, "it crashed", kept=6.0), 6.0)],
    ids=["stops", "crashes"],
)
def test_an_owner_starts_when_who_was_lent_it_has_let_go(news: Event, kept: float) -> None:
    made = lent_out()
    wants_back(made)
    assert not made.step(11.0, []).actions
    plan = made.step(12.0, [news])
    assert started(plan) == [1]
    assert not plan.actions[0].awaits
    made.validate()
    # It waits again with what it has done; eight GPUs are more than is idle now.
    assert made.jobs[0].status == "waiting"
    assert made.jobs[0].attained == kept
    made.step(13.0, [Started(1, plan.actions[0].allocation)])
    assert started(made.step(23.0, [Finished(1)])) == [0]


def test_who_was_lent_it_may_be_done_before_it_is_stopped() -> None:
    made = lent_out()
    wants_back(made)
    plan = made.step(11.0, [Finished(0)])
    assert started(plan) == [1]
    assert 0 not in made.jobs
    made.validate()


def test_a_node_that_fails_meanwhile_takes_nobody_with_it() -> None:
    made = lent_out()
    plan = wants_back(made)
    node = plan.actions[1].allocation.parts[0].node
    plan = made.step(11.0, [NodeDown(node)])
    made.validate()
    # Both held something there: job 1 has the other node, which job 0 has left too.
    assert started(plan) == [1]
    assert plan.actions[0].allocation.parts[0].node != node
    assert {job.id: str(job.status) for job in made.jobs.values()} == {0: "waiting", 1: "starting"}
    made.step(12.0, [Started(1, plan.actions[0].allocation)])
    made.step(22.0, [Finished(1), NodeUp(node)])
    assert made.jobs[0].allocation is not None


def test_an_owner_that_gives_up_leaves_the_devices_to_who_waits() -> None:
    made = lent_out()
    wants_back(made)
    made.step(11.0, [Cancelled(1)])
    assert not made.reserved
    plan = made.step(12.0, [Stopped(0)])
    assert started(plan) == [0]
    made.validate()


def test_a_snapshot_knows_what_is_reserved() -> None:
    made = lent_out()
    wants_back(made)
    fork = scheduler("2x4", "fifo:skip=true", costs=COSTS, tenants=CELLS, acknowledged=True)
    fork.restore(made.snapshot())
    assert fork.step(12.0, [Stopped(0)]) == made.step(12.0, [Stopped(0)])
    fork.validate()


TROUBLE: dict[str, Callable[[], list[Any]]] = {
    "no trouble": list,
    "a node fails": lambda: [(30.0, NodeDown(0)), (60.0, NodeUp(0))],
}


@pytest.mark.parametrize("trouble", TROUBLE)
@pytest.mark.parametrize("policy", ["fifo:skip=true", "srtf", "shared"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_who_lives_on_what_is_lent_is_put_off_and_never_lost(
    seed: int, policy: str, trouble: str
) -> None:
    draw, jobs = Random(seed), []
    for number in range(60):
        lent = draw.random() < 0.5
        jobs.append(
            spec(
                number,
                draw.choice((1, 2, 4)),
                draw.randrange(80),
                length=draw.randrange(1, 30),
                priority=-1.0 if lent else 0.0,
                tenant=draw.choice(("red", "blue")),
                resumable=True,
                retries=9,
            )
        )
    made = scheduler("2x4", policy, tenants=CELLS, acknowledged=True)
    world = World(made, jobs, TROUBLE[trouble](), start_delay=1.0, stop_delay=3.0)
    stops = 0
    for instant in world.instants():
        made.validate()
        stops += sum(isinstance(each, Stop) for each in instant.plan.actions)
    assert world.ended == dict.fromkeys(range(60), "done")
    assert stops > 5, "nobody had to go: the test shows nothing"
    if trouble == "no trouble":
        # Progress was kept: everybody ran exactly as long as there was to do.
        lengths = {job.id: job.estimate for job in jobs}
        assert {job: round(ran, 6) for job, ran in world.ran.items()} == lengths
