"""What people are shown of jobs and nodes: plain values, made on demand, without secrets."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from itertools import islice
from math import ceil
from typing import Any

from sqlalchemy import func, select, tuple_

from dovetail.controller import schema, submission
from dovetail.controller.finding import ALL, Filter
from dovetail.controller.intake import seconds
from dovetail.controller.loop import Controller
from dovetail.controller.roster import HELD, Live, batched
from dovetail.controller.store import Row
from dovetail.controller.submission import Submission
from dovetail.controller.tenants import back_in
from dovetail.core import codec
from dovetail.core.scheduler import Scheduler
from dovetail.model.allocation import Allocation, Part
from dovetail.model.errors import Missing
from dovetail.model.live import Description, Machine, Place, Progress, Run
from dovetail.model.node import VIRTUAL, Node
from dovetail.model.plan import BORROWED, Reason
from dovetail.model.request import WHOLE
from dovetail.planners.reasons import sharing

VACATING = frozenset({"lent", "releasing"})
"""Causes of a job that has its devices and waits for others to leave them."""
NAMED = 5
"""Jobs a reason names before it only counts them."""


def describe(controller: Controller, number: int) -> Description:
    """One job, whatever became of it, and why it waits."""
    live = controller.roster.get(number)
    if live is not None:
        return _alive(controller, live, True)
    found = described(controller, [number])
    if not found:
        raise Missing(f"there is no job {number}")
    return found[0]


def described(controller: Controller, numbers: Sequence[int]) -> list[Description]:
    """Jobs in this order, whatever became of them, without those that are not there."""
    roster, jobs = controller.roster, schema.jobs
    found = {job: _alive(controller, roster[job], False) for job in numbers if job in roster}
    for some in batched([job for job in numbers if job not in roster]):
        rows = controller.journal.store.rows(select(jobs).where(jobs.c.id.in_(some)))
        found |= {job.id: job for job in _ended(controller, rows)}
    return [found[job] for job in numbers if job in found]


def owner_of(controller: Controller, number: int) -> str:
    """Whose job it is."""
    if live := controller.roster.get(number):
        return live.submission.owner
    jobs = schema.jobs
    rows = controller.journal.store.rows(select(jobs.c.owner).where(jobs.c.id == number))
    if not rows:
        raise Missing(f"there is no job {number}")
    return str(rows[0]["owner"])


def listed(
    controller: Controller,
    *,
    reasons: bool = False,
    where: Filter = ALL,
    after: int = 0,
    limit: int | None = None,
    patience: float = float("inf"),
) -> list[Description]:
    """Jobs that have not ended, in order of submission; reasons cost time per job.

    A page begins `after` the last number of the one before. It may be shorter than its limit where
    so many seconds have passed: then there is more.
    """
    until = time.monotonic() + patience
    found = (
        live
        for live in controller.roster.values()
        if live.id > after and where.passes(live, state_of(controller, live))
    )
    page: list[Description] = []
    with sharing():
        for live in islice(found, limit):
            page.append(_alive(controller, live, reasons))
            if time.monotonic() > until:
                break
    return page


def counted(controller: Controller, where: Filter = ALL) -> int:
    """How many jobs that have not ended are wanted."""
    if where == ALL:
        return len(controller.roster)
    if where == Filter(where.owner):
        return controller.roster.owned[str(where.owner)]
    found = controller.roster.values()
    return sum(where.passes(live, state_of(controller, live)) for live in found)


def history(
    controller: Controller,
    limit: int = 100,
    where: Filter = ALL,
    before: tuple[float, int] | None = None,
) -> list[Description]:
    """Jobs that have ended, the latest first.

    A page begins `before` the end and number of the last one of the page before.
    """
    jobs = schema.jobs
    wanted = where.narrow(select(jobs).where(jobs.c.ended.is_not(None)))
    if before is not None:
        wanted = wanted.where(tuple_(jobs.c.ended, jobs.c.id) < tuple_(*before))
    latest = wanted.order_by(jobs.c.ended.desc(), jobs.c.id.desc()).limit(limit)
    return _ended(controller, controller.journal.store.rows(latest))


def _ended(controller: Controller, rows: Sequence[Row]) -> list[Description]:
    runs = schema.attempts
    mine = runs.c.job.in_([row["id"] for row in rows])
    counts = select(runs.c.job, func.count().label("runs")).where(mine).group_by(runs.c.job)
    counted = {row["job"]: row["runs"] for row in controller.journal.store.rows(counts)}
    return [_over(row, counted.get(row["id"], 0)) for row in rows]


def attempts(controller: Controller, number: int) -> list[Row]:
    """The attempts of a job, first to last."""
    mine = select(schema.attempts).where(schema.attempts.c.job == number)
    return controller.journal.store.rows(mine.order_by(schema.attempts.c.number))


def runs(controller: Controller, number: int) -> tuple[Run, ...]:
    """The same as people see them."""
    nodes = controller.scheduler.cluster.nodes
    return tuple(
        Run(
            row["number"],
            row["started"],
            row["ended"],
            row["outcome"],
            places(codec.from_plain(Allocation, json.loads(row["launch"])["allocation"]), nodes),
        )
        for row in attempts(controller, number)
    )


def submission_of(controller: Controller, number: int) -> dict[str, Any]:
    """What was asked for, with the names of secrets and not their values."""
    shown = select(schema.jobs.c.submission).where(schema.jobs.c.id == number)
    rows = controller.journal.store.rows(shown)
    if not rows:
        raise Missing(f"there is no job {number}")
    plain: dict[str, Any] = json.loads(rows[0]["submission"])
    return plain


def machines(controller: Controller) -> list[Machine]:
    """All nodes and who is on them."""
    scheduler = controller.scheduler
    cluster = scheduler.cluster
    on: dict[int, list[int]] = {}
    for job in scheduler.jobs.values():
        for node in {part.node for part in scheduler.parts(job)}:
            on.setdefault(node, []).append(job.id)
    foreign = _foreign(scheduler)
    return [
        Machine(
            node.name,
            node.type,
            node.gpus,
            cluster.masks[index].bit_count(),
            cluster.closed.get(index, "open"),
            tuple(on.get(index, ())),
            node.cpu,
            cluster.cpu[index] if cluster.limits_cpu else None,
            node.memory,
            cluster.memory[index] if cluster.limits_memory else None,
            foreign.get(index, ()),
            node.type == VIRTUAL,
            controller.roster.labels(on.get(index, ())),
        )
        for index, node in enumerate(cluster.nodes)
    ]


def _foreign(scheduler: Scheduler) -> dict[int, tuple[int, ...]]:
    """By node, the devices that somebody outside our control uses."""
    masks: dict[int, int] = {}
    for held in scheduler.holdings.values():
        for part in held.parts:
            masks[part.node] = masks.get(part.node, 0) | part.devices
    return {node: _bits(mask) for node, mask in masks.items()}


def _bits(mask: int) -> tuple[int, ...]:
    return tuple(bit for bit in range(mask.bit_length()) if mask >> bit & 1)


def state_of(controller: Controller, live: Live) -> str:
    """The state of a job that has not ended."""
    job = controller.scheduler.jobs.get(live.id)
    return HELD if live.held else str(job.status) if job is not None else live.state


def _alive(controller: Controller, live: Live, explained: bool) -> Description:
    scheduler = controller.scheduler
    job = scheduler.jobs.get(live.id)
    reason = _reason(controller, live) if explained else Reason("", live.reason)
    held = job.allocation if job is not None else None
    told = live.progress
    return Description(
        live.id,
        live.name,
        live.owner,
        state_of(controller, live),
        reason.text,
        live.submitted,
        live.started,
        None,
        live.attempts,
        live.failures,
        live.code,
        live.signal,
        places(held, scheduler.cluster.nodes) if held else (),
        Progress(told.steps, told.total, told.rate) if told else None,
        reason.blockers,
        reason.unblock,
        live.member.array if live.member else None,
        live.member.index if live.member else None,
        live.saved,
        **_asked(live.submission, live.submitted),
    )


def _reason(controller: Controller, live: Live) -> Reason:
    if live.held:
        return Reason(HELD, "its owner holds it", unblock=f"dovetail release {live.label}")
    if live.waits:
        return _dependent(controller, live)
    if live.pause is not None:
        return Reason("resting", live.reason, unblock="the end of that rest")
    reason = controller.scheduler.explain(live.id)
    if reason.cause in VACATING:
        return _vacated(controller, reason)
    if live.run is not None and live.reason:
        between = "; " if reason.cause == BORROWED else ": "
        return reason._replace(text=f"{reason.text}{between}{live.reason}")
    return reason


def _vacated(controller: Controller, reason: Reason) -> Reason:
    """Others were asked to let go, and have so much time to do it."""
    jobs = [controller.scheduler.jobs[job] for job in reason.blockers]
    times = [left for job in jobs if (left := back_in(controller, job)) is not None]
    if not times:
        return reason
    if not max(times):
        return reason._replace(text=f"{reason.text}: its time for that is over, and it is ended")
    word = "back" if reason.cause == "lent" else "free"
    return reason._replace(
        text=f"{reason.text}: {word} in {seconds(ceil(max(times)))} at the latest"
    )


def _dependent(controller: Controller, live: Live) -> Reason:
    """It waits for other jobs: their numbers, as many as a line takes."""
    numbers = tuple(sorted(live.waits))
    named = controller.roster.called(*numbers[:NAMED])
    more = f" and {len(numbers) - NAMED} more" if len(numbers) > NAMED else ""
    verb = "end" if live.submission.after_any else "be done"
    word = "jobs" if len(numbers) > 1 else "job"
    text = f"it waits for {word} {named}{more} to {verb}"
    return Reason("after", text, numbers, f"the end of {word} {named}{more}")


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
        array=row["array"],
        index=row["index"],
        saved=row["saved"],
        **_asked(submission.read(row["submission"], "{}"), row["submitted"]),
    )


def _asked(asked: Submission, submitted: float) -> dict[str, Any]:
    """What a submission says, as a description says it."""
    groups = asked.request.alternatives[0].groups
    amounts = [(group.most, group.each.cpu, group.each.memory) for group in groups]
    cpus = [count * cpu for count, cpu, _ in amounts if cpu is not None]
    memories = [count * memory for count, _, memory in amounts if memory is not None]
    return {
        "command": asked.command,
        "tenant": asked.tenant,
        "priority": asked.priority,
        "gpus": asked.request.milli_gpus / WHOLE,
        "cpu": sum(cpus) if cpus else None,
        "memory": sum(memories) if memories else None,
        "resumable": asked.resumable,
        "time_limit": asked.time_limit,
        "deadline": None if asked.deadline is None else submitted + asked.deadline,
        "after": asked.after,
    }


def places(allocation: Allocation, nodes: Sequence[Node]) -> tuple[Place, ...]:
    """An allocation with names instead of positions; replicas on one node are one place."""
    merged: dict[tuple[int, int], Part] = {}
    for part in allocation.parts:
        found = merged.get((part.node, part.share), part._replace(devices=0, cpu=0, memory=0))
        merged[part.node, part.share] = part._replace(
            devices=found.devices | part.devices,
            cpu=found.cpu + part.cpu,
            memory=found.memory + part.memory,
        )
    return tuple(
        Place(nodes[part.node].name, _bits(part.devices), part.cpu, part.memory, part.share)
        for part in merged.values()
    )
