"""Another tenancy takes over in mid-run: who runs goes on, and nobody is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_seats import HAPPENINGS, LOSSY, plain, tenants_jobs
from workbench import World, owners, scheduler
from workloads import effort

from dovetail.core.scheduler import Scheduler
from dovetail.model.event import Wake
from dovetail.model.job import JobSpec
from dovetail.tenancy.kinds import Tenants

CLUSTER = "3x4,cpus=8,mem=8"
TENANCIES: dict[str, Tenants | None] = {
    "whole": None,
    "cells": owners("cells", red="nodes = 1\ngpus = [2, 1]", blue="gpus = [2, 1, 1]"),
    "other cells": owners("cells", red="gpus = [1, 1, 2]", blue="nodes = 2"),
    "without red": owners("cells", blue="nodes = 1", green="nodes = 1"),
    "shares": owners("shares", red="gpus = 7", blue="gpus = 4"),
    "shares without red": owners("shares", green="gpus = 3", blue="gpus = 4"),
}
CHANGES = [
    (one, other) for one in TENANCIES for other in TENANCIES if "without" not in one != other
]


def make(name: str, slow: bool) -> Scheduler:
    tenants = TENANCIES[name]
    policy = "fifo:skip=true" if "shares" in name else "srtf"
    return scheduler(CLUSTER, policy, costs=LOSSY, tenants=tenants, acknowledged=slow)


def change(world: World, heir: Scheduler) -> None:
    """Let another scheduler take over where this one is."""
    before = world.scheduler
    held = {job.id: job.allocation for job in before.jobs.values()}
    heir.take_over(before)
    heir.validate()
    assert {job.id: job.allocation for job in heir.jobs.values()} == held
    assert heir.releasing == before.releasing
    assert heir.reserved == before.reserved
    assert heir.holdings == before.holdings
    world.scheduler = heir
    world._happenings.insert(0, (world.now, Wake()))


@pytest.mark.parametrize(("one", "other"), CHANGES)
@effort(10)
@given(jobs=tenants_jobs(), happenings=HAPPENINGS, at=st.integers(0, 25), slow=st.booleans())
def test_who_runs_goes_on_and_everybody_ends(
    one: str, other: str, jobs: list[JobSpec], happenings: Any, at: int, slow: bool
) -> None:
    delay = 2.0 if slow else 0.0
    world = World(make(one, slow), jobs, happenings, start_delay=delay, stop_delay=delay)
    fork: Scheduler | None = None
    for number, (now, batch, plan) in enumerate(world.instants(most=500)):
        if fork is not None:
            assert fork.step(now, batch) == plan
        if number == at:
            change(world, make(other, slow))
            fork = make(other, slow)
            fork.restore(plain(world.scheduler.snapshot()))
        elif number == at + 9:
            # And back again: who had no tenant has one.
            change(world, make(one, slow))
            fork = None
        world.scheduler.validate()
    assert len(world.ended) + len(world.scheduler.jobs) == len(jobs)
    if world.scheduler.jobs and number > at + 9:
        waiting = {world.scheduler.explain(job).cause for job in world.scheduler.jobs}
        assert "tenant" not in waiting
