"""The whole cluster for a screen: one small row a job and a node, and what changed since.

Rows say what everybody may see: no commands, no environment, no reasons of ends. What is on a node
follows from the places of jobs, so a change of a job is all that a screen needs to be told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dovetail.controller import reading
from dovetail.controller.journal import Entry
from dovetail.controller.loop import Controller
from dovetail.controller.roster import Live
from dovetail.model.event import Freed, Held, NodeDown, NodeDraining, NodeUp, Submitted
from dovetail.model.live import Machine
from dovetail.model.plan import EMPTY, Action, Reject
from dovetail.model.request import WHOLE

Row = dict[str, Any]

MOST = 500
"""Jobs in one message of changes; beyond it a screen looks at everything anew."""

TOUCHES_NODES = (NodeDown, NodeUp, NodeDraining, Held, Freed)


def board(controller: Controller) -> Row:
    """Everything there is."""
    return {
        "at": controller.time.wall(),
        "nodes": [node_row(node) for node in reading.machines(controller)],
        "jobs": [job_row(controller, live) for live in controller.roster.values()],
    }


def changes(controller: Controller, entry: Entry) -> Row | None:
    """What one turn changed; None: nothing that a screen shows."""
    numbers = set(touched(entry))
    nodes = any(isinstance(event, TOUCHES_NODES) for event in entry.events)
    if not numbers and not nodes:
        return None
    told: Row = {"at": entry.wall, "total": len(controller.roster)}
    if len(numbers) > MOST:
        return {**told, "reload": True}
    found = [(number, controller.roster.get(number)) for number in sorted(numbers)]
    told["jobs"] = [job_row(controller, live) for _, live in found if live is not None]
    told["ended"] = [
        {"id": number, "state": entry.jobs.get(number, {}).get("state", "")}
        for number, live in found
        if live is None
    ]
    told["did"] = [_deed(action) for action in (entry.plan or EMPTY).actions]
    if nodes:
        told["nodes"] = [node_row(node) for node in reading.machines(controller)]
    return told


def touched(entry: Entry) -> Iterable[int]:
    """The jobs that a turn was about, some of them twice."""
    yield from (row["id"] for row in entry.new_jobs)
    yield from entry.jobs
    for event in entry.events:
        number = event.spec.id if isinstance(event, Submitted) else getattr(event, "job", None)
        if number is not None:
            yield number
    for action in (entry.plan or EMPTY).actions:
        yield action.job


def _deed(action: Action) -> Row:
    # Why a job can never run is its owner's business.
    cause = "" if isinstance(action, Reject) else action.cause
    return {"job": action.job, "did": type(action).__name__.lower(), "cause": cause}


def job_row(controller: Controller, live: Live) -> Row:
    """One job; what is empty is left out. Made directly: there are thousands of them."""
    row: Row = {
        "id": live.id,
        "name": live.name,
        "owner": live.submission.owner,
        "state": reading.state_of(controller, live),
        "gpus": live.submission.request.milli_gpus / WHOLE,
        "submitted": live.submitted,
    }
    if live.attempts:
        row["started"], row["attempts"] = live.started, live.attempts
    if live.member is not None:
        row["array"], row["index"] = live.member.array, live.member.index
    if live.progress is not None:
        row["progress"] = [live.progress.steps, live.progress.total, live.progress.rate]
    job = controller.scheduler.jobs.get(live.id)
    if job is not None and job.allocation is not None:
        held = reading.places(job.allocation, controller.scheduler.cluster.nodes)
        row["places"] = [[on.node, on.devices, on.cpu, on.memory, on.share] for on in held]
    return row


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
