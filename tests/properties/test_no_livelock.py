"""Decisions come to rest: with free restarts and stops that take no time, every instant ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workbench import World, owners, scheduler, spec
from workloads import VARIANTS, effort

from dovetail.model.job import JobSpec
from dovetail.orderings import BUILTIN as ORDERINGS
from dovetail.tenancy.kinds import Tenants

TENANTS: dict[str, Tenants | None] = {
    "none": None,
    "shares": owners("shares", red="gpus = 4", blue="gpus = 4"),
    "cells": owners("cells", red="nodes = 1", blue="gpus = [2, 1]"),
}


@st.composite
def tenths(draw: st.DrawFn) -> list[JobSpec]:
    """Jobs in tenths of seconds: sums of those are rounded, so equals differ by a last digit."""
    row = st.tuples(
        *(st.integers(0, 6), st.sampled_from([1, 1, 2, 4]), st.integers(1, 6)),
        *(st.sampled_from([-1.0, 0.0, 0.0, 1.0]), st.sampled_from(["red", "blue"])),
    )
    rows = draw(st.lists(row, min_size=2, max_size=9))
    return [
        spec(number, gpus, at * 0.1, length=length * 0.1, priority=priority, tenant=tenant)
        for number, (at, gpus, length, priority, tenant) in enumerate(sorted(rows))
    ]


def assert_comes_to_rest(
    policy: str, placement: str, tenants: Tenants | None, jobs: list[JobSpec]
) -> None:
    world = World(scheduler("2x4", policy, placement, tenants=tenants, acknowledged=True), jobs)
    # Each job comes, starts, and is stopped by each of the others at most once at a time.
    assert steps_of_longest_instant(world) <= 3 * len(jobs) ** 2
    assert sorted(world.ended) == [job.id for job in jobs]


def steps_of_longest_instant(world: World) -> int:
    longest, now, steps = 0, -1.0, 0
    for instant in world.instants(most=2000):
        steps = steps + 1 if instant.now == now else 1
        longest, now = max(longest, steps), instant.now
    return longest


@pytest.mark.parametrize("tenants", TENANTS)
@pytest.mark.parametrize("policy", ORDERINGS)
@effort(6)
@given(jobs=tenths(), placement=st.sampled_from(["best-fit", "consolidated"]))
def test_what_happens_at_one_instant_ends(
    policy: str, tenants: str, jobs: list[JobSpec], placement: str
) -> None:
    assert_comes_to_rest(policy, placement, TENANTS[tenants], jobs)


@pytest.mark.parametrize("tenants", TENANTS)
@effort(20)
@given(jobs=tenths(), policy=st.sampled_from(VARIANTS))
def test_so_it_does_whatever_the_parameters(tenants: str, jobs: list[JobSpec], policy: str) -> None:
    assert_comes_to_rest(policy, "best-fit", TENANTS[tenants], jobs)


@pytest.mark.parametrize("policy", ["srtf", "srsf"])
@pytest.mark.parametrize(
    ("first", "later"), [((3, 0), (1, 2)), ((6, 0), (4, 2)), ((11, 0), (2, 9))]
)
def test_a_running_job_keeps_its_place_against_its_equal(
    policy: str, first: tuple[int, int], later: tuple[int, int]
) -> None:
    """The second comes when the first has as long to go, but for a last digit."""
    jobs = [
        spec(number, 1, at * 0.1, length=length * 0.1)
        for number, (length, at) in enumerate((first, later))
    ]
    made = scheduler("1x1", policy, acknowledged=True)
    stops = [instant.stopped for instant in World(made, jobs).instants(most=20)]
    assert sum(map(len, stops)) == 0
