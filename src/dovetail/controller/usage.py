"""Who had how much: GPU and CPU time by user, from the attempts on record."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import func, or_, select, tuple_

from dovetail.controller import schema
from dovetail.controller.loop import Controller
from dovetail.core import codec
from dovetail.model.allocation import Allocation
from dovetail.model.live import Usage
from dovetail.model.request import WHOLE

HOUR = 3600.0
SOME = 1000
"""Attempts added up at a time."""


@dataclass
class _Sum:
    """What is being added up for one user."""

    gpu: float = 0.0
    cpu: float = 0.0


async def usage_by_user(controller: Controller, since: float = 0.0) -> list[Usage]:
    """What each user had since a moment of wall time, users by name.

    There may be hundreds of thousands of attempts: others have their turn in between.
    """
    hours: dict[str, _Sum] = defaultdict(_Sum)
    last: tuple[int, int] | None = (-1, -1)
    while last is not None:
        last = _add(controller, since, last, hours)
        await asyncio.sleep(0)
    states = _states(controller, since)
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


def _add(
    controller: Controller, since: float, after: tuple[int, int], sums: dict[str, _Sum]
) -> tuple[int, int] | None:
    """Add a few of the attempts that overlap the time, each as long as it does; the last of them.

    Amounts count as they last were. None: there are no more.
    """
    jobs, runs = schema.jobs, schema.attempts
    wanted = (
        select(runs.c.job, runs.c.number, jobs.c.owner, runs.c.started, runs.c.ended, runs.c.launch)
        .join(jobs, jobs.c.id == runs.c.job)
        .where(or_(runs.c.ended.is_(None), runs.c.ended >= since))
        .where(tuple_(runs.c.job, runs.c.number) > tuple_(*after))
        .order_by(runs.c.job, runs.c.number)
        .limit(SOME)
    )
    rows = controller.journal.store.rows(wanted)
    for row in rows:
        end = row["ended"] if row["ended"] is not None else controller.time.wall()
        span = max(0.0, end - max(row["started"], since)) / HOUR
        gpu, cpu = amounts(row["launch"])
        sums[row["owner"]].gpu += gpu * span
        sums[row["owner"]].cpu += cpu * span
    return (rows[-1]["job"], rows[-1]["number"]) if len(rows) == SOME else None


@lru_cache(maxsize=4096)
def amounts(launch: str) -> tuple[float, float]:
    """GPUs and cores that an attempt was started with."""
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
