"""Reads what a review is about from the data base: jobs and attempts that a stretch of time saw.

What an attempt lost is what the controller believes it lost: all of it if it failed or was given
up or cannot resume, and the time of a restart if it was stopped and can.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from sqlalchemy import Select, or_, select, tuple_

from dovetail.controller import schema, submission
from dovetail.controller.loop import Controller
from dovetail.controller.paging import paged
from dovetail.controller.parts import Parts
from dovetail.controller.store import Row
from dovetail.controller.usage import amounts
from dovetail.metrics.review import CANCELLED, FAILED, STOPPED, USEFUL, Asked, Held, review
from dovetail.model.request import WHOLE
from dovetail.model.review import Review

MOST_JOBS = 100_000
"""The latest ones."""


async def reviewed(controller: Controller, parts: Parts, since: float) -> Review:
    """What became of the time since then.

    Rows are read a page at a time and figures are made in another thread: decisions do not wait.
    """
    store, until = controller.journal.store, controller.time.wall()
    # Attempts first: one that has not ended yet counts as work, whatever its job's row says then.
    runs = await paged(store, lambda last: _attempts(since, last))
    jobs = await paged(store, lambda last: _jobs(since, last), MOST_JOBS)
    gpus = sum(node.gpus for node in controller.scheduler.cluster.nodes)
    made = await asyncio.to_thread(_made, jobs, runs, since, until, gpus, parts)
    # Reasons are the scheduler's own, so that it is asked for them in its thread.
    told = [replace(each, why=_why(controller, each.job) or each.why) for each in made.longest]
    labels = controller.roster.labels(each.job for each in told)
    return replace(made, longest=tuple(told), labels=labels)


def _why(controller: Controller, number: int) -> str:
    job = controller.scheduler.jobs.get(number)
    return controller.scheduler.explain(number).text if job and job.allocation is None else ""


def _made(
    rows: list[Row], attempts: list[Row], since: float, until: float, gpus: int, parts: Parts
) -> Review:
    jobs = {int(row["id"]): row for row in rows}
    runs = [row for row in attempts if row["job"] in jobs]
    last = {int(row["job"]): int(row["number"]) for row in runs}
    first = {int(row["job"]): float(row["started"]) for row in runs if row["number"] == 1}
    begin = max(since, min((row["submitted"] for row in rows), default=until - 1.0))
    asked = [_asked(row, first.get(number)) for number, row in jobs.items()]
    held = [
        _held(row, jobs[row["job"]], last[row["job"]] == row["number"], until, parts)
        for row in runs
    ]
    return review(asked, held, begin, max(until, begin + 1.0), gpus, parts.policy)


def _jobs(since: float, last: Row | None) -> Select[Any]:
    """Jobs that had not ended by then, the latest first."""
    jobs = schema.jobs
    wanted = (
        select(jobs)
        .where(jobs.c.state != "rejected")
        .where(or_(jobs.c.ended.is_(None), jobs.c.ended >= since))
        .order_by(jobs.c.id.desc())
    )
    return wanted if last is None else wanted.where(jobs.c.id < last["id"])


def _attempts(since: float, last: Row | None) -> Select[Any]:
    runs = schema.attempts
    wanted = (
        select(runs)
        .where(or_(runs.c.ended.is_(None), runs.c.ended >= since))
        .order_by(runs.c.job, runs.c.number)
    )
    if last is None:
        return wanted
    return wanted.where(tuple_(runs.c.job, runs.c.number) > tuple_(last["job"], last["number"]))


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
