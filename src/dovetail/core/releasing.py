"""What stopping jobs still hold in fact, and what that means for those who shall have it next."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.model.allocation import Allocation, Difference, classify
from dovetail.model.cluster import Cluster
from dovetail.model.job import Job
from dovetail.model.plan import Action, Change, Start, Stop

Releasing = Mapping[int, Allocation]
"""By job: what it has not let go of yet."""


def still_held(job: Job, releasing: Releasing, limited: bool) -> frozenset[int]:
    """Stopping jobs that have not let go of something this start needs."""
    assert job.allocation is not None
    wanted: dict[int, int] = {}
    for part in job.allocation.parts:
        wanted[part.node] = wanted.get(part.node, 0) | part.devices
    return frozenset(
        other
        for other, held in releasing.items()
        if any(
            part.node in wanted and (limited or part.devices & wanted[part.node])
            for part in held.parts
        )
    )


def without_growth(job: Job, wanted: Allocation, releasing: Releasing) -> Allocation:
    """What of a resize can be had at once: no more, while a job beside it is stopping."""
    assert job.allocation is not None and job.virtual is not None
    busy = {part.node for held in releasing.values() for part in held.parts}
    if not any(part.node in busy for part in job.allocation.parts):
        return wanted
    parts = [
        new._replace(cpu=min(old.cpu, new.cpu), memory=min(old.memory, new.memory))
        for old, new in zip(job.virtual.parts, wanted.parts, strict=True)
    ]
    return wanted._replace(parts=tuple(parts))


def in_place(job: Job, virtual: Allocation) -> Allocation:
    """Other amounts on the devices that a job has, in physical terms."""
    assert job.allocation is not None and job.virtual is not None
    return on_same(job.virtual, job.allocation, virtual)


def on_same(virtual: Allocation, physical: Allocation, changed: Allocation) -> Allocation:
    """Other amounts on the same devices of a view, on the hardware behind them."""
    pairs = zip(virtual.parts, physical.parts, strict=True)
    places = {(mine.node, mine.devices): held for mine, held in pairs}
    parts = []
    for new in changed.parts:
        held = places[new.node, new.devices]
        parts.append(new._replace(node=held.node, devices=held.devices))
    return changed._replace(parts=tuple(parts))


def beside(job: Job, residual: Allocation) -> Allocation:
    """What a job keeps on its machines while it is suspended, in physical terms."""
    assert job.allocation is not None and job.virtual is not None
    pairs = zip(job.virtual.parts, job.allocation.parts, strict=True)
    machines = {mine.node: held.node for mine, held in pairs}
    parts = tuple(part._replace(node=machines[part.node]) for part in residual.parts)
    return residual._replace(parts=parts)


def confirmable(cluster: Cluster, job: Job | None, action: Action) -> tuple[Action, ...]:
    """Where stops take time, a move becomes a stop: the job starts again from the queue.

    One whose start is still reserved is reserved elsewhere at once, unless others use more there
    than there is: nothing new starts beside them.
    """
    if isinstance(action, Change) and job is not None:
        if job.awaits:
            stop = Stop(action.job, action.cause)
            again = Start(action.job, action.allocation, action.cause)
            return (stop,) if _overdrawn(job.allocation, cluster) else (stop, again)
        same = (Difference.NONE, Difference.IN_PLACE)
        if job.virtual and classify(job.virtual, action.allocation) not in same:
            return (Stop(action.job, action.cause),)
    return (action,)


def _overdrawn(allocation: Allocation | None, cluster: Cluster) -> bool:
    nodes = [part.node for part in allocation.parts] if allocation is not None else []
    return any(cluster.cpu[node] < 0 or cluster.memory[node] < 0 for node in nodes)
