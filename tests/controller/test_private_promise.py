"""The promise to a tenant, through a controller: what it runs starts as on a cluster of its own.

It owns two nodes and four loose GPUs. Others fill theirs, and everybody borrows all that is idle.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from virtual import Site
from workbench import owners

from dovetail.controller.parts import Parts
from dovetail.model.event import Event, Finished, Started
from dovetail.model.job import JobSpec
from dovetail.model.plan import Plan, Stop
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.traces.table import instances

SHAPE = "2x4+4x1"
CELLS = owners("cells", lab="nodes = 2\ngpus = 4", others="nodes = 1\ngpus = [2, 1]")
WISHES = (gang(1), gang(1), gang(2), gang(4), gang(8), instances(4, 1), instances(2, 4))
Times = dict[str, list[float]]


def jobs_of(tenant: str, seed: int, count: int, borrows: bool = False) -> list[JobSpec]:
    draw, at, jobs = Random(seed), 0.0, []
    for number in range(count):
        at += draw.choice((0.0, 1.0, draw.uniform(0, 12)))
        request = draw.choice(WISHES)
        jobs.append(
            JobSpec(
                number,
                f"{tenant}{number}{'b' if borrows else ''}",
                at,
                request,
                tenant=tenant,
                estimate=draw.uniform(1, 40),
                priority=-1.0 if borrows else float(draw.randrange(2)),
                resumable=borrows or draw.random() < 0.5,
            )
        )
    return jobs


def lived(folder: Path, cluster: str, parts: Parts, specs: list[JobSpec]) -> tuple[Times, int]:
    """When each job started and ended, by name; and how many were stopped."""
    ranked = sorted(specs, key=lambda each: each.submit)
    jobs = [
        TraceJob(each._replace(id=number), each.estimate or 0.0)
        for number, each in enumerate(ranked, 1)
    ]
    folder.mkdir()
    site = Site(folder, cluster, parts, latency=0.0)
    controller, times, stops = site.open(), {each.name: list[float]() for each in specs}, 0

    def watch(now: float, events: list[Event], plan: Plan) -> None:
        nonlocal stops
        stops += sum(isinstance(each, Stop) for each in plan.actions)
        for event in events:
            if isinstance(event, Started | Finished):
                times[jobs[event.job - 1].spec.name].append(round(now, 6))

    controller.watch = watch
    site.drive(controller, jobs)
    assert not controller.scheduler.jobs, "somebody was lost"
    site.close()
    return times, stops


@pytest.mark.parametrize("policy", ["fifo", "fifo:skip=true", "sjf:backfill=easy", "srtf"])
def test_a_tenant_runs_what_it_could_run_on_its_own_cluster(tmp_path: Path, policy: str) -> None:
    mine = jobs_of("lab", 3, 25)
    noise = [*jobs_of("others", 4, 15), *jobs_of("others", 5, 20, True)]
    noise += jobs_of("lab", 6, 10, True)
    alone, _ = lived(tmp_path / "alone", SHAPE, Parts(policy), mine)
    shared = Parts(policy, tenancy=CELLS.written())
    among, stops = lived(tmp_path / "among", "5x4", shared, mine + noise)
    assert {name: among[name] for name in alone} == alone
    assert stops > 3, "nobody had to give anything back: the test shows nothing"
    assert all(times for times in alone.values())
