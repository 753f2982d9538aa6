"""A brute-force scheduler: at every instant order everybody, admit by count, and that is the plan.

Written from the definitions, without any code of the planners: no lanes, no indexes, no memory of
the last decision. It also simulates, so that a whole run can be compared instant by instant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dovetail.model.job import JobSpec


@dataclass
class Task:
    """A job as the oracle sees it."""

    spec: JobSpec
    left: float
    running: bool = False
    first_start: float = float("inf")

    @property
    def gpus(self) -> int:
        return self.spec.request.gpus

    @property
    def service(self) -> float:
        """GPU-seconds so far."""
        return (self.length - self.left) * self.gpus

    @property
    def length(self) -> float:
        assert self.spec.estimate is not None
        return self.spec.estimate


Key = Callable[[Task], Any]

KEYS: dict[str, Key] = {
    "srtf": lambda task: task.left,
    "srsf": lambda task: task.left * task.gpus,
    "fifo": lambda task: task.spec.submit,
    "sjf": lambda task: task.length,
    "ljf": lambda task: -task.length,
    "priority": lambda task: -task.spec.priority,
    "smallest-first": lambda task: task.gpus,
}


class Moment(NamedTuple):
    """What the oracle decides at one instant."""

    now: float
    started: frozenset[int]
    stopped: frozenset[int]


def queues(thresholds: Sequence[float]) -> Key:
    """Discretised 2D-LAS: the queue, running ones before waiting ones, then first start."""

    def key(task: Task) -> tuple[int, bool, float]:
        queue = sum(task.service >= limit for limit in thresholds)
        return queue, not task.running, task.first_start

    return key


def full_walk(
    jobs: Sequence[JobSpec],
    gpus: int,
    key: Key,
    *,
    preempt: bool,
    skip: bool,
    thresholds: Sequence[float] = (),
) -> list[Moment]:
    """Every instant of the run in which something was decided; one also at each threshold."""
    coming = sorted(jobs, key=lambda job: (job.submit, job.id))
    active: list[Task] = []
    moments: list[Moment] = []
    now = 0.0
    while coming or active:
        running = [task for task in active if task.running]
        ends = [now + task.left for task in running]
        drops = [
            now + (limit - task.service) / task.gpus
            for task in running
            for limit in thresholds
            if limit > task.service
        ]
        instant = min([*ends, *drops, *(job.submit for job in coming[:1])])
        for task in active:
            task.left -= (instant - now) * task.running
        now = instant
        active = [task for task in active if task.left > 0]
        while coming and coming[0].submit <= now:
            job = coming.pop(0)
            assert job.estimate is not None
            if job.request.gpus <= gpus:
                active.append(Task(job, job.estimate))
        before = {task.spec.id for task in active if task.running}
        after = decide(active, gpus, key, preempt=preempt, skip=skip)
        for task in active:
            task.running = task.spec.id in after
            task.first_start = min(task.first_start, now) if task.running else task.first_start
        if before != after:
            moments.append(Moment(now, frozenset(after - before), frozenset(before - after)))
    return moments


def decide(active: Sequence[Task], gpus: int, key: Key, *, preempt: bool, skip: bool) -> set[int]:
    """Who runs now."""
    ranked = sorted(active, key=lambda task: (key(task), task.spec.submit, task.spec.id))
    admitted: set[int] = set()
    if not preempt:
        ranked = [task for task in ranked if not task.running]
        kept = [task for task in active if task.running]
        admitted = {task.spec.id for task in kept}
        gpus -= sum(task.gpus for task in kept)
    for task in ranked:
        if task.gpus <= gpus:
            admitted.add(task.spec.id)
            gpus -= task.gpus
        elif not (skip or preempt):
            break
    return admitted
