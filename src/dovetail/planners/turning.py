"""Keys that change with time alone: asked for again when their moment has come.

Knows the index of one domain from inside, and decides nothing.
"""

from __future__ import annotations

from heapq import heappop
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dovetail.planners.index import Index


def advance(index: Index, now: float) -> None:
    """Time has come this far: keys that jumped or drifted by then are brought up to date."""
    index.view.now = now
    pause, turns = index._pause, index._turns
    if pause is not None and int(now // pause) != index._grid:
        index._grid = int(now // pause)
        index.capacity_changed()
        _rekey(index, now)
    while turns and turns[0][0] <= now:
        entry = heappop(turns)[2]
        job = entry[3]
        if job.entry is entry:
            index.ordering.turned(job, index.view)
            index.changed(job, now)


def _rekey(index: Index, now: float) -> None:
    if index.ordering.rekeys == "none":
        return
    for running in index.ranked.values():
        for entry in running[:]:
            index.changed(entry[3], now)
    for lane in index.lanes if index.ordering.rekeys == "all" else ():
        for entry in list(lane.in_order()):
            index.changed(entry[3], now)
