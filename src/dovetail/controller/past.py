"""A controller's own past as a workload that can be replayed.

How long jobs ran is what they ran for on what they had; of those that have not ended it is what is
believed. Lengths on other CPU and memory are not known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from sqlalchemy import Select, select

from dovetail.answers import lengths
from dovetail.answers.what_if import Setting, compare, resized, setting
from dovetail.controller import schema, submission
from dovetail.controller.loop import Controller
from dovetail.controller.paging import paged
from dovetail.controller.parts import Parts
from dovetail.controller.store import Row
from dovetail.model.cluster import Cluster
from dovetail.model.job import JobSpec
from dovetail.model.quota import read_quotas
from dovetail.model.trace import TraceJob
from dovetail.model.what_if import Comparison, Question
from dovetail.simulator.experiment import Replay
from dovetail.tenancy.kinds import read_tenants

MOST_JOBS = 50_000
"""The latest ones; more would keep whoever asks waiting."""

MOMENT = 0.001
UNKNOWN = 3600.0
"""Seconds that a job is taken to run of which nothing is believed."""


@dataclass(frozen=True)
class Past:
    """What is replayed."""

    jobs: tuple[TraceJob, ...]
    #: wall time of second 0
    origin: float
    notices: tuple[str, ...]
    parts: Parts
    cluster: Cluster

    def answer(self, question: Question) -> Comparison:
        """What would have been."""
        wanted = self.cluster if question.gpus is None else resized(self.cluster, question.gpus)
        quotas = ",".join(f"{name}={gpus:g}" for name, gpus in question.quotas.items())
        read_quotas(quotas)
        parts = self.parts
        present = self._setting(parts.policy, parts.quotas, self.cluster, parts.tenancy)
        policy = question.policy or parts.policy
        owners = parts.tenancy if question.tenancy is None else question.tenancy
        other = self._setting(policy, quotas or parts.quotas, wanted, owners, question.speed)
        return compare(self.jobs, present, other, self.origin, self.notices)

    def _setting(
        self,
        policy: str,
        quotas: str | None,
        cluster: Cluster,
        owners: str | None,
        speed: float = 1.0,
    ) -> Setting:
        same = policy == self.parts.policy
        settings = Replay(
            "history",
            "the controller's",
            policy,
            self.parts.placement if same else None,
            self.parts.allocator if same else None,
            "history",
            self.parts.profiles,
            quotas=quotas,
            restart_cost=self.parts.costs.restart,
            stop_cost=self.parts.costs.stop,
        )
        return setting(settings, cluster, speed, read_tenants(owners or None))


async def past(controller: Controller, parts: Parts, since: float = 0.0) -> Past:
    """The jobs on record since a moment of wall time, the latest of them if there are many.

    Rows are read a page at a time and understood in another thread: decisions do not wait.
    """
    rows = await paged(controller.journal.store, lambda last: _jobs(since, last), MOST_JOBS)
    scheduler, now = controller.scheduler, controller.time.now()
    expected = {
        number: lengths.believed(scheduler.predictor, job, now)
        for number, job in scheduler.jobs.items()
    }
    cluster = Cluster(scheduler.cluster.nodes)
    return await asyncio.to_thread(_past, rows, expected, parts, cluster)


def _jobs(since: float, last: Row | None) -> Select[Any]:
    jobs = schema.jobs
    wanted = select(jobs).where(jobs.c.submitted >= since, jobs.c.state != "rejected")
    wanted = wanted.order_by(jobs.c.id.desc())
    return wanted if last is None else wanted.where(jobs.c.id < last["id"])


def _past(
    rows: Sequence[Row], expected: Mapping[int, float], parts: Parts, cluster: Cluster
) -> Past:
    """Rows, the latest first, as jobs."""
    found: list[TraceJob] = []
    believed = unrun = 0
    for row in reversed(rows):
        if row["ended"] is not None and row["started"] is None:
            unrun += 1
            continue
        believed += row["ended"] is None
        asked = submission.read(row["submission"], "{}")
        spec = asked.spec(len(found), float(row["submitted"]))
        named = spec._replace(name=f"{_label(row)} {row['name']}", retries=0)
        limit = asked.time_limit if asked.time_limit is not None else inf
        found.append(TraceJob(named, min(_work(row, expected), limit)))
    notices = []
    if believed:
        notices.append(f"{believed} jobs have not ended: they are taken to run as believed")
    if unrun:
        notices.append(f"{unrun} jobs that never ran are left out")
    if len(rows) >= MOST_JOBS:
        notices.append(f"only the latest {MOST_JOBS:,} jobs are replayed")
    first = min((job.spec.submit for job in found), default=0.0)
    moved = tuple(job._replace(spec=_begins(job, first)) for job in found)
    return Past(moved, first, tuple(notices), parts, cluster)


def _label(row: Row) -> str:
    """Its number as lists have it."""
    return str(row["id"]) if row["array"] is None else f"{row['array']}.{row['index']}"


def _work(row: Row, expected: Mapping[int, float]) -> float:
    """Seconds that a job ran for; of one that has not ended, what is believed."""
    ran = float(row["ran"] or 0.0)
    if row["ended"] is None:
        length = expected.get(int(row["id"]), UNKNOWN)
        return max(length if isfinite(length) else UNKNOWN, ran, 1.0)
    # What ends before it was confirmed to run has run all the same.
    return ran or max(float(row["ended"]) - float(row["started"]), MOMENT)


def _begins(job: TraceJob, first: float) -> JobSpec:
    spec = job.spec
    deadline = None if spec.deadline is None else spec.deadline - first
    return spec._replace(submit=spec.submit - first, deadline=deadline)
