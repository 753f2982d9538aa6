"""A thousand nodes, fifty tenants, all GPUs in use: answers stay quick. CPU time, not wall time."""

from __future__ import annotations

from random import Random
from time import thread_time

import pytest

from dovetail.answers.arrivals import Arrivals
from dovetail.answers.counterfactual import Trials
from dovetail.answers.foresight import Present, fork
from dovetail.answers.when import Effort, when
from dovetail.controller.parts import Parts, composer
from dovetail.controller.present import alone
from dovetail.executors.fake import FakeExecutor, Machine
from dovetail.model.costs import Costs
from dovetail.model.event import Submitted
from dovetail.model.job import Job, JobSpec, Status
from dovetail.model.request import gang
from dovetail.simulator.spec import parse_cluster
from dovetail.speed.locality import Locality
from dovetail.tenancy.contracts import Contract, Holding
from dovetail.tenancy.kinds import Tenants

pytestmark = pytest.mark.real

SIZES = (1, 1, 2, 4, 8, 8, 16)
NOW = 100.0


class Full:
    """Every tenant has more to do than it owns, and some borrow what others leave."""

    def __init__(self) -> None:
        own = (Holding(nodes=18, gpus=(4, 4, 2, 2, 1, 1)),)
        owners = tuple(Contract(f"t{number}", own) for number in range(50))
        cluster = parse_cluster("1000x8,cpus=32,mem=256")
        machine = Machine(cluster, Locality(), Costs(), lambda: 0.0)
        self.parts = Parts(
            "fifo:skip=true", predictor="history", tenancy=Tenants("cells", owners).written()
        )
        self.make = composer(self.parts, FakeExecutor(machine))
        self.scheduler, draw = self.make(), Random(1)
        specs = [self.spec(number, draw) for number in range(4200)]
        self.scheduler.step(0.0, [Submitted(spec) for spec in specs])
        self.arrivals = Arrivals(specs)

    def spec(self, number: int, draw: Random) -> JobSpec:
        return JobSpec(
            number,
            f"j{number}",
            0.0,
            gang(draw.choice(SIZES)),
            tenant=f"t{number % 50}",
            user=f"u{number % 60}",
            priority=-1.0 if draw.random() < 0.2 else 0.0,
            resumable=True,
        )

    def last(self) -> Job:
        """The last of an owner's jobs that wait."""
        jobs = self.scheduler.jobs.values()
        return [j for j in jobs if j.status is Status.WAITING and j.spec.priority >= 0][-1]

    def alone(self) -> Present:
        home = self.last().home
        return alone(self.scheduler, self.parts, [home])[home]


@pytest.fixture(scope="module")
def full() -> Full:
    made = Full()
    assert made.scheduler.cluster.idle == 0
    assert len(made.scheduler.jobs) - made.scheduler.running > 2000
    return made


def test_ten_forks_of_a_tenant_take_less_than_one_of_everybody(full: Full) -> None:
    began = thread_time()
    fork(full.make, full.scheduler.image())
    everybody = thread_time()
    present = full.alone()
    for _ in range(10):
        fork(present.make, present.image)
    assert thread_time() - everybody < everybody - began


def test_ten_futures_take_less_than_a_second(full: Full) -> None:
    number, began = full.last().id, thread_time()
    present = full.alone()
    mine, effort = full.arrivals.of(present.takes), Effort(10, 10)
    found = when(present.image, present.make, NOW, [number], arrivals=mine, effort=effort)
    assert thread_time() - began < 1.0
    assert found[number].start.middle


def test_why_takes_less_than_two_seconds(full: Full) -> None:
    number, began = full.last().id, thread_time()
    trials = Trials(
        Present(full.scheduler.image(), full.make),
        NOW,
        lambda job: job.expected,
        full.alone(),
        ("gpu",),
        packed=True,
        lends=True,
    )
    trials.instead(number)
    assert thread_time() - began < 2.0
