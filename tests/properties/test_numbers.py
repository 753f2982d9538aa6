"""Quotas by number keep their word: whoever is within its number can have what others borrow."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import World, owners, scheduler
from workloads import effort

from dovetail.core.protocols import Bound
from dovetail.core.scheduler import Scheduler
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.job import Job, JobSpec
from dovetail.model.request import gang
from dovetail.simulator.spec import parse_cluster
from dovetail.tenancy.shares import Shares

TENANTS = {
    "flat": owners("shares", a="gpus = 4", b="gpus = 3", c="gpus = 1"),
    "nested": owners(
        "shares", **{"a": "gpus = 5", "a/x": "gpus = 4", "a/y": "gpus = 3", "b": "gpus = 3"}
    ),
}
POLICIES = ("fifo:skip=true", "sjf:skip=true", "smallest-first:skip=true", "srtf", "las")


@st.composite
def workloads(draw: st.DrawFn, names: tuple[str, ...]) -> list[JobSpec]:
    """Jobs of all tenants; all can be stopped and come back."""
    chance = Random(draw(st.integers(0, 9999)))
    return [
        JobSpec(
            number,
            f"j{number}",
            float(chance.randrange(30)),
            gang(chance.choice([1, 1, 2, 3, 4])),
            tenant=chance.choice(names),
            estimate=float(chance.randrange(1, 25)),
        )
        for number in range(draw(st.integers(3, 18)))
    ]


def waiting(world: Scheduler) -> list[Job]:
    return [job for job in world.jobs.values() if job.allocation is None]


def check(world: Scheduler) -> None:
    """Numbers alone decide here, so what could be reclaimed is a sum."""
    shares = world.tenancy
    assert isinstance(shares, Shares)
    world.validate()
    for job in waiting(world):
        home, wanted = job.home, job.spec.request.milli_gpus
        within = wanted <= shares.due(home)
        at_hand = 1000 * shares._all.idle + sum(
            held.allocation.milli_gpus
            for held in shares._held.values()
            if held.borrowed and held.domain != home
        )
        assert not (within and wanted <= at_hand), f"{job.spec.name} waits for what others borrow"
        assert wanted > 1000 * shares._all.idle, f"{job.spec.name} waits while there is enough"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", TENANTS)
@effort(25)
@given(data=st.data())
def test_nobody_borrows_what_somebody_within_its_number_waits_for(
    kind: str, policy: str, data: st.DataObject
) -> None:
    tenants = TENANTS[kind]
    jobs = data.draw(workloads(tuple(contract.name for contract in tenants.contracts)))
    made = scheduler("2x4", policy, placement="count", tenants=tenants)
    for _ in World(made, jobs, []).instants(most=600):
        check(made)
    assert not waiting(made), "all of them ran"


def use(shares: Shares, domain: int, begin: float, end: float) -> None:
    """A tenant has one GPU for some time."""
    everybody = list(range(len(shares.domains)))
    shares.turns(everybody, begin)
    spec = JobSpec(0, "j", begin, gang(1), tenant=shares.domains[domain])
    allocation = allocation_of((Part(0, 1, 0, 0),))
    assert isinstance(shares.bind(domain, allocation, spec), Bound)
    shares.turns(everybody, end)
    shares.release(domain, allocation, 0)


def test_what_was_used_long_ago_counts_little() -> None:
    day, shares = 86400.0, Shares(parse_cluster("1x4"), {"b": 2, "a": 2})
    use(shares, 1, 0, 10 * day)
    use(shares, 0, 69 * day, 70 * day)
    assert shares.turns([0, 1], 70 * day) == [1, 0], "a used more, and long ago"


def test_groups_are_asked_before_their_members() -> None:
    shares = Shares(parse_cluster("1x4"), {"c": 2, "g": 2, "g/x": 1, "g/y": 1})
    use(shares, 2, 0, 100)
    use(shares, 0, 100, 160)
    assert shares.turns([0, 3], 160) == [0, 3], "g/y used nothing, but its group did"
