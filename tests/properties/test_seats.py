"""Seats are kept: with any tenancy, snapshots and recorded plans lead to the same plans."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import World, owners, scheduler
from workloads import any_jobs, effort, troubles

from dovetail.core.scheduler import Scheduler
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.costs import Costs
from dovetail.model.event import Freed, Held
from dovetail.model.job import JobSpec
from dovetail.tenancy.kinds import Tenants

LOSSY = Costs(restart=1.0, checkpoint_every=2.0)
CLUSTER = "3x4,cpus=8,mem=8"
TENANCIES = {
    "cells": owners("cells", red="nodes = 1\ngpus = [2, 1]", blue="gpus = [2, 1, 1]"),
    "all owned": owners("cells", red="nodes = 2", blue="nodes = 1"),
    "shares": owners("shares", red="gpus = 7", blue="gpus = 4"),
}
STRICT = ("fifo", "fifo:skip=true", "fifo:backfill=easy")
POLICIES = {
    "cells": (*STRICT, "srtf", "las:round=7", "shared"),
    "all owned": (*STRICT, "srtf", "las:round=7", "shared"),
    # Numbers and orders that displace can chase each other for ever.
    "shares": STRICT,
}


@st.composite
def tenants_jobs(draw: st.DrawFn) -> list[JobSpec]:
    """All kinds of jobs, a third of them on what is lent."""
    jobs = draw(any_jobs(most=12))
    chance = Random(draw(st.integers(0, 99)))
    return [
        job._replace(priority=-1.0, retries=9) if chance.random() < 0.3 else job._replace(retries=9)
        for job in jobs
    ]


@st.composite
def foreigners(draw: st.DrawFn) -> list[tuple[float, Any]]:
    """Others who use devices or memory for a while, whoever is there."""
    told: list[tuple[float, Any]] = []
    for owner in ("slurm", "cron")[: draw(st.integers(0, 2))]:
        node, devices = draw(st.integers(0, 2)), draw(st.sampled_from([0, 0, 0b1, 0b1100]))
        memory = draw(st.sampled_from([0, 2048, 6144]))
        at = draw(st.integers(0, 8))
        told.append((float(at), Held(owner, allocation_of((Part(node, devices, 0, memory),)))))
        told.append((float(at + draw(st.integers(1, 9))), Freed(owner)))
    return told


HAPPENINGS = st.tuples(st.one_of(st.just([]), troubles()), foreigners()).map(
    lambda both: sorted(both[0] + both[1], key=lambda each: each[0])
)


def make(tenants: Tenants, policy: str, slow: bool) -> Scheduler:
    return scheduler(CLUSTER, policy, costs=LOSSY, tenants=tenants, acknowledged=slow)


def plain(state: Any) -> Any:
    return json.loads(json.dumps(state))


@pytest.mark.parametrize(
    ("tenancy", "policy"), [(name, each) for name in POLICIES for each in POLICIES[name]]
)
@effort(15)
@given(jobs=tenants_jobs(), happenings=HAPPENINGS, at=st.integers(0, 25), slow=st.booleans())
def test_forks_and_heirs_decide_like_the_original(
    tenancy: str, policy: str, jobs: list[JobSpec], happenings: Any, at: int, slow: bool
) -> None:
    original, heir, fork = (make(TENANCIES[tenancy], policy, slow) for _ in range(3))
    delay = 2.0 if slow else 0.0
    world = World(original, jobs, happenings, start_delay=delay, stop_delay=delay)
    forked = False
    for number, (now, batch, plan) in enumerate(world.instants(most=400)):
        original.validate()
        if number <= at:
            # One that only follows, as after a crash, and then goes on by itself.
            heir.apply(now, batch, plan)
        else:
            assert heir.step(now, batch) == plan
        if forked:
            assert fork.step(now, batch) == plan
        if number == at:
            heir.validate()
            assert plain(heir.tenancy.snapshot()) == plain(original.tenancy.snapshot())
            fork.restore(plain(original.snapshot()))
            fork.validate()
            forked = True
    if forked:
        assert fork.jobs.keys() == original.jobs.keys() == heir.jobs.keys()
        assert fork.served == original.served
