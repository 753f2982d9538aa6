"""Two decisions in one plan: the ordering says who runs, a joint allocator how much and where.

Wraps the planner of any ordering, which admits by number of GPUs. Jobs that are gangs of whole GPUs
become claims; the allocator gives each its CPU, memory and nodes, and resizes or moves those who
run already. Jobs of other shapes (shares, groups, no GPUs, amounts above their share) keep fixed
amounts, for which claims are lowered towards their floors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from heapq import heapify
from itertools import takewhile
from typing import Any

from dovetail.core.claims import Claim, Curve, Curves, Piece, Point, Seating
from dovetail.core.draft import Draft, Grant, Option, options
from dovetail.core.lanes import Lane
from dovetail.core.naming import names_of
from dovetail.core.protocols import JointAllocator
from dovetail.model.allocation import Part
from dovetail.model.job import Job
from dovetail.model.plan import Action, Reason, Start, Stop
from dovetail.model.request import Request
from dovetail.planners.arranging import Arranging
from dovetail.planners.reasons import (
    after,
    ahead_of,
    among_many,
    amounts,
    describe,
    found,
    missing_amounts,
    next_to_end,
    not_ours,
    short_of_amounts,
    why_impossible,
)
from dovetail.planners.walk import Walk

MOST_PASSED = 3
"""Requests that cannot be arranged and are passed over in one plan."""
SHORT = frozenset({"devices", "fragmentation", "rank"})
"""What it says where they are not."""
MOST_WEIGHED = 20
"""Running jobs that are weighed one by one when somebody asks who is in the way."""
BY_NUMBER = frozenset({"next", "order", "patience"})
"""What the ordering says of jobs for which enough GPUs are free."""


class Arranged:
    """Plans one domain: `inner` admits, `allocator` arranges."""

    #: asked to advance in every batch: that is when settled nodes are forgotten
    timed = True

    def __init__(
        self, inner: Walk, allocator: JointAllocator, curves: Curves, fallback: Grant
    ) -> None:
        self.inner = inner
        self.allocator = allocator
        self.curves = curves
        self.cluster = inner.view.cluster
        self.seating = Seating(len(self.cluster.nodes))
        #: what jobs get that cannot be claims
        self.fallback = fallback
        #: why requests of fixed amounts can never be met; None: they can
        self._refusals: dict[Request, str | None] = {}
        #: nodes on which somebody left since the last plan
        self.touched: set[int] = set()

    # ---- who holds what ----------------------------------------------------------------------

    def submitted(self, job: Job, now: float) -> str | None:
        """A new job waits, unless it can never run."""
        job.lane = self.inner.lane(job)
        request = job.spec.request
        if job.lane.refusal is None and self.curve(job, self._first_node(job)) is None:
            if request not in self._refusals:
                self._refusals[request] = self._refusal(request)
            if self._refusals[request] is not None:
                return self._refusals[request]
        return self.inner.submitted(job, now)

    def _first_node(self, job: Job) -> int:
        asks = job.lane.options[0].asks
        return int(asks[0].start)

    def _refusal(self, request: Request) -> str | None:
        """Why fixed amounts can never be met here, or None."""
        empty = self.cluster.emptied()
        choices = options(request, empty, self.fallback)
        if Draft(empty, self.inner.placement).find(choices) is not None:
            return None
        return why_impossible(request, empty)

    def waits(self, job: Job, now: float) -> None:
        """A job waits again."""
        self.inner.waits(job, now)

    def started(self, job: Job, now: float) -> None:
        """A job holds what was arranged for it."""
        self.inner.started(job, now)
        self._seat(job)

    def left(self, job: Job, now: float, done: bool) -> None:
        """A job is gone: those who sat beside it may have more."""
        if job.virtual is not None:
            self.touched.update(part.node for part in job.virtual.parts)
            self.seating.leave(job.spec.id)
        self.inner.left(job, now, done)

    def changed(self, job: Job, now: float) -> None:
        """What we believe of a job changed."""
        self.inner.changed(job, now)

    def resized(self, job: Job, now: float) -> None:
        """A job has other amounts on its devices."""
        self.seating.leave(job.spec.id)
        self._seat(job)
        self.inner.resized(job, now)

    def _seat(self, job: Job) -> None:
        assert job.virtual is not None
        parts = job.virtual.parts
        curve = self.curve(job, parts[0].node)
        if curve is not None:
            fixed = not self.cluster.capabilities(parts[0].node).resize_in_place
            if fixed or _eased(curve, parts[0]):
                curve = self._lasting(curve, parts[0])
            held = tuple(
                [
                    Piece(part.node, part.devices.bit_count(), part.cpu, part.memory)
                    for part in parts
                ]
            )
            self.seating.seat(Claim(job.spec.id, job.virtual.gpus, curve, held))

    def _lasting(self, curve: Curve, part: Part) -> Curve:
        """The curve of a job that keeps what it has for as long as it runs."""
        gpus = part.devices.bit_count()
        return self.curves.flat(Point(part.cpu // gpus, part.memory // gpus, curve.fair.rate))

    def curve(self, job: Job, node: int) -> Curve | None:
        """The curve of a job that takes part in arrangements, or None."""
        choices: tuple[Option, ...] = job.lane.options
        request = job.spec.request
        group = request.alternatives[0].groups[0]
        if not choices[0].plain or group.each.gpus != 1 or group.least < group.most:
            return None
        if len(request.alternatives) > 1 or len(request.modes) > 1:
            # Which of them it is to be was decided with the place.
            return None
        return self.curves.of(job.spec.model, node, group.each)

    def capacity_changed(self) -> None:
        """Nodes or holdings changed: look at all of them."""
        self.touched.update(range(len(self.cluster.nodes)))
        self.inner.capacity_changed()

    # ---- deciding ----------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return self.inner.waiting

    def advance(self, now: float) -> None:
        """What was touched before the last plan has been settled by it."""
        self.touched.clear()
        self.inner.advance(now)

    def settled(self) -> None:
        """The plan was carried out."""
        self.inner.settled()

    def wake_at(self) -> float | None:
        """When the ordering wants to be asked again."""
        return self.inner.wake_at() if self.inner.timed else None

    def plan(self, now: float) -> list[Action]:
        """The actions wanted now; a job that cannot be arranged is a misfit like any other."""
        self.inner.rank_running(now)
        misfit = None
        with ExitStack() as passed:
            for _ in range(MOST_PASSED):
                wanted = self.inner.plan(now)
                if not wanted and not self.touched:
                    return []
                made = self._arrange(wanted)
                if self._all_start(wanted, made):
                    return made
                misfit = self._misfit(wanted, made)
                if not self._passes(misfit):
                    break
                passed.enter_context(self._without(misfit))
        return self._arrange(self._without_stops(self._before(misfit, wanted)))

    def _misfit(self, wanted: list[Action], made: list[Action]) -> Job:
        """The first in order who cannot be arranged beside those before it."""
        started = {action.job for action in made if type(action) is Start}
        starts = [action for action in wanted if type(action) is Start]
        fit = next(place for place, each in enumerate(starts) if each.job not in started)
        if len(starts) < len(wanted):
            return self._in_vain([self.inner.view.jobs[each.job] for each in starts[fit:]], started)
        too_many = fit + 1
        if self._all_start(wanted[:too_many], self._arrange(wanted[:too_many])):
            # Amounts for it went to one behind it: that one is the misfit.
            fit, too_many = too_many, len(wanted)
        while too_many - fit > 1:
            some = (fit + too_many) // 2
            if self._all_start(wanted[:some], self._arrange(wanted[:some])):
                fit = some
            else:
                too_many = some
        return self.inner.view.jobs[wanted[fit].job]

    def _in_vain(self, jobs: list[Job], started: set[int]) -> Job:
        """The same where others are stopped and each try takes long: told without trying.

        Fixed amounts are placed first, so they may be what a claim before them lacks.
        """
        first, *behind = jobs
        if self.curve(first, self._first_node(first)) is None:
            return first
        late = [each for each in behind if each.id in started]
        fixed = [each for each in late if self.curve(each, self._first_node(each)) is None]
        return fixed[-1] if fixed else first

    def _all_start(self, wanted: list[Action], made: list[Action]) -> bool:
        started = {action.job for action in made if type(action) is Start}
        return all(action.job in started for action in wanted if type(action) is Start)

    def _passes(self, job: Job) -> bool:
        """May others go before a job that does not fit? One that is alone has nobody behind it."""
        ordering = self.inner.ordering
        past = (ordering.skip or ordering.preempt) and ordering.backfill == "none"
        return past and not job.impatient and job.entry is not None

    def _before(self, misfit: Job | None, wanted: list[Action]) -> list[Action]:
        """What of it may happen although one of them does not fit: in a strict order what is first.

        Elsewhere GPUs for it are left alone, and the others may start.
        """
        ordering = self.inner.ordering
        if misfit is None or ordering.skip or ordering.preempt or ordering.backfill != "none":
            return wanted
        return list(takewhile(lambda action: action.job != misfit.id, wanted))

    @contextmanager
    def _without(self, job: Job) -> Iterator[None]:
        """Plan as if a waiting job, and its like behind it, were not there."""
        lane: Lane = job.lane
        waiting, dead, model = lane.waiting, lane.dead, job.spec.model
        others = [
            entry
            for entry in waiting
            if entry[3].entry is entry and (entry < job.entry or entry[3].spec.model != model)
        ]
        heapify(others)
        lane.waiting, lane.dead = others, 0
        try:
            yield
        finally:
            lane.waiting, lane.dead = waiting, dead

    def _without_stops(self, wanted: list[Action]) -> list[Action]:
        """The starts that need nobody's quota given back: nobody is stopped in vain."""
        allowance, starts = self.inner.allowance(), [each for each in wanted if type(each) is Start]
        if allowance is None:
            return list(starts)
        kept: list[Action] = []
        for start in starts:
            lane, found = self.inner.view.jobs[start.job].lane, start.allocation
            amounts = (found.milli_gpus, found.cpu, found.memory)
            if allowance.binding(lane, amounts) is None:
                allowance.add(lane, amounts)
                kept.append(start)
        return kept

    def follow(self, now: float, actions: Sequence[Action]) -> None:
        """Bring ranks to where `plan` would have brought them."""
        self.inner.rank_running(now)
        self.inner.follow(now, actions)

    def _arrange(self, wanted: list[Action]) -> list[Action]:
        """The ordering's wishes with amounts and nodes, as far as they can be had."""
        arranging = Arranging(self, wanted)
        arranging.place_fixed()
        return arranging.actions()

    # ---- passing on --------------------------------------------------------------------------

    def explain(self, job: Job, now: float) -> Reason:
        """Why the job waits: where it fits by number of GPUs, perhaps for what goes with them."""
        reason = self.inner.explain(job, now)
        if reason.cause not in BY_NUMBER and reason.cause not in SHORT:
            return reason
        about = (id(self), id(job.lane), job.spec.model)
        ends = found((*about, "ends"), lambda: self._ends(job))
        if reason.cause in SHORT:
            return self._to_end(job, reason, ends) if ends else reason
        return self._amounts(job, ends) if ends != [] else reason

    def _amounts(self, job: Job, ends: list[Job] | None) -> Reason:
        """GPUs are free, but not what goes with them until these jobs end; None: whoever ends."""
        if ends is None:
            request = job.spec.request
            choices = options(request, self.cluster, self.fallback)
            return not_ours(self.inner, choices, describe(request))
        text = f"{self._missing(job)}, even if others gave back what they can"
        return self._to_end(job, Reason("cpu or memory", text), ends)

    def _to_end(self, job: Job, reason: Reason, ends: list[Job]) -> Reason:
        blockers = tuple(each.id for each in ends)
        unblock = f"the end of {names_of(self.inner.view.jobs, blockers)}"
        reason = reason._replace(blockers=blockers, unblock=unblock)
        return reason if among_many() else after(self.inner, reason, self._ahead(job, ends))

    def _ahead(self, job: Job, ends: list[Job]) -> list[int]:
        """Who would have what becomes free with these ends before it does."""
        draft = self._draft_without(ends)
        stops: list[Action] = [Stop(each.id) for each in ends]
        starts: list[Action] = []
        for other in [*ahead_of(self.inner, job)[:MOST_WEIGHED], job]:
            place = draft.find(other.lane.options)
            tried = starts if place is None else [*starts, Start(other.id, place)]
            fits = place is not None and self._all_start(tried, self._arrange([*stops, *tried]))
            if other is job:
                return [] if fits else [start.job for start in starts]
            if fits and place is not None:
                draft.take(place)
                starts = tried
        return []

    def _ends(self, job: Job) -> list[Job] | None:
        """Whose ends would let it start, the next to end first; None: not even if all ended."""
        running, ends = next_to_end(self.inner), list[Job]()
        while not self._starts_without(job, ends):
            if len(ends) == len(running):
                return None
            ends = running[: max(1, 2 * len(ends))]
        for other in ends[:MOST_WEIGHED][::-1]:
            fewer = [each for each in ends if each is not other]
            if self._starts_without(job, fewer):
                ends = fewer
        return ends

    def _starts_without(self, job: Job, gone: list[Job]) -> bool:
        """Could it be arranged if these were gone?"""
        place = self._draft_without(gone).find(job.lane.options)
        if place is None:
            return False
        start = Start(job.id, place)
        return self._all_start([start], self._arrange([*(Stop(each.id) for each in gone), start]))

    def _draft_without(self, gone: list[Job]) -> Draft:
        draft = Draft(self.cluster, self.inner.placement)
        for other in gone:
            assert other.virtual is not None
            draft.release(other.virtual)
        return draft

    def _missing(self, job: Job) -> str:
        """The sentence for what is not there beside free GPUs."""
        request = job.spec.request
        choices = options(request, self.cluster, self.fallback)
        lowered = Draft(Arranging(self, ()).lowered(), self.inner.placement)
        return short_of_amounts(request, *(missing_amounts(lowered, choices) or amounts(choices)))

    def report(self) -> dict[str, Any]:
        """Figures of the ordering."""
        return self.inner.report()

    def snapshot(self) -> Any:
        """The ordering's state; the seating is in the jobs."""
        return self.inner.snapshot()

    def restore(self, state: Any, jobs: Sequence[Job]) -> None:
        """Rebuild the index and the seating."""
        self.inner.restore(state, jobs)
        for job in jobs:
            if job.virtual is not None:
                self._seat(job)


def _eased(curve: Curve, part: Part) -> bool:
    """Does a job that has no choice hold something else than its share?"""
    least, gpus = curve.points[0], part.devices.bit_count()
    return curve.flat and (part.cpu, part.memory) != (gpus * least.cpu, gpus * least.memory)
