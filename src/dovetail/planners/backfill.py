"""Strict order with holes filled: a later job may start if it delays no reservation.

`easy` reserves for the first job that does not fit: running jobs end, as believed, on a draft
until it finds a place, and a later job may start if it ends before then or does not touch that
place. `conservative` reserves for every job looked at; its reservations count devices and do not
say which, as classical conservative backfilling does. Behind the first reservation at most `depth`
waiting jobs are looked at.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from functools import partial
from heapq import heapify, heappop, heappush, merge
from typing import Any, NamedTuple

from dovetail.core.draft import Draft, Option
from dovetail.core.lanes import Lane
from dovetail.core.view import Amounts
from dovetail.model.allocation import Allocation, allocation_of
from dovetail.model.job import Job
from dovetail.model.plan import Action, Start
from dovetail.planners.terms import Terms
from dovetail.planners.walk import Head, Walk, following, give

End = tuple[float, int, Allocation]
"""(time, job, what it will let go of)"""


NEVER = float("inf")


class Reservation(NamedTuple):
    """From `start` on these devices are promised."""

    start: float
    allocation: Allocation


class Backfill(Walk):
    """Plans one domain in strict order and fills the holes that reservations leave."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        #: believed ends of running jobs, sorted
        self.ends: list[End] = []
        self._end_of: dict[int, End] = {}

    def started(self, job: Job, now: float) -> None:
        """Note when the job is believed to end."""
        super().started(job, now)
        self._expect_end(job, now)

    def left(self, job: Job, now: float, done: bool) -> None:
        """Forget when the job was believed to end."""
        self._forget_end(job)
        super().left(job, now, done)

    def changed(self, job: Job, now: float) -> None:
        """What we believe of a job changed, and perhaps its end."""
        super().changed(job, now)
        if self._forget_end(job):
            self._expect_end(job, now)
            self.capacity_changed()

    def restore(self, state: dict[str, Any], jobs: Sequence[Job]) -> None:
        """Rebuild the index, believed ends included."""
        super().restore(state, jobs)
        for job in self.view.running.values():
            self._expect_end(job, self.view.now)

    def _expect_end(self, job: Job, now: float) -> None:
        assert job.virtual is not None
        end = self._end_of[job.spec.id] = (now + job.time_left(now), job.spec.id, job.virtual)
        insort(self.ends, end)

    def _forget_end(self, job: Job) -> bool:
        end = self._end_of.pop(job.spec.id, None)
        if end is not None:
            del self.ends[bisect_left(self.ends, end)]
        return end is not None

    def in_order(
        self, heads: list[Head], closed: set[Lane], given: dict[str, Amounts]
    ) -> Iterator[Head]:
        """Waiting jobs of all lanes that are not closed, in order, as it is with what was given."""
        heapify(heads)
        while heads:
            prefix, entry, lane, rest = heappop(heads)
            if given and prefix < (grown := self._prefix(entry, lane, given)):
                heappush(heads, (grown, entry, lane, rest))
                continue
            yield prefix, entry, lane, rest
            after = following(lane, rest) if lane not in closed else None
            if after is not None:
                heappush(heads, (self._prefix(after[0], lane, given), *after))


class Easy(Backfill):
    """One reservation, of certain devices, for the first job that does not fit."""

    def walk(self, heads: list[Head]) -> list[Action]:
        """Admit in order; after the first misfit, only what does not hurt the reservation."""
        draft, timeline = Draft(self.view.cluster, self.placement), Timeline(self)
        promise: Reservation | None = None
        starts: list[Action] = []
        closed: set[Lane] = set()
        given: dict[str, Amounts] = {}
        terms = self.terms(draft, heads)
        fixed = terms is None or terms.room is None
        behind, all_need_devices = 0, fixed and all(lane.size for lane in self.open_lanes)
        for head in self.in_order(heads, closed, given):
            entry, lane = head[1:3]
            if terms is not None and not terms.allows(*head):
                closed.add(lane)
                continue
            behind += promise is not None
            job, found = entry[3], None
            if terms is not None:
                found = terms.find(partial(timeline.harmless, promise, job))
                if self._reopened(terms, closed, timeline):
                    promise = None
            elif lane.size <= draft.cluster.idle:
                found = draft.find(lane.options)
            if found is None:
                # Jobs with the same request fit no better.
                closed.add(lane)
            elif promise is not None:
                choices = lane.options if terms is None else terms.choices
                found = timeline.without_harm(found, promise, draft, choices, job)
            if found is not None:
                starts.append(Start(entry[2], found, "backfills" if promise else "fits"))
                draft.take(found)
                if terms is not None:
                    terms.admit(found)
                timeline.add_running(self.view.now + self.view.time_left(job), found)
                if self._ranked:
                    give(given, lane.tenant, found)
            elif promise is None and self.reserves_for(job):
                promise = timeline.reserve(lane)
            if behind == self.ordering.depth or (not draft.cluster.idle and all_need_devices):
                break
        return starts if terms is None else terms.actions(starts)

    def _reopened(self, terms: Terms, closed: set[Lane], timeline: Timeline) -> bool:
        """Was somebody displaced? Then every lane is worth a look again, promises included."""
        displaced = len(terms.gone) > len(timeline.gone)
        if displaced:
            timeline.gone.update({number: job for number, (job, _) in terms.gone.items()})
            closed.clear()
        return displaced

    def reserves_for(self, job: Job) -> bool:
        """Is this job, which does not fit, one that others must not delay?"""
        return True


class Conservative(Backfill):
    """A reservation, of a number of devices, for every job that is looked at."""

    def walk(self, heads: list[Head]) -> list[Action]:
        """Give each job its earliest slot; those whose slot is now may start."""
        view, draft = self.view, Draft(self.view.cluster, self.placement)
        profile = Profile(view.now, view.cluster.idle, self.ends)
        starts: list[Action] = []
        behind, all_need_devices = 0, all(lane.size for lane in self.open_lanes)
        allowance = self.allowance()
        for _, entry, lane, _ in self.in_order(heads, set(), {}):
            choices = lane.options if allowance is None else allowance.choices(lane)
            if not choices:
                continue
            behind += profile.promises > 0
            length, found = view.time_left(entry[3]), None
            start = profile.earliest(lane.size, length, view.now)
            if start == view.now:
                found = draft.find(choices)
                if found is None:
                    start = profile.earliest(lane.size, length, profile.times[1])
            if found is not None:
                starts.append(Start(entry[2], found, "backfills" if profile.promises else "fits"))
                draft.take(found)
                if allowance is not None:
                    allowance.add(lane, (found.milli_gpus, found.cpu, found.memory))
            else:
                profile.promises += 1
            profile.reserve(start, start + length, lane.size)
            if behind == self.ordering.depth or (not draft.cluster.idle and all_need_devices):
                break
        return starts


class Profile:
    """How many devices are free from each moment on: a step function of time."""

    def __init__(self, now: float, idle: int, ends: list[End]) -> None:
        self.times, self.free = [now], [idle]
        #: reservations for later than now
        self.promises = 0
        for end, _, allocation in ends:
            idle += allocation.gpus
            if end <= self.times[-1]:
                self.free[-1] = idle
            else:
                self.times.append(end)
                self.free.append(idle)
        self.times.append(NEVER)
        self.free.append(idle)

    def earliest(self, size: int, length: float, after: float) -> float:
        """The first moment from which that many devices stay free for that long."""
        begin = bisect_left(self.times, after)
        for index in range(begin, len(self.times)):
            if self.times[index] >= self.times[begin] + length:
                break
            if self.free[index] < size:
                begin = index + 1
        return self.times[begin]

    def reserve(self, start: float, end: float, size: int) -> None:
        """Take devices away between two moments."""
        if start == NEVER:
            return
        first, last = self._cut(start), self._cut(end)
        for index in range(first, last):
            self.free[index] -= size

    def _cut(self, time: float) -> int:
        index = bisect_left(self.times, time)
        if self.times[index] != time:
            self.times.insert(index, time)
            self.free.insert(index, self.free[index - 1])
        return index


class Timeline:
    """When which devices are believed to become free."""

    def __init__(self, planner: Backfill) -> None:
        self._planner = planner
        self._now = planner.view.now
        #: jobs this plan starts, and those it displaces
        self._started: list[End] = []
        self.gone: dict[int, Job] = {}

    def add_running(self, end: float, allocation: Allocation) -> None:
        """A job this plan starts, and when it is believed to end."""
        insort(self._started, (end, -len(self._started) - 1, allocation))

    def without_harm(
        self,
        found: Allocation,
        promise: Reservation,
        draft: Draft,
        choices: Sequence[Option],
        job: Job,
    ) -> Allocation | None:
        """The place found, or another one, that the reservation does not need by then."""
        if self.harmless(promise, job, found):
            return found
        # Its first choice collides: try again with what is promised out of the way.
        narrow = draft.fork()
        _occupy(narrow, promise.allocation)
        return narrow.find(choices)

    def harmless(self, promise: Reservation | None, job: Job, found: Allocation) -> bool:
        """Is a job gone from there by the time it was promised, or not where it was?"""
        if promise is None or not _overlap(found, promise.allocation):
            return True
        return self._now + self._planner.view.time_left(job) <= promise.start

    def reserve(self, lane: Lane) -> Reservation | None:
        """The earliest place, as running jobs end one after the other."""
        cluster = self._planner.view.cluster.copy()
        for job in self.gone.values():
            assert job.virtual is not None
            cluster.release(job.virtual)
        for _, _, allocation in self._started:
            cluster.take(allocation)
        draft = Draft(cluster, self._planner.placement)
        for end, number, allocation in merge(self._planner.ends, self._started):
            if number in self.gone:
                continue
            cluster.release(allocation)
            found = draft.find(lane.options) if lane.size <= cluster.idle else None
            if found is not None:
                # What has outlived its believed end may end any moment.
                return Reservation(max(end, self._now), found)
        return None


def _occupy(draft: Draft, allocation: Allocation) -> None:
    """Take what is still free of an allocation, device by device."""
    for part in allocation.parts:
        free = draft.cluster.masks[part.node] & part.devices
        cpu = max(0, min(part.cpu, draft.cluster.cpu[part.node]))
        memory = max(0, min(part.memory, draft.cluster.memory[part.node]))
        piece = part._replace(devices=free, cpu=cpu, memory=memory)
        draft.take(allocation_of((piece,)))


def _overlap(one: Allocation, other: Allocation) -> bool:
    held = {part.node: part for part in one.parts}
    return any(
        part.node in held and (part.devices & held[part.node].devices or part.cpu or part.memory)
        for part in other.parts
    )
