"""Engines that take their time, as Slurm does: what the simulator tells of them, and when not.

The controller runs on virtual time over an engine whose starts and stops take seconds. Jobs are
those of the comparison with Slurm's backfill (`tests/real/test_slurm_figures.py`).
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

import pytest
from virtual import Site

from dovetail.controller.parts import Parts
from dovetail.executors.fake import Machine
from dovetail.metrics.columns import columns
from dovetail.model.costs import Costs
from dovetail.model.event import Event, Started, Submitted
from dovetail.model.job import JobSpec
from dovetail.model.plan import Plan, Start
from dovetail.model.request import gang
from dovetail.model.trace import Trace, TraceJob
from dovetail.simulator.experiment import Replay, replay
from dovetail.speed.locality import Locality

CLUSTER = "8x4,cpus=12,mem=128"
SECONDS = 3.0
"""That a start takes here until the job runs, and a stop until its GPUs are free."""

SEEDS = range(6)


def jobs(seed: int) -> list[TraceJob]:
    draw, at, made = Random(seed), 0.0, list[TraceJob]()
    for number in range(1, 81):
        length = max(0.25, min(draw.expovariate(1 / 12), 48.0))
        gpus = draw.choice([1, 1, 1, 1, 2, 2, 2, 3, 4, 4, 5, 6, 8, 12, 16])
        spec = JobSpec(number, f"t{number}", at, gang(gpus), estimate=length, resumable=True)
        made.append(TraceJob(spec, length))
        at += draw.expovariate(1 / 1.8)
    return made


def lived(folder: Path, policy: str, seed: int) -> float:
    """Seconds from submission to end, in the mean."""
    folder.mkdir()
    site = Site(folder, CLUSTER, Parts(policy, costs=Costs(restart=SECONDS)), oracle=False)
    truth = Costs(restart=0.0, stop=SECONDS)
    site.machine = Machine(
        site.machine.cluster, Locality(), truth, site.clock.monotonic, latency=SECONDS
    )
    controller = site.open()
    took: list[float] = []

    def watch(now: float, events: list[Event], plan: Plan) -> None:
        took.extend(now - job.spec.submit for job, _ in controller.scheduler.ended)

    controller.watch = watch  # type: ignore[assignment]
    site.drive(controller, jobs(seed))
    site.close()
    assert len(took) == 80
    return mean(took)


def forecast(policy: str, seed: int, start: float, stop: float) -> float:
    """What the simulator says that is told so."""
    costs: dict[str, Any] = {"restart_cost": start, "profiling_cost": start, "stop_cost": stop}
    settings = Replay("x", CLUSTER, policy, predictor="declared", **costs)
    found = columns(replay(settings, trace=Trace("x", "x", iter(jobs(seed)), 80)).records)
    return float((found.end - found.submit).mean())


@pytest.mark.parametrize("policy", ["sjf:backfill=easy", "las:thresholds=60/240", "srtf"])
def test_a_simulator_that_is_told_what_starts_and_stops_take_is_right(
    policy: str, tmp_path: Path
) -> None:
    real = mean(lived(tmp_path / str(seed), policy, seed) for seed in SEEDS)
    said = mean(forecast(policy, seed, SECONDS, SECONDS) for seed in SEEDS)
    assert said == pytest.approx(real, rel=0.2)


def test_one_that_is_told_half_of_it_is_far_too_hopeful_of_a_policy_that_preempts() -> None:
    """Preemptions that cost more than they gain make more of them worth while."""
    told = mean(forecast("srtf", seed, SECONDS, SECONDS) for seed in SEEDS)
    half = mean(forecast("srtf", seed, SECONDS / 2, SECONDS / 2) for seed in SEEDS)
    assert half < 0.75 * told


def test_what_an_engine_takes_to_start_a_job_is_not_charged_again(tmp_path: Path) -> None:
    parts = Parts("srtf", costs=Costs(first_start=5.0))
    site = Site(tmp_path, "1x4", parts, None, oracle=False)
    scheduler = site.make()
    spec = JobSpec(1, "a", 0.0, gang(4), estimate=100.0)
    (start,) = scheduler.step(0.0, [Submitted(spec)]).actions
    assert isinstance(start, Start)
    scheduler.step(3.0, [Started(1, start.allocation)])
    job = scheduler.jobs[1]
    assert (job.worked(5.0), job.worked(15.0)) == (0.0, 10.0)
    assert job.time_left(3.0) == pytest.approx(102.0)
