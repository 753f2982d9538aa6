"""The simulator against the page-long world of the workbench: the same schedules, job by job."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from workbench import World, scheduler
from workloads import fixed_jobs

from dovetail.metrics.records import OUTCOMES
from dovetail.model.job import JobSpec
from dovetail.simulator.experiment import Replay, replay

POLICIES = (
    "fifo",
    "fifo:skip=true",
    "fifo:backfill=easy",
    "sjf:skip=true",
    "srtf",
    "srsf",
    "las:round=7",
    "las:thresholds=6/20",
    "priority:preempt=true",
    "finish-time-fairness:round=7",
    "dominant-share",
    "fair-share",
    "deadline",
)


def write(jobs: list[JobSpec], file: Path) -> None:
    columns = ("job_id", "submit_time", "gpus", "duration", "priority", "tenant", "deadline")
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([*columns, "resumable"])
        for job in jobs:
            plain = (job.id, job.submit, job.request.gpus, job.estimate, job.priority)
            writer.writerow([*plain, job.tenant, job.deadline, str(job.resumable).lower()])


@pytest.mark.parametrize("placement", ["best-fit", "consolidated"])
@pytest.mark.parametrize("policy", POLICIES)
def test_both_worlds_tell_the_same_story(policy: str, placement: str, tmp_path: Path) -> None:
    jobs = fixed_jobs(60, seed=7)
    decider = scheduler("2x4", policy, placement)
    theirs: dict[int, float] = {}
    for instant in World(decider, jobs).instants():
        theirs.update({job.spec.id: instant.now for job, _ in decider.ended})
    write(jobs, tmp_path / "jobs.csv")
    settings = Replay(str(tmp_path / "jobs.csv"), "2x4", policy, placement, restart_cost=0.0)
    run = replay(settings)
    assert [OUTCOMES[kind] for kind in run.records.outcome] == ["finished"] * 60
    assert dict(zip(run.records.id, run.records.end, strict=True)) == theirs
    assert run.preemptions == decider.preemptions
    assert run.used.milli_gpus == decider.served[0]
