"""What became of one job over time: its states and what it held, from the steps on record.

A resize is a stretch of its own. Why it was resized, and what it made of it, is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlalchemy import select

from dovetail.controller import reading, schema
from dovetail.controller.loop import Controller
from dovetail.controller.roster import HELD
from dovetail.controller.store import Row
from dovetail.core import codec
from dovetail.model.allocation import Allocation
from dovetail.model.job import Status
from dovetail.model.live import Description, Place, Stretch
from dovetail.model.node import Node

MOST = 500
"""Steps that are told, the latest of them."""

EMPTY_HANDED = frozenset({str(Status.WAITING), HELD})
"""States of a job that holds nothing."""


def timeline(controller: Controller, number: int) -> tuple[Stretch, ...]:
    """The stretches of a job, first to last; of very many, the latest."""
    job = reading.describe(controller, number)
    steps = schema.steps
    latest = select(steps).where(steps.c.job == number).order_by(steps.c.id.desc()).limit(MOST)
    rows = controller.journal.store.rows(latest)[::-1]
    return stretches(job, rows, controller.scheduler.cluster.nodes)


def stretches(job: Description, rows: Sequence[Row], nodes: Sequence[Node]) -> tuple[Stretch, ...]:
    """What the steps amount to, from submission to end."""
    # Where the beginning is left out, a step without a state is a resize of what runs.
    whole = len(rows) < MOST
    state, since = (Status.WAITING, job.submitted) if whole else (Status.RUNNING, rows[0]["at"])
    found = [Stretch(str(state), since, None)]
    for row in rows:
        if job.ended is None or row["at"] < job.ended:
            found.append(_after(found[-1], row, nodes))
    kept = _told_apart(found)
    ends = [*(each.since for each in kept[1:]), job.ended]
    return tuple(replace(each, until=until) for each, until in zip(kept, ends, strict=True))


def _after(last: Stretch, row: Row, nodes: Sequence[Node]) -> Stretch:
    state = row["state"] or last.state
    places = _places(row["launch"], nodes) if row["launch"] else last.places
    held = () if state in EMPTY_HANDED else places
    # A wall clock that was set back does not set a job back.
    at = max(row["at"], last.since)
    return Stretch(state, at, None, row["attempt"] or last.attempt, held)


def _places(launch: str, nodes: Sequence[Node]) -> tuple[Place, ...]:
    return reading.places(codec.from_plain(Allocation, json.loads(launch)["allocation"]), nodes)


def _told_apart(found: Iterable[Stretch]) -> list[Stretch]:
    """Without those that took no time, or differ in nothing from the one before."""
    kept: list[Stretch] = []
    for each in found:
        if kept and kept[-1].since == each.since:
            kept.pop()
        if not kept or replace(each, since=kept[-1].since) != kept[-1]:
            kept.append(each)
    return kept
