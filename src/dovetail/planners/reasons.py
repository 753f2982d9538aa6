"""Why a job waits or can never run, in one sentence that names one binding cause.

Answers on demand from the planner's own index; never part of a decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from dovetail.core.draft import Draft
from dovetail.core.lanes import Lane
from dovetail.model.cluster import Cluster
from dovetail.model.job import Job
from dovetail.model.plan import Reason
from dovetail.model.request import WHOLE, Request

if TYPE_CHECKING:
    from dovetail.planners.walk import Walk

Found = TypeVar("Found")


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
    cores = f"{cpu / 1000:g} core{'' if cpu <= 1000 else 's'}"
    extras = [cores] * bool(cpu) + [f"{memory / 1024:g} GiB"] * bool(memory)
    if not milli:
        return " and ".join(extras) or "no GPU"
    return f"{text} with {' and '.join(extras)}" if extras else text


def short_of_amounts(request: Request) -> str:
    """What is said when it is not GPUs that are missing."""
    if not request.milli_gpus:
        return f"needs {describe(request)}; no node has that much CPU and memory free"
    return f"needs {describe(request)}; enough GPUs are free, but not with that much CPU and memory"


_FINDINGS: ContextVar[dict[Any, Any] | None] = ContextVar("findings", default=None)
"""What was found out about planners and lanes and holds until something is decided."""


@contextmanager
def sharing() -> Iterator[None]:
    """Ask about many jobs in here, and nothing else: what they have in common is found out once."""
    token = _FINDINGS.set({})
    try:
        yield
    finally:
        _FINDINGS.reset(token)


def _found(about: Any, find: Callable[[], Found]) -> Found:
    known = _FINDINGS.get()
    if known is None:
        return find()
    if about not in known:
        known[about] = find()
    found: Found = known[about]
    return found


def explain_waiting(walk: Walk, job: Job) -> Reason:
    """Find the one binding cause: order, what is not ours, devices, their places, or amounts."""
    lane = walk.lane(job)
    short = _found((id(walk), id(lane)), lambda: _short_of(walk, lane, job.spec.request))
    return _held_by_order(walk, job) if short is None else short


def _short_of(walk: Walk, lane: Lane, request: Request) -> Reason | None:
    """What is missing for each job of a lane; None: nothing is."""
    cluster = walk.view.cluster
    if Draft(cluster, walk.placement).find(lane.options) is not None:
        return None
    asked = describe(request)
    running = next_to_end(walk)
    ends = _until_it_fits(walk, lane, running)
    if ends is None:
        return _not_ours(walk, lane, asked)
    if lane.size > cluster.idle:
        text = f"needs {asked}; {cluster.idle} of {cluster.gpus} GPUs are free"
        missing = lane.size - cluster.idle
        unblock = f"{missing} more free GPU{'s' * (missing > 1)}"
        return Reason("devices", text, _enough(running, missing), unblock)
    unblock = f"the end of {names_of(walk, ends)}"
    if _fits_without_cpu_and_memory(walk, lane):
        return Reason("cpu or memory", short_of_amounts(request), ends, unblock)
    if 0 < request.milli_gpus < WHOLE:
        text = f"needs {asked}; no GPU has that much left"
        return Reason("devices", text, ends, unblock)
    text = f"needs {asked}; {cluster.idle} GPUs are free, but not where it could use them"
    return Reason("fragmentation", text, ends, unblock)


def _until_it_fits(walk: Walk, lane: Lane, running: list[Job]) -> tuple[int, ...] | None:
    """The running jobs, of those in order, that must end before a job of the lane fits.

    Of many it may be a few more than needed: not after each of thousands a place is looked for.
    """
    draft, ended, look = Draft(walk.view.cluster, walk.placement), [], 1
    for other in running:
        assert other.virtual is not None
        draft.release(other.virtual)
        ended.append(other.id)
        if len(ended) >= look or len(ended) == len(running):
            look = max(look + 1, look * 5 // 4)
            if lane.size <= draft.cluster.idle and draft.find(lane.options) is not None:
                return tuple(ended)
    return None


def _not_ours(walk: Walk, lane: Lane, asked: str) -> Reason:
    """It would not fit even if all our jobs were gone."""
    cluster = walk.view.cluster
    empty = cluster.emptied()
    for node, why in cluster.closed.items():
        empty.close(node, why)
    if lane.refusal is not None:
        return Reason("impossible", lane.refusal, (), "another request or other machines")
    if Draft(empty, walk.placement).find(lane.options) is None:
        names = " and ".join(cluster.nodes[node].name for node in sorted(cluster.closed)[:3])
        text = f"needs {asked}; the open nodes cannot give that even when empty"
        return Reason("closed nodes", text, (), f"{names} back in service")
    text = f"needs {asked}; others use so much that it would not fit even if no job of ours ran"
    return Reason("others", text, (), "others using less")


def _held_by_order(walk: Walk, job: Job) -> Reason:
    allowance = walk.allowance()
    ahead = [
        entry
        for lane in walk.lanes
        if allowance is None or allowance.choices(lane)
        for entry in lane.in_order()
        if entry < job.entry and entry[3] is not job
    ]
    first = min(ahead)[3] if ahead else None
    if first is None or (walk.ordering.skip and not first.impatient):
        # Who looks past misfits lets nobody wait for the order alone.
        return Reason("next", "it fits and starts with the next decision", (), "the next decision")
    name = first.spec.name
    if first.impatient:
        text = f"it fits, but {name} has lost its patience and would be delayed"
        unblock = f"the start of {name}, or a longer patience"
        return Reason("patience", text, (first.spec.id,), unblock)
    text = f"it fits, but {name} comes first and does not fit yet"
    blockers = tuple(entry[2] for entry in sorted(ahead)[:5])
    return Reason("order", text, blockers, f"the start of {name}, or skip=true")


def next_to_end(walk: Walk) -> list[Job]:
    """Running jobs, those believed to end first first."""
    return _found(id(walk), lambda: _by_end(walk))


def _by_end(walk: Walk) -> list[Job]:
    now = walk.view.now
    left = [(job.time_left(now), job.id, job) for job in walk.view.running.values()]
    return [job for _, _, job in sorted(left)]


def names_of(walk: Walk, jobs: Sequence[int]) -> str:
    """Jobs by name: `a`, `a and b`, `a, b and 3 more`."""
    names = [walk.view.jobs[number].spec.name for number in jobs[:3]]
    if len(jobs) > len(names):
        return f"{', '.join(names[:2])} and {len(jobs) - 2} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _enough(running: list[Job], missing: int) -> tuple[int, ...]:
    """As many of these jobs, in order, as together free what is missing."""
    blockers = []
    for other in running:
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
