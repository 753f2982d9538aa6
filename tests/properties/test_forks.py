"""A snapshot taken at any instant, under any policy and any trouble, continues identically."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import World, scheduler
from workloads import VARIANTS, any_jobs, effort, troubles

from dovetail.core.scheduler import Scheduler
from dovetail.model.costs import Costs
from dovetail.model.job import JobSpec
from dovetail.orderings import BUILTIN as ORDERINGS

LOSSY = Costs(restart=1.0, checkpoint_every=2.0)


@pytest.mark.parametrize("policy", [*ORDERINGS, *VARIANTS])
@effort(10)
@given(
    jobs=any_jobs(flexible=True),
    happenings=st.one_of(st.just([]), troubles()),
    at=st.integers(0, 25),
    placement=st.sampled_from(["best-fit", "consolidated"]),
    slow=st.booleans(),
    walls=st.booleans(),
)
def test_a_fork_at_any_instant_continues_identically(
    policy: str,
    jobs: list[JobSpec],
    happenings: list[tuple[float, Any]],
    at: int,
    placement: str,
    slow: bool,
    walls: bool,
) -> None:
    def make() -> Scheduler:
        walled = {"red": 2, "blue": 1} if walls else None
        given_ = {"costs": LOSSY, "partitions": walled, "acknowledged": slow}
        return scheduler("3x4,cpus=8,mem=8", policy, placement, **given_)

    willing = [job._replace(retries=9) for job in jobs]
    original, fork = make(), None
    delay = 2.0 if slow else 0.0
    world = World(original, willing, happenings, start_delay=delay, stop_delay=delay)
    for number, (now, batch, plan) in enumerate(world.instants(most=400)):
        if fork is not None:
            assert fork.step(now, batch) == plan
        if number == at:
            fork = make()
            fork.restore(json.loads(json.dumps(original.snapshot())))
            fork.validate()
    if fork is not None:
        fork.validate()
        assert fork.jobs.keys() == original.jobs.keys()
        assert fork.served == original.served
