"""The default planner: walk the order, admit what fits, place it; look past misfits or stop.

Lane heads are taken in order, each placed on what is free. In a batch only lanes that changed are
looked at, unless capacity grew or ranks moved; a walk whose result would be the present state
therefore costs almost nothing. `planners.preemptive` and `planners.backfill` build on it.

`plan` may complete the index (a seat for a newcomer, a list of who runs) but changes no job, no
capacity and no later answer: asked twice, it says the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Any

from dovetail.core.draft import Draft
from dovetail.core.lanes import Entry, Lane
from dovetail.core.view import Amounts
from dovetail.model.allocation import Allocation
from dovetail.model.job import Job
from dovetail.model.plan import Action, Reason, Start
from dovetail.planners.index import Index
from dovetail.planners.reasons import explain_waiting
from dovetail.planners.terms import Terms

if TYPE_CHECKING:
    from dovetail.planners.displacing import Room
    from dovetail.planners.quotas import Allowance

_new = tuple.__new__
"""Makes a named tuple in half the time of calling its class; for the hot path only."""

Head = tuple[Any, Entry, Lane, Iterator[Entry] | None]
"""(tenant's rank, entry, its lane, the rest of the lane once it is being walked)"""


class Walk(Index):
    """Plans one domain by walking the order of its waiting jobs."""

    #: may some running jobs not be displaced although their nodes are open?
    guards = False

    def plan(self, now: float) -> list[Action]:
        """The actions that turn the present state into the walk's result."""
        self.view.now = now
        if not self.waiting:
            return []
        lone = self._lone
        if lone is not None:
            found = self._glance.find(lone.lane.options)
            if found is not None:
                return [_new(Start, (lone.id, found, "fits", ()))]
            self._seat()
        heads = self._heads()
        return self.walk(heads) if heads else []

    def _heads(self) -> list[Head]:
        """The first waiting job of every lane worth looking at, in no order."""
        if self._everything or (self._fresh and not self._selective):
            lanes = self._open
        else:
            lanes = self._fresh
        if self._ranked:
            if not self._by_tenant:
                self.view.look_what_is_free()
            heads: list[Head] = [
                (self._prefix(lane.waiting[0], lane, {}), lane.waiting[0], lane, None)
                for lane in lanes
                if lane.waiting
            ]
        else:
            heads = [(0.0, lane.waiting[0], lane, None) for lane in lanes if lane.waiting]
        return heads

    def _prefix(self, entry: Entry, lane: Lane, given: dict[str, Amounts]) -> Any:
        """What is compared before keys, when this plan has given that much to tenants."""
        if self._by_tenant:
            return self.ordering.prefix(lane.tenant, self.view, given)
        if self._ranked:
            return self.ordering.score(entry[3], self.view, _total(given))
        return 0.0

    def walk(self, heads: list[Head]) -> list[Action]:
        """Admit heads in order; a misfit closes its lane, or ends a strict walk."""
        strict, ranked = not self.ordering.skip, self._ranked
        draft = Draft(self.view.cluster, self.placement)
        terms = self.terms(draft, heads)
        if terms is None and not strict:
            # Nothing comes free in this walk: most heads need not even be put in order.
            idle = draft.cluster.idle
            heads = [head for head in heads if head[2].size <= idle]
        heapify(heads)
        starts: list[Action] = []
        given: dict[str, Amounts] = {}
        while heads:
            prefix, entry, lane, rest = heappop(heads)
            if ranked and given and prefix < (grown := self._prefix(entry, lane, given)):
                heappush(heads, (grown, entry, lane, rest))
                continue
            found = None
            if terms is not None:
                if not terms.allows(prefix, entry, lane, rest):
                    continue
                found = terms.find()
            elif lane.size <= draft.cluster.idle:
                found = draft.find(lane.options)
            if found is None:
                if strict:
                    break
                continue
            starts.append(Start(entry[2], found))
            if terms is not None:
                terms.admit(found)
            if ranked:
                give(given, lane.tenant, found)
            after = following(lane, rest)
            if after is not None:
                heappush(heads, (self._prefix(after[0], lane, given), *after))
            if heads:
                draft.take(found)
        return starts if terms is None else terms.actions(starts)

    def terms(self, draft: Draft, heads: list[Head]) -> Terms | None:
        """What a walk has to mind besides what is free; None: nothing."""
        allowance, room = self.allowance(), self.room(draft)
        if allowance is None and room is None:
            return None
        return Terms(self, draft, heads, allowance, room)

    def allowance(self) -> Allowance | None:
        """What quotas leave; None: there are none."""
        return None

    def room(self, draft: Draft) -> Room | None:
        """Who may be displaced for others; None: nobody."""
        return None

    def displaceable(self, job: Job) -> bool:
        """May a running job be displaced now? Where nothing can start, that would free nothing."""
        cluster = self.view.cluster
        if not cluster.closed and not cluster.limited:
            return True
        assert job.virtual is not None
        nodes = [part.node for part in job.virtual.parts]
        overdrawn = any(cluster.cpu[node] < 0 or cluster.memory[node] < 0 for node in nodes)
        return not overdrawn and not any(node in cluster.closed for node in nodes)

    def key(self, job: Job) -> Any:
        """The ordering's key of a job as of now."""
        return self._key(job, self.view)

    def rank(self, entry: Entry, lane: Lane) -> Any:
        """What is compared before keys, as of now."""
        return self._prefix(entry, lane, {})

    def wake_at(self) -> float | None:
        """The next jump of a key or re-ranking, if anybody waits for it."""
        if not self.waiting:
            return None
        if self._watches:
            if self._unlisted:
                self.list_running()
            turns = self._turns
            while turns and turns[0][2][3].entry is not turns[0][2]:
                heappop(turns)
        wake = self._turns[0][0] if self._turns else None
        pause = self._pause
        if pause is not None:
            tick = (self._grid + 1) * pause
            wake = tick if wake is None else min(wake, tick)
        return wake

    def explain(self, job: Job, now: float) -> Reason:
        """The one binding cause for a job's waiting."""
        self._seat()
        return explain_waiting(self, job)

    def report(self) -> dict[str, Any]:
        """What the ordering tells about itself."""
        return self.ordering.report()


def give(given: dict[str, Amounts], tenant: str, found: Allocation) -> None:
    """Add an allocation to what a plan gives a tenant."""
    gpus, cpu, memory = given.get(tenant, (0, 0, 0))
    given[tenant] = (gpus + found.milli_gpus, cpu + found.cpu, memory + found.memory)


def _total(given: dict[str, Amounts]) -> Amounts:
    gpus, cpu, memory = map(sum, zip((0, 0, 0), *given.values(), strict=True))
    return gpus, cpu, memory


def following(
    lane: Lane, rest: Iterator[Entry] | None
) -> tuple[Entry, Lane, Iterator[Entry]] | None:
    """The next waiting job of a lane whose head was admitted."""
    if rest is None:
        if len(lane.waiting) == 1:
            return None
        if not lane.dead:
            # The second is a child of the first: no iteration needed unless it is admitted too.
            return min(lane.waiting[1:3]), lane, islice(lane.in_order(), 2, None)
        rest = islice(lane.in_order(), 1, None)
    entry = next(rest, None)
    return None if entry is None else (entry, lane, rest)
