"""Looking ahead among tenants: forks decide as the real one does, and may forget a job."""

from __future__ import annotations

import gc
from typing import Any
from weakref import ref

import pytest
from workbench import World, owners, scheduler, spec

from dovetail.answers.foresight import Foresight, Present, fork
from dovetail.core.scheduler import Scheduler
from dovetail.model.job import JobSpec

TENANTS = {
    "cells": owners("cells", red="nodes = 1", blue="gpus = [2, 1]"),
    "shares": owners("shares", red="gpus = 4", blue="gpus = 4"),
}
AT = 12


def jobs() -> list[JobSpec]:
    return [
        spec(
            number,
            (1, 2, 4)[number % 3] if number % 2 else 1,
            number,
            length=5.0 + number % 7,
            tenant=("red", "blue")[number // 2 % 2] if number % 3 < 2 else "red",
            priority=-1.0 if number % 4 == 0 else 0.0,
            resumable=True,
        )
        for number in range(24)
    ]


def half_way(make: Any) -> tuple[World, Scheduler]:
    world = World(make(), jobs())
    for number, _ in enumerate(world.instants()):
        if number == AT:
            break
    return world, world.scheduler


@pytest.mark.parametrize("kind", TENANTS)
def test_the_future_of_a_fork_is_what_comes(kind: str) -> None:
    def make() -> Scheduler:
        return scheduler("2x4", "fifo:skip=true", tenants=TENANTS[kind])

    world, original = half_way(make)
    world._arrivals.clear()
    known = set(original.jobs)
    ahead = Foresight(fork(make, original.image()), original.now, lambda job: job.expected)
    while ahead.advance():
        ahead.scheduler.validate()
    ends = {}
    for instant in world.instants():
        ends |= {job.id: instant.now for job, _ in original.ended}
    assert known <= ends.keys()
    assert {job: ahead.ended[job] for job in known} == pytest.approx({j: ends[j] for j in known})


@pytest.mark.parametrize("kind", TENANTS)
def test_a_fork_may_forget_any_job(kind: str) -> None:
    def make() -> Scheduler:
        return scheduler("2x4", "fifo:skip=true", tenants=TENANTS[kind])

    _, original = half_way(make)
    image = original.image()
    assert original.running > 2
    for number in original.jobs:
        others = [job for job in image["jobs"] if job.id != number]
        forked = fork(make, {**image, "jobs": others})
        forked.validate()
        ahead = Foresight(forked, original.now, lambda job: job.expected)
        while ahead.advance():
            forked.validate()
        assert not forked.running


@pytest.mark.parametrize("kind", TENANTS)
def test_an_image_can_be_restored_from_again_and_again(kind: str) -> None:
    def make() -> Scheduler:
        return scheduler("2x4", "fifo:skip=true", tenants=TENANTS[kind])

    _, original = half_way(make)
    image = original.image()
    states = [fork(make, image).snapshot() for _ in range(2)]
    assert states[0] == states[1] == original.snapshot()


@pytest.mark.parametrize("kind", TENANTS)
def test_nothing_of_a_used_fork_must_be_searched_for(kind: str) -> None:
    """Collecting very much garbage keeps whoever decides waiting as well."""

    def make() -> Scheduler:
        return scheduler("2x4", "fifo:skip=true", tenants=TENANTS[kind])

    _, original = half_way(make)
    present = Present(original.image(), make)

    def left() -> int:
        gc.collect()
        with present.forked() as forked:
            forked.step(original.now + 1.0, [])
        del forked
        return gc.collect()

    gc.disable()
    try:
        # What tests before this one left may be found a second time; a fork's own, every time.
        assert 0 in (left() for _ in range(10))
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", TENANTS)
def test_most_of_a_used_fork_is_gone_before_garbage_is_searched_for(kind: str) -> None:
    """Looking through one that is still there keeps whoever decides waiting, too."""

    def make() -> Scheduler:
        return scheduler("2x4", "fifo:skip=true", tenants=TENANTS[kind])

    _, original = half_way(make)
    with Present(original.image(), make).forked() as forked:
        tenancy = ref(forked.tenancy)
        assert tenancy() is not None and not gc.isenabled()
    assert tenancy() is None and gc.isenabled()
    assert forked.jobs.keys() == original.jobs.keys()
