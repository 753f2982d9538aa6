"""The whole cluster for a screen: one small row a job and a node, and what changed since.

Rows say what everybody may see: no commands, no environment, no reasons of ends. What is on a node
follows from the places of jobs, so a change of a job is all that a screen needs to be told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dovetail.controller import reading
from dovetail.controller.loop import Controller
from dovetail.model.event import Event, Freed, Held, NodeDown, NodeDraining, NodeUp, Submitted
from dovetail.model.live import Description, Machine
from dovetail.model.plan import Action, Plan, Reject

Row = dict[str, Any]

MOST = 500
"""Jobs in one message of changes; beyond it a screen looks at everything anew."""

TOUCHES_NODES = (NodeDown, NodeUp, NodeDraining, Held, Freed)


def board(controller: Controller) -> Row:
    """Everything there is."""
    return {
        "at": controller.time.wall(),
        "nodes": [node_row(node) for node in reading.machines(controller)],
        "jobs": [job_row(job) for job in reading.listed(controller)],
    }


def changes(controller: Controller, events: Sequence[Event], plan: Plan) -> Row | None:
    """What one decision changed; None: nothing that a screen shows."""
    ended = {job.id: str(job.status) for job, _ in controller.scheduler.ended}
    touched = {*_touched(events, plan), *ended}
    nodes = any(isinstance(event, TOUCHES_NODES) for event in events)
    if not touched and not nodes:
        return None
    told: Row = {"at": controller.time.wall(), "total": len(controller.roster)}
    if len(touched) > MOST:
        return {**told, "reload": True}
    gone = sorted(number for number in touched if number not in controller.roster)
    told["jobs"] = [
        job_row(reading.describe(controller, number, reasons=False))
        for number in sorted(touched)
        if number in controller.roster
    ]
    told["ended"] = [{"id": number, "state": ended.get(number, "")} for number in gone]
    told["did"] = [_deed(action) for action in plan.actions]
    if nodes:
        told["nodes"] = [node_row(node) for node in reading.machines(controller)]
    return told


def _touched(events: Iterable[Event], plan: Plan) -> Iterable[int]:
    for event in events:
        number = event.spec.id if isinstance(event, Submitted) else getattr(event, "job", None)
        if number is not None:
            yield number
    for action in plan.actions:
        yield action.job


def _deed(action: Action) -> Row:
    # Why a job can never run is its owner's business.
    cause = "" if isinstance(action, Reject) else action.cause
    return {"job": action.job, "did": type(action).__name__.lower(), "cause": cause}


def job_row(job: Description) -> Row:
    """One job; what is empty is left out."""
    row = {
        "id": job.id,
        "name": job.name,
        "owner": job.owner,
        "state": job.state,
        "gpus": job.gpus,
        "submitted": job.submitted,
        "started": job.started,
        "attempts": job.attempts,
        "array": job.array,
        "index": job.index,
        "places": [[on.node, on.devices, on.cpu, on.memory, on.share] for on in job.places],
    }
    if job.progress is not None:
        row["progress"] = [job.progress.steps, job.progress.total, job.progress.rate]
    return {name: value for name, value in row.items() if value not in (None, [])}


def node_row(node: Machine) -> Row:
    """One node, without what is on it."""
    return {
        "name": node.name,
        "type": node.type,
        "gpus": node.gpus,
        "state": node.state,
        "cpu": node.cpu,
        "memory": node.memory,
        "foreign": node.foreign,
    }
