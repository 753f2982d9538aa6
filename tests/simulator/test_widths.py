"""Jobs that can be narrower: with fewer GPUs they run slower, in the world and as believed."""

from __future__ import annotations

import pytest
from workbench import scheduler

from dovetail.core.scheduler import Scheduler
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.costs import FREE
from dovetail.model.event import Submitted
from dovetail.model.job import JobSpec
from dovetail.model.request import Alternative, Group, Replica, Request, gang
from dovetail.model.trace import TraceJob
from dovetail.simulator.loop import Simulation
from dovetail.simulator.spec import parse_cluster
from dovetail.simulator.world import World
from dovetail.speed.locality import Locality

ELASTIC = Request((Alternative((Group(4, Replica(), 1),)),))
EITHER = Request((Alternative((Group(4, Replica(), 2),)), Alternative((Group(1, Replica(), 1),))))


def job(number: int, request: Request, length: float) -> TraceJob:
    spec = JobSpec(number, f"j{number}", 0.0, request, estimate=length)
    return TraceJob(spec, length)


def ends(jobs: list[TraceJob], speed: Locality) -> list[float]:
    """When each job ends on one node of four GPUs, first come first served."""
    decider: Scheduler = scheduler("1x4", "fifo:skip=true")
    decider.speed = speed
    world = World(decider.cluster, speed, FREE)
    simulation = Simulation(decider, world, iter(jobs))
    simulation.run()
    found = dict(zip(simulation.records.id, simulation.records.end, strict=True))
    return [found[number] for number in sorted(found)]


@pytest.mark.parametrize(("held", "end"), [(1, 40.0), (2, 60.0), (3, 120.0)])
def test_a_narrow_job_takes_as_much_longer_as_it_has_fewer_gpus(held: int, end: float) -> None:
    jobs = [job(0, gang(held), 500.0), job(1, ELASTIC, 30.0)]
    assert ends(jobs, Locality()) == [500.0, end]


def test_at_full_width_nothing_changes() -> None:
    assert ends([job(0, ELASTIC, 30.0), job(1, gang(4), 10.0)], Locality()) == [30.0, 40.0]


def test_scaling_says_how_much_a_narrow_job_makes_of_each_gpu() -> None:
    jobs = [job(0, gang(3), 500.0), job(1, ELASTIC, 30.0)]
    assert ends(jobs, Locality(scaling=0.5)) == [500.0, 60.0]
    assert ends(jobs, Locality(scaling=0.0)) == [500.0, 30.0]


def test_the_core_believes_the_same() -> None:
    decider = scheduler("1x4", "fifo:skip=true")
    decider.step(0.0, [Submitted(job(0, gang(3), 500.0).spec)])
    decider.step(0.0, [Submitted(job(1, ELASTIC, 30.0).spec)])
    assert decider.jobs[1].rate == 0.25
    assert decider.jobs[1].time_left(10.0) == 110.0


@pytest.mark.parametrize(("gpus", "rate"), [(4, 1.0), (3, 0.75), (2, 0.5), (1, 1.0)])
def test_another_alternative_is_no_narrower_one(gpus: int, rate: float) -> None:
    spec = job(0, EITHER, 30.0).spec
    held = allocation_of((Part(0, (1 << gpus) - 1),))
    assert Locality().rate(spec, held, parse_cluster("1x4")) == rate
