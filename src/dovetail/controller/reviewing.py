"""Reads what a review is about from the data base: jobs and attempts that a stretch of time saw.

What an attempt lost is what the controller believes it lost: all of it if it failed or was given
up or cannot resume, and the time of a restart if it was stopped and can.
"""

from __future__ import annotations

import asyncio
from typing import Any

from sqlalchemy import or_, select, tuple_

from dovetail.controller import schema, submission
from dovetail.controller.loop import Controller
from dovetail.controller.parts import Parts
from dovetail.controller.usage import SOME, amounts
from dovetail.metrics.review import CANCELLED, FAILED, STOPPED, USEFUL, Asked, Held, review
from dovetail.model.request import WHOLE
from dovetail.model.review import Review

MOST_JOBS = 100_000
"""The latest ones."""

Row = Any


async def reviewed(controller: Controller, parts: Parts, since: float) -> Review:
    """What became of the time since then; others have their turn in between."""
    until = controller.time.wall()
    jobs = {int(row["id"]): row for row in await _rows(controller, since)}
    runs = [row for row in await _attempts(controller, since) if row["job"] in jobs]
    last = {int(row["job"]): int(row["number"]) for row in runs}
    first: dict[int, float] = {}
    for row in runs:
        if row["number"] == 1:
            first[row["job"]] = row["started"]
    begin = max(since, min((row["submitted"] for row in jobs.values()), default=until - 1.0))
    asked = [_asked(row, first.get(number)) for number, row in jobs.items()]
    held = [
        _held(row, jobs[row["job"]], last[row["job"]] == row["number"], until, parts)
        for row in runs
    ]
    gpus = sum(node.gpus for node in controller.scheduler.cluster.nodes)

    def why(number: int) -> str:
        job = controller.scheduler.jobs.get(number)
        return controller.scheduler.explain(number).text if job and job.allocation is None else ""

    # Reasons are the scheduler's own, so that this is done in its thread.
    return review(asked, held, begin, max(until, begin + 1.0), gpus, parts.policy, why)


async def _rows(controller: Controller, since: float) -> list[Row]:
    """Jobs that had not ended by then, the latest of them if they are many."""
    jobs, found, last = schema.jobs, list[Row](), 2**62
    while len(found) < MOST_JOBS:
        wanted = (
            select(jobs)
            .where(jobs.c.id < last, jobs.c.state != "rejected")
            .where(or_(jobs.c.ended.is_(None), jobs.c.ended >= since))
            .order_by(jobs.c.id.desc())
            .limit(SOME)
        )
        page = controller.journal.store.rows(wanted)
        found += page
        if len(page) < SOME:
            break
        last = int(page[-1]["id"])
        await asyncio.sleep(0)
    return found


async def _attempts(controller: Controller, since: float) -> list[Row]:
    runs, found, after = schema.attempts, list[Row](), (-1, -1)
    while True:
        wanted = (
            select(runs)
            .where(or_(runs.c.ended.is_(None), runs.c.ended >= since))
            .where(tuple_(runs.c.job, runs.c.number) > tuple_(*after))
            .order_by(runs.c.job, runs.c.number)
            .limit(SOME)
        )
        page = controller.journal.store.rows(wanted)
        found += page
        if len(page) < SOME:
            return found
        after = (int(page[-1]["job"]), int(page[-1]["number"]))
        await asyncio.sleep(0)


def _asked(row: Row, first: float | None) -> Asked:
    asked = submission.read(row["submission"], "{}")
    started = first if first is not None else row["started"]
    return Asked(
        int(row["id"]),
        row["name"],
        row["owner"],
        asked.request.milli_gpus / WHOLE,
        row["submitted"],
        started,
        row["ended"],
        row["state"],
        # Since when it might have started is not on record.
        not (asked.after or asked.held or row["state"] == "held"),
    )


def _held(row: Row, job: Row, last: bool, until: float, parts: Parts) -> Held:
    gpus, _ = amounts(row["launch"])
    begin, end = row["started"], row["ended"] if row["ended"] is not None else until
    cause, lost = _cause(row, job, last), end - begin
    if cause == STOPPED:
        asked = submission.read(job["submission"], "{}")
        # One that can resume saves its work when it is asked to stop.
        lost = min(lost, parts.costs.restart) if asked.resumable else lost
    return Held(int(row["job"]), gpus, begin, end, cause, 0.0 if cause == USEFUL else lost)


def _cause(row: Row, job: Row, last: bool) -> str:
    """What became of an attempt."""
    if row["ended"] is None or (last and job["state"] == "done"):
        return USEFUL
    if last and job["state"] == "cancelled":
        return CANCELLED
    if row["stopping"] and not (last and job["state"] == "failed"):
        return STOPPED
    return FAILED
