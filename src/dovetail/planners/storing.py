"""An index as plain values and back: keys stay as they were, lanes are rebuilt from the jobs."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from heapq import heapify
from itertools import chain
from typing import TYPE_CHECKING, Any

from dovetail.core.lanes import Entry
from dovetail.model.job import Job, Status

if TYPE_CHECKING:
    from dovetail.planners.index import Index


def snapshot(index: Index) -> dict[str, Any]:
    """Everything a rebuilt index needs besides the jobs; all running jobs must be listed."""
    entries = chain(*index.ranked.values(), *(lane.waiting for lane in index.lanes))
    keys = {str(entry[2]): entry[0] for entry in entries if entry[3].entry is entry}
    turns = [(at, number) for at, number, entry in index._turns if entry[3].entry is entry]
    return {
        "now": index.view.now,
        "grid": index._grid,
        "everything": index._everything,
        "keys": keys,
        "turns": turns,
        "ordering": index.ordering.snapshot(),
    }


def restore(index: Index, state: dict[str, Any], jobs: Sequence[Job]) -> None:
    """Rebuild lanes from stored keys, so that a fork continues identically."""
    index.view.now = state["now"]
    index._grid = state["grid"]
    index._everything = state["everything"]
    index.ordering.restore(state["ordering"])
    entries: dict[int, Entry] = {}
    for job in jobs:
        key = state["keys"].get(str(job.spec.id))
        # Keys that went through JSON come back as lists.
        _reinstate(index, job, tuple(key) if isinstance(key, list) else key)
        if job.entry is not None:
            entries[job.spec.id] = job.entry
    # A fork may have been told to forget a job.
    known = [(at, number) for at, number in state["turns"] if number in entries]
    index._turns = [(at, number, entries[number]) for at, number in known]
    heapify(index._turns)


def _reinstate(index: Index, job: Job, key: Any) -> None:
    lane = index.lane(job)
    if job.withheld or (job.status is not Status.WAITING and job.virtual is None):
        # Withheld, stopping or suspended: it comes back through `waits`.
        return
    index.view.jobs[job.spec.id] = job
    if job.status is Status.WAITING:
        index.waiting += 1
        index.timed = index._drifts
        lane.push(job, key)
        index._open[lane] = None
        return
    if index._by_tenant:
        index.view.hold(job, 1)
    if key is not None:
        entry = job.entry = (key, job.spec.submit, job.spec.id, job)
        insort(lane.running, entry)
