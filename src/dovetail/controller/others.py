"""What others use on our machines, told to the scheduler only when it lasts.

Somebody who looks in for a moment must not make jobs wait, and a figure that wavers must not make a
batch every few seconds: devices count after two looks in a row, memory in steps. What our own jobs
hold is never foreign.
"""

from __future__ import annotations

from typing import NamedTuple

from dovetail.core.scheduler import Scheduler
from dovetail.model.allocation import NOTHING, Allocation, Part, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.event import Event, Freed, Held

OTHERS = "others"
"""Whose holding it is."""
STEP, SHARE = 512, 0.02
"""MiB, and part of a node's memory: changes below the larger of them are not told."""


class Seen(NamedTuple):
    """What others use on one node."""

    devices: int = 0
    #: MiB
    memory: int = 0


class Others:
    """Remembers the last look and what was told."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._told = _by_node(scheduler.holdings.get(OTHERS, NOTHING))
        #: a first look alone says nothing: what was told before holds until the second
        self._last = self._told

    def look(self, found: Allocation, scheduler: Scheduler) -> list[Event]:
        """The events that bring the scheduler up to date; mostly none."""
        seen, last, told, cluster = _by_node(found), self._last, self._told, scheduler.cluster
        self._last, new = seen, {}
        nothing = Seen()
        for node in sorted({*seen, *last, *told}):
            before = told.get(node, nothing)
            ours = ~(int(cluster.masks[node]) | before.devices)
            pair = (seen.get(node, nothing), last.get(node, nothing))
            lasting = _lasting(pair, before, _step(cluster, node))
            new[node] = lasting._replace(devices=lasting.devices & ~ours)
        new = {node: use for node, use in new.items() if use != nothing}
        if new == told:
            return []
        self._told = new
        parts = tuple(Part(node, use.devices, 0, use.memory) for node, use in new.items())
        events: list[Event] = [Freed(OTHERS)] if told else []
        return [*events, Held(OTHERS, allocation_of(parts))] if parts else events


def _lasting(looks: tuple[Seen, Seen], told: Seen, step: int) -> Seen:
    """What two looks in a row agree on, as a change of what was told."""
    one, other = looks
    devices = told.devices & (one.devices | other.devices) | one.devices & other.devices
    low, high = sorted((one.memory, other.memory))
    if low >= told.memory + step:
        return Seen(devices, low)
    if high <= told.memory - step or not high:
        return Seen(devices, high)
    return Seen(devices, told.memory)


def _step(cluster: Cluster, node: int) -> int:
    return max(STEP, int(SHARE * (cluster.nodes[node].memory or 0)))


def _by_node(allocation: Allocation) -> dict[int, Seen]:
    found: dict[int, Seen] = {}
    for part in allocation.parts:
        before = found.get(part.node, Seen())
        found[part.node] = Seen(before.devices | part.devices, before.memory + part.memory)
    return found
