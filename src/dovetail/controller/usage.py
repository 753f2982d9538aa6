"""Who had how much: GPU and CPU time by user, from the attempts on record."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass

from sqlalchemy import func, or_, select

from dovetail.controller import schema
from dovetail.controller.loop import Controller
from dovetail.core import codec
from dovetail.model.allocation import Allocation
from dovetail.model.live import Usage
from dovetail.model.request import WHOLE

HOUR = 3600.0


@dataclass
class _Sum:
    """What is being added up for one user."""

    gpu: float = 0.0
    cpu: float = 0.0


def usage_by_user(controller: Controller, since: float = 0.0) -> list[Usage]:
    """What each user had since a moment of wall time, users by name."""
    hours, states = _hours(controller, since), _states(controller, since)
    return [
        Usage(
            owner,
            sum(states[owner].values()),
            states[owner]["waiting"] + states[owner]["held"],
            sum(states[owner][name] for name in ("starting", "running", "stopping", "suspended")),
            hours[owner].gpu,
            hours[owner].cpu,
            states[owner]["done"],
            states[owner]["failed"],
        )
        for owner in sorted({*hours, *states})
    ]


def _hours(controller: Controller, since: float) -> dict[str, _Sum]:
    """Attempts that overlap the time, each as long as it does; amounts as they last were."""
    store, jobs, runs, now = controller.journal.store, schema.jobs, schema.attempts, controller.time
    wanted = (
        select(jobs.c.owner, runs.c.started, runs.c.ended, runs.c.launch)
        .join(jobs, jobs.c.id == runs.c.job)
        .where(or_(runs.c.ended.is_(None), runs.c.ended >= since))
    )
    sums: dict[str, _Sum] = defaultdict(_Sum)
    for row in store.rows(wanted):
        end = row["ended"] if row["ended"] is not None else now.wall()
        span = max(0.0, end - max(row["started"], since)) / HOUR
        gpu, cpu = _amounts(row["launch"])
        sums[row["owner"]].gpu += gpu * span
        sums[row["owner"]].cpu += cpu * span
    return sums


def _amounts(launch: str) -> tuple[float, float]:
    allocation = codec.from_plain(Allocation, json.loads(launch)["allocation"])
    devices = sum(part.devices.bit_count() * part.share for part in allocation.parts) / WHOLE
    return devices, allocation.cpu / 1000


def _states(controller: Controller, since: float) -> dict[str, dict[str, int]]:
    jobs = schema.jobs
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    wanted = select(jobs.c.owner, jobs.c.state, func.count().label("jobs")).where(
        or_(jobs.c.ended.is_(None), jobs.c.ended >= since)
    )
    for row in controller.journal.store.rows(wanted.group_by(jobs.c.owner, jobs.c.state)):
        counts[row["owner"]][row["state"]] = int(row["jobs"])
    return counts
