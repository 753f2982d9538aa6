"""Strict order with holes filled: a later job may start if it delays no reservation.

`easy` reserves for the first job that does not fit; `conservative` for every job looked at. A
reservation is made by letting running jobs end, as believed, on a draft until the job finds a
place. A later job may start now if it is believed to end before each reservation that its devices
would hurt. At most `depth` waiting jobs are looked at.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from dovetail.core.draft import Draft
from dovetail.core.lanes import Lane
from dovetail.model.allocation import Allocation, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.job import Job
from dovetail.model.plan import Action, Start
from dovetail.planners.walk import Head, Walk, following


class Reservation(NamedTuple):
    """From `start` to `end` these devices are promised."""

    start: float
    end: float
    allocation: Allocation


class Backfill(Walk):
    """Plans one domain in strict order and fills the holes that reservations leave."""

    def walk(self, heads: list[Head]) -> list[Action]:
        """Admit in order; after the first misfit, only what hurts no reservation."""
        draft = Draft(self.view.cluster, self.placement)
        timeline = Timeline(self)
        conservative = self.ordering.backfill == "conservative"
        starts: list[Action] = []
        looked_at = 0
        while heads and looked_at < self.ordering.depth and draft.cluster.idle:
            _, entry, lane, rest = heappop(heads)
            looked_at += 1
            job = entry[3]
            found = draft.find(lane.options) if lane.size <= draft.cluster.idle else None
            fits = found is not None
            if found is not None:
                found = timeline.without_harm(found, draft, lane, job)
            if found is not None:
                cause = "backfills" if timeline.reservations else "fits"
                starts.append(Start(entry[2], found, cause))
                draft.take(found)
                timeline.add_running(self.view.now + self.view.time_left(job), found)
            elif conservative or not timeline.reservations:
                timeline.reserve(lane, job)
            # A lane that fits nowhere now is of no more use, except for making reservations.
            after = following(lane, rest) if fits or conservative else None
            if after is not None:
                heappush(heads, (0.0, *after))
        return starts


class Timeline:
    """When devices are believed to become free, and what is promised of them."""

    def __init__(self, planner: Walk) -> None:
        self._planner = planner
        self._now = planner.view.now
        self._ends: list[tuple[float, int, Allocation]] = []
        for job in planner.view.running.values():
            assert job.virtual is not None
            end = self._now + job.time_left(self._now)
            self._ends.append((end, job.spec.id, job.virtual))
        self._ends.sort()
        self._cluster = planner.view.cluster
        self.reservations: list[Reservation] = []
        self._started: list[Allocation] = []

    def add_running(self, end: float, allocation: Allocation) -> None:
        """A job this plan starts, and when it is believed to end."""
        insort(self._ends, (end, -len(self._ends) - 1, allocation))
        self._started.append(allocation)

    def without_harm(
        self, found: Allocation, draft: Draft, lane: Lane, job: Job
    ) -> Allocation | None:
        """The place found, or another one, that no reservation needs while the job runs."""
        end = self._now + self._planner.view.time_left(job)
        hurt = [promise for promise in self.reservations if promise.start < end]
        if not hurt or not any(_overlap(found, promise.allocation) for promise in hurt):
            return found
        # Its first choice collides: try again with what is promised out of the way.
        narrow = draft.fork()
        _occupy(narrow, [promise.allocation for promise in hurt])
        return narrow.find(lane.options)

    def reserve(self, lane: Lane, job: Job) -> None:
        """Promise the earliest place, given what ends and what is promised already."""
        length = self._planner.view.time_left(job)
        for time, cluster in self._states():
            draft = Draft(cluster, self._planner.placement)
            _occupy(draft, self._promised(time, time + length))
            found = draft.find(lane.options)
            if found is not None:
                self.reservations.append(Reservation(time, time + length, found))
                return

    def _promised(self, start: float, end: float) -> list[Allocation]:
        return [r.allocation for r in self.reservations if r.start < end and r.end > start]

    def _states(self) -> Iterator[tuple[float, Cluster]]:
        """The cluster now and after each believed end, without promises."""
        cluster = self._cluster.copy()
        for allocation in self._started:
            cluster.take(allocation)
        yield self._now, cluster
        marks = sorted({r.end for r in self.reservations})
        for end, _, allocation in self._ends:
            while marks and marks[0] < end:
                yield marks.pop(0), cluster
            cluster.release(allocation)
            yield end, cluster
        for mark in marks:
            yield mark, cluster


def _occupy(draft: Draft, allocations: list[Allocation]) -> None:
    """Take what is still free of the allocations, device by device."""
    for allocation in allocations:
        for part in allocation.parts:
            free = draft.cluster.masks[part.node] & part.devices
            cpu = min(part.cpu, draft.cluster.cpu[part.node])
            memory = min(part.memory, draft.cluster.memory[part.node])
            piece = part._replace(devices=free, cpu=cpu, memory=memory)
            draft.take(allocation_of((piece,)))


def _overlap(one: Allocation, other: Allocation) -> bool:
    held = {part.node: part for part in one.parts}
    return any(
        part.node in held and (part.devices & held[part.node].devices or part.cpu or part.memory)
        for part in other.parts
    )
