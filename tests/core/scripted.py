"""A planner that does what the test tells it to: for actions no built-in planner takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail.model.cluster import Cluster
from dovetail.model.job import Job
from dovetail.model.plan import Action, Reason


class Scripted:
    """Implements `core.protocols.Planner`; `wanted` is the next plan, `heard` all it was told."""

    timed = True

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.wanted: list[Action] = []
        self.wake: float | None = None
        self.heard: list[str] = []
        self.jobs: dict[int, Job] = {}
        self.waiting = 0

    def submitted(self, job: Job, now: float) -> str | None:
        if job.spec.name == "unwelcome":
            return "it is not welcome"
        self.waits(job, now)
        return None

    def waits(self, job: Job, now: float) -> None:
        self.jobs[job.spec.id] = job
        self.waiting += 1
        self.heard.append(f"{job.spec.name} waits")

    def started(self, job: Job, now: float) -> None:
        self.waiting -= job.spec.id in self.jobs
        self.jobs.pop(job.spec.id, None)
        self.heard.append(f"{job.spec.name} started")

    def left(self, job: Job, now: float, done: bool) -> None:
        self.waiting -= job.spec.id in self.jobs
        self.jobs.pop(job.spec.id, None)
        self.heard.append(f"{job.spec.name} {'done' if done else 'left'}")

    def changed(self, job: Job, now: float) -> None:
        self.heard.append(f"{job.spec.name} changed")

    def resized(self, job: Job, now: float) -> None:
        self.heard.append(f"{job.spec.name} changed")

    def capacity_changed(self) -> None:
        self.heard.append("capacity changed")

    def advance(self, now: float) -> None:
        pass

    def settled(self) -> None:
        pass

    def plan(self, now: float) -> list[Action]:
        wanted, self.wanted = self.wanted, []
        return wanted

    def wake_at(self) -> float | None:
        return self.wake

    def explain(self, job: Job, now: float) -> Reason:
        return Reason("script", "the script says so")

    def report(self) -> dict[str, Any]:
        return {}

    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any, jobs: Sequence[Job]) -> None:
        self.waiting = 0
        for job in jobs:
            if job.status == "waiting":
                self.waits(job, 0.0)
