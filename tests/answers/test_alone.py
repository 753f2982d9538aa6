"""A tenant by itself: what becomes of its jobs is what becomes of them among all others."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from dovetail.answers.counterfactual import Trials
from dovetail.answers.foresight import LAG, Foresight, Present
from dovetail.answers.when import Effort, when
from dovetail.controller.parts import Parts, composer
from dovetail.controller.present import alone, divided
from dovetail.executors.fake import FakeExecutor, Machine
from dovetail.model.costs import Costs
from dovetail.model.event import Event, Finished, NodeDraining, Started, Stopped, Submitted
from dovetail.model.job import Job, JobSpec, Status
from dovetail.model.request import gang
from dovetail.simulator.spec import parse_cluster
from dovetail.speed.locality import Locality
from dovetail.tenancy.contracts import Contract, Holding
from dovetail.tenancy.kinds import Tenants

POLICIES = ("fifo:skip=true", "fifo", "shared", "srtf", "sjf:skip=true", "fifo:backfill=easy")
OWNERS = (Contract("a", (Holding(nodes=1),)), Contract("b", (Holding(gpus=(2, 2, 1)),)))
SEEDS = range(36)


class Busy:
    """Three machines of two tenants in the middle of their life, with borrowers on what is idle."""

    def __init__(self, seed: int) -> None:
        draw = self.draw = Random(seed)
        tenancy = Tenants("cells", OWNERS).written()
        self.parts = Parts(POLICIES[seed % 6], predictor="declared", tenancy=tenancy)
        cluster = parse_cluster("4x4,cpus=16,mem=64")
        latency = draw.choice([None, 5.0])
        machine = Machine(cluster, Locality(), Costs(), lambda: 0.0, latency)
        self.make = composer(self.parts, FakeExecutor(machine))
        self.scheduler, self.now = self.make(), 0.0
        for number in range(1, 40):
            self.now += draw.choice([0.0, 1.0, 30.0])
            self.scheduler.step(self.now, [Submitted(self.spec(number))])
            if draw.random() < 0.7:
                self.scheduler.step(self.now, self.reports())
        if draw.random() < 0.5:
            self.scheduler.step(self.now, [NodeDraining(draw.randrange(4))])

    def spec(self, number: int) -> JobSpec:
        draw = self.draw
        return JobSpec(
            number,
            f"j{number}",
            self.now,
            gang(draw.choice([1, 1, 2, 4]), draw.choice([None, 1000, 3000])),
            estimate=float(draw.randrange(50, 900)),
            tenant=draw.choice("ab"),
            priority=draw.choice([0.0, 0.0, 0.0, 1.0, -1.0]),
            resumable=True,
        )

    def reports(self) -> list[Event]:
        """What engines did since, and now and then an end."""
        said: list[Event] = []
        for job in self.scheduler.jobs.values():
            if job.status is Status.STARTING and job.allocation and not job.awaits:
                said.append(Started(job.id, job.allocation))
            elif job.status is Status.STOPPING and self.draw.random() < 0.7:
                said.append(Stopped(job.id))
            elif job.status is Status.RUNNING and self.draw.random() < 0.03:
                said.append(Finished(job.id))
        return said

    @property
    def present(self) -> Present:
        return Present(self.scheduler.image(), self.make)

    @property
    def waiting(self) -> list[Job]:
        return [job for job in self.scheduler.jobs.values() if job.status is Status.WAITING]

    def apart(self) -> list[tuple[Job, Present]]:
        """Waiting jobs of tenants that can be looked at alone."""
        found = alone(self.scheduler, self.parts, {job.home for job in self.waiting})
        return [(job, found[job.home]) for job in self.waiting if job.home in found]


def ends(present: Present, now: float) -> dict[int, float]:
    """When the jobs of a present end, as lengths are believed."""
    ahead = Foresight(present.fork(), now, lambda job: job.expected, present.wake_at)
    while ahead.advance():
        ahead.scheduler.validate()
    return ahead.ended


@pytest.mark.parametrize("seed", SEEDS)
def test_its_jobs_end_when_they_do_among_others(seed: int) -> None:
    world = Busy(seed)
    (job, present), *_ = world.apart()
    mine, together = ends(present, world.now), ends(world.present, world.now)
    own = [each.id for each in world.scheduler.jobs.values() if each.home == job.home]
    assert set(own) <= mine.keys()
    # Where somebody has to leave first, engines take a second more each time.
    for number in own:
        off = abs(together[number] - mine[number])
        assert off <= 10 * LAG + 0.01 * (together[number] - world.now), number


@pytest.mark.parametrize("seed", SEEDS)
def test_what_would_help_is_the_same(seed: int) -> None:
    world = Busy(seed)
    job, present = world.draw.choice(world.apart())
    trials = Trials(
        world.present, world.now, lambda job: job.expected, types=("gpu",), packed=True, budget=30.0
    )
    found = replace(trials, lends=True).instead(job.id)
    quickly = replace(trials, lends=True, alone=present).instead(job.id)
    assert [each for each in quickly if not each.starts_in] == [
        each for each in found if not each.starts_in
    ]


def test_jobs_are_divided_by_what_they_depend_on() -> None:
    world = Busy(0)
    asked = [job.id for job in world.waiting]
    controller: Any = SimpleNamespace(
        scheduler=world.scheduler, parts=world.parts, make=world.make, wake_at=None
    )
    parts = divided(controller, asked)
    assert sorted(number for _, listed in parts for number in listed) == sorted(asked)
    assert {len(present.image["planners"]) for present, _ in parts} == {1, 3}
    for present, listed in parts:
        assert all(present.takes(world.scheduler.jobs[number].spec) for number in listed)
        found = when(present.image, present.make, world.now, listed, effort=Effort(2, 2, 0.0))
        assert all(found[number].start.middle is not None for number in listed)


def test_with_less_hardware_than_was_promised_nobody_is_apart() -> None:
    world = Busy(0)
    for node in range(3):
        world.scheduler.step(world.now, [NodeDraining(node)])
    assert not world.apart()


def test_nobody_is_apart_from_those_of_its_own_who_run_on_what_is_lent() -> None:
    world = Busy(0)
    homes = {job.home for job in world.waiting} - {2}
    for job in world.scheduler.jobs.values():
        if job.allocation is not None and job.home == 2:
            job.spec = job.spec._replace(priority=0.0, tenant="a")
    assert alone(world.scheduler, world.parts, homes).keys() == homes - {0}
