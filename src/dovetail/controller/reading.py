"""What people are shown of jobs and nodes: plain values, made on demand, without secrets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from dovetail.controller import schema
from dovetail.controller.loop import Controller
from dovetail.controller.roster import HELD, Live
from dovetail.controller.store import Row
from dovetail.model.allocation import Allocation
from dovetail.model.cluster import Node
from dovetail.model.errors import UserError
from dovetail.model.plan import Reason


@dataclass(frozen=True)
class Place:
    """What a job holds on one node."""

    node: str
    devices: tuple[int, ...]
    #: thousandths of a core and MiB
    cpu: int
    memory: int
    #: thousandths of each device
    share: int


@dataclass(frozen=True)
class Description:
    """One job as people see it. Times are wall time in seconds since 1970."""

    id: int
    name: str
    owner: str
    state: str
    #: why it waits, or why it ended as it did; empty where there is nothing to say
    reason: str
    submitted: float
    started: float | None
    ended: float | None
    attempts: int
    failures: int
    code: int | None
    signal: int | None
    places: tuple[Place, ...] = ()
    #: steps done, steps in all, steps per second, as the job told
    progress: tuple[float, float | None, float] | None = None
    #: jobs in the way, the most important first
    blockers: tuple[int, ...] = ()
    unblock: str = ""


def describe(controller: Controller, number: int) -> Description:
    """One job, whatever became of it."""
    live = controller.roster.get(number)
    if live is not None:
        return _alive(controller, live, True)
    rows = controller.journal.store.rows(select(schema.jobs).where(schema.jobs.c.id == number))
    if not rows:
        raise UserError(f"there is no job {number}")
    return _over(rows[0], len(attempts(controller, number)))


def listed(controller: Controller, *, reasons: bool = False) -> list[Description]:
    """All jobs that have not ended, in order of submission; reasons cost time per job."""
    return [_alive(controller, live, reasons) for live in controller.roster.values()]


def history(
    controller: Controller, limit: int = 100, owner: str | None = None
) -> list[Description]:
    """Jobs that have ended, the latest first."""
    jobs = schema.jobs
    wanted = select(jobs).where(jobs.c.ended.is_not(None))
    if owner is not None:
        wanted = wanted.where(jobs.c.owner == owner)
    latest = wanted.order_by(jobs.c.ended.desc(), jobs.c.id.desc()).limit(limit)
    rows = controller.journal.store.rows(latest)
    runs = schema.attempts
    mine = runs.c.job.in_([row["id"] for row in rows])
    counts = select(runs.c.job, func.count().label("runs")).where(mine).group_by(runs.c.job)
    counted = {row["job"]: row["runs"] for row in controller.journal.store.rows(counts)}
    return [_over(row, counted.get(row["id"], 0)) for row in rows]


def attempts(controller: Controller, number: int) -> list[Row]:
    """The attempts of a job, first to last."""
    mine = select(schema.attempts).where(schema.attempts.c.job == number)
    return controller.journal.store.rows(mine.order_by(schema.attempts.c.number))


def submission_of(controller: Controller, number: int) -> dict[str, Any]:
    """What was asked for, with the names of secrets and not their values."""
    shown = select(schema.jobs.c.submission).where(schema.jobs.c.id == number)
    rows = controller.journal.store.rows(shown)
    if not rows:
        raise UserError(f"there is no job {number}")
    plain: dict[str, Any] = json.loads(rows[0]["submission"])
    return plain


@dataclass(frozen=True)
class Machine:
    """One node as people see it."""

    name: str
    type: str
    gpus: int
    free: int
    #: open, draining or down
    state: str
    jobs: tuple[int, ...]


def machines(controller: Controller) -> list[Machine]:
    """All nodes and who is on them."""
    scheduler = controller.scheduler
    cluster = scheduler.cluster
    on: dict[int, list[int]] = {}
    for job in scheduler.jobs.values():
        for node in {part.node for part in scheduler.parts(job)}:
            on.setdefault(node, []).append(job.id)
    return [
        Machine(
            node.name,
            node.type,
            node.gpus,
            cluster.masks[index].bit_count(),
            cluster.closed.get(index, "open"),
            tuple(on.get(index, ())),
        )
        for index, node in enumerate(cluster.nodes)
    ]


def _alive(controller: Controller, live: Live, explained: bool) -> Description:
    scheduler = controller.scheduler
    job = scheduler.jobs.get(live.id)
    reason = _reason(controller, live) if explained else Reason("", live.reason)
    held = job.allocation if job is not None else None
    told = live.progress
    return Description(
        live.id,
        live.submission.name or f"job-{live.id}",
        live.submission.owner,
        HELD if live.held else str(job.status) if job is not None else live.state,
        reason.text,
        live.submitted,
        live.started,
        None,
        live.attempts,
        live.failures,
        live.code,
        live.signal,
        places(held, scheduler.cluster.nodes) if held else (),
        (told.steps, told.total, told.rate) if told else None,
        reason.blockers,
        reason.unblock,
    )


def _reason(controller: Controller, live: Live) -> Reason:
    if live.held:
        return Reason(HELD, "its owner holds it", unblock="release it")
    if live.pause is not None:
        return Reason("resting", live.reason)
    return controller.scheduler.explain(live.id)


def _over(row: Row, count: int) -> Description:
    return Description(
        int(row["id"]),
        row["name"],
        row["owner"],
        row["state"],
        row["reason"],
        row["submitted"],
        row["started"],
        row["ended"],
        count,
        row["failures"],
        row["code"],
        row["signal"],
    )


def places(allocation: Allocation, nodes: Sequence[Node]) -> tuple[Place, ...]:
    """An allocation with names instead of positions."""
    return tuple(
        Place(
            nodes[part.node].name,
            tuple(bit for bit in range(part.devices.bit_length()) if part.devices >> bit & 1),
            part.cpu,
            part.memory,
            part.share,
        )
        for part in allocation.parts
    )
