"""What the tests of keys share: a view without a planner, a job with a past, the order of keys."""

from __future__ import annotations

from typing import Any

from workbench import spec

from dovetail.core.view import View
from dovetail.model.costs import FREE
from dovetail.model.job import Job
from dovetail.simulator.spec import parse_cluster


def view(cluster: str = "1x4", now: float = 0.0) -> View:
    made = View(parse_cluster(cluster), FREE)
    made.now = now
    return made


def waiting(number: int, gpus: int = 1, at: float = 0.0, *, ran: float = 0.0, **more: Any) -> Job:
    """A job that waits after having held its GPUs for some seconds."""
    job = Job(spec(number, gpus, at, **more), more.get("length", 1.0))
    job.run_time = job.attained = ran
    return job


def order(ordering: Any, jobs: list[Job], seen: View) -> list[int]:
    """Ids in the order of keys, ties by submit time and id."""
    seen.jobs.update({job.spec.id: job for job in jobs})
    ranked = sorted((ordering.key(job, seen), job.spec.submit, job.spec.id) for job in jobs)
    return [number for _, _, number in ranked]
