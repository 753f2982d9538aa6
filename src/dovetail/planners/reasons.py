"""Why a job waits or can never run, in one sentence that names one binding cause.

Answers on demand from the planner's own index; never part of a decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dovetail.core.draft import Draft
from dovetail.core.lanes import Lane
from dovetail.model.cluster import Cluster
from dovetail.model.job import Job
from dovetail.model.plan import Reason
from dovetail.model.request import Request

if TYPE_CHECKING:
    from dovetail.planners.walk import Walk


def why_impossible(request: Request, empty: Cluster) -> str:
    """The sentence for a request that does not fit even on the empty cluster."""
    asked = describe(request)
    types = request.alternatives[0].types
    if types and not any(pool.type in types for pool in empty.pools):
        have = ", ".join(pool.type for pool in empty.pools)
        return f"asks for GPU type {' or '.join(types)}; the cluster has {have}"
    if request.gpus > empty.gpus:
        return f"asks for {asked}; the cluster has {empty.gpus} GPUs"
    return f"asks for {asked}; no nodes of the cluster fit that even when empty"


def describe(request: Request) -> str:
    """A request in words: `8 GPUs`, `0.5 GPU`, `2 GPUs with 16 cores`."""
    milli = request.milli_gpus
    text = f"{milli / 1000:g} GPU{'' if milli <= 1000 else 's'}"
    groups = request.alternatives[0].groups
    cpu = sum(group.most * (group.each.cpu or 0) for group in groups)
    memory = sum(group.most * (group.each.memory or 0) for group in groups)
    extras = [f"{cpu / 1000:g} cores"] * bool(cpu) + [f"{memory / 1024:g} GiB"] * bool(memory)
    return f"{text} with {' and '.join(extras)}" if extras else text


def explain_waiting(walk: Walk, job: Job) -> Reason:
    """Find the one binding cause: order, devices, fragmentation, or CPU and memory."""
    cluster = walk.view.cluster
    lane = walk.lane(job)
    if Draft(cluster, walk.placement).find(lane.options) is not None:
        return _held_by_order(walk, job)
    asked = describe(job.spec.request)
    if lane.size > cluster.idle:
        text = f"needs {asked}; {cluster.idle} of {cluster.gpus} GPUs are free"
        missing = lane.size - cluster.idle
        unblock = f"{missing} more free GPU{'s' * (missing > 1)}"
        return Reason("devices", text, _next_to_end(walk, missing), unblock)
    if _fits_without_cpu_and_memory(walk, lane):
        text = f"needs {asked}; enough GPUs are free, but not with that much CPU and memory"
        return Reason("cpu or memory", text, (), "less CPU or memory per GPU")
    text = f"needs {asked}; {cluster.idle} GPUs are free, but not where it could use them"
    return Reason("fragmentation", text, (), "free GPUs closer together")


def _held_by_order(walk: Walk, job: Job) -> Reason:
    ahead = [
        entry
        for lane in walk.lanes
        for entry in lane.in_order()
        if entry < job.entry and entry[3] is not job
    ]
    if not ahead:
        return Reason("next", "it fits and starts with the next decision")
    first = min(ahead)[3]
    if first.impatient:
        text = f"it fits, but {first.spec.name} has lost its patience and would be delayed"
        return Reason("patience", text, (first.spec.id,), "a longer patience")
    text = f"it fits, but {first.spec.name} comes first and does not fit yet"
    return Reason("order", text, tuple(entry[2] for entry in sorted(ahead)[:5]), "skip=true")


def next_to_end(walk: Walk) -> list[Job]:
    """Running jobs, those believed to end first first."""
    running = walk.view.running.values()
    return sorted(running, key=lambda other: (other.time_left(walk.view.now), other.spec.id))


def names_of(walk: Walk, jobs: Sequence[int]) -> str:
    """Jobs by name: `a`, `a and b`, `a, b and 3 more`."""
    names = [walk.view.jobs[number].spec.name for number in jobs[:3]]
    if len(jobs) > len(names):
        return f"{', '.join(names[:2])} and {len(jobs) - 2} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _next_to_end(walk: Walk, missing: int) -> tuple[int, ...]:
    """The running jobs believed to end first that together free what is missing."""
    blockers = []
    for other in next_to_end(walk):
        if missing <= 0:
            break
        blockers.append(other.spec.id)
        missing -= other.virtual.gpus if other.virtual else 0
    return tuple(blockers)


def _fits_without_cpu_and_memory(walk: Walk, lane: Lane) -> bool:
    bare = [
        replace(option, asks=tuple(replace(ask, cpu=0, memory=0) for ask in option.asks))
        for option in lane.options
    ]
    return Draft(walk.view.cluster, walk.placement).find(bare) is not None
