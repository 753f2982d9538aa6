"""What stopping jobs still hold in fact, and what that means for those who shall have it next."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.model.allocation import Allocation
from dovetail.model.job import Job

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


def shrinks(job: Job, wanted: Allocation) -> bool:
    """Does a resize ask for no more of anything? Then it is legal even if others drew more."""
    held = job.virtual
    assert held is not None
    return wanted.cpu <= held.cpu and wanted.memory <= held.memory


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
