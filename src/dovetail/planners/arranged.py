"""Two decisions in one plan: the ordering says who runs, a joint allocator how much and where.

Wraps the planner of any ordering, which admits by number of GPUs. Jobs that are gangs of whole GPUs
become claims; the allocator gives each its CPU, memory and nodes, and resizes or moves those who
run already. Jobs of other shapes (shares, groups, no GPUs, amounts above their share) keep fixed
amounts, for which claims are lowered towards their floors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail.core.claims import Claim, Curve, Curves, Piece, Point, Seating
from dovetail.core.draft import Draft, Grant, Option, options
from dovetail.core.protocols import JointAllocator
from dovetail.model.allocation import Part
from dovetail.model.job import Job
from dovetail.model.plan import Action, Reason, Start
from dovetail.model.request import Request
from dovetail.planners.arranging import Arranging
from dovetail.planners.reasons import short_of_amounts, why_impossible
from dovetail.planners.walk import Walk


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
        """The actions wanted now."""
        self.inner.rank_running(now)
        wanted = self.inner.plan(now)
        if not wanted and not self.touched:
            return []
        made = self._arrange(wanted)
        if made is None or self._in_vain(wanted, made):
            # A job that was to displace others cannot be placed: nobody is stopped in vain.
            made = self._arrange(self._without_stops(wanted), True)
            assert made is not None
        return made

    def _in_vain(self, wanted: list[Action], made: list[Action]) -> bool:
        """Is somebody stopped or moved for others of whom not all start?"""
        if all(type(action) is Start for action in wanted):
            return False
        started = {action.job for action in made if type(action) is Start}
        return any(type(action) is Start and action.job not in started for action in wanted)

    def _without_stops(self, wanted: list[Action]) -> list[Action]:
        """The starts that need nobody's quota to be given back."""
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

    def _arrange(self, wanted: list[Action], leave_out: bool = False) -> list[Action] | None:
        """The ordering's wishes with amounts and nodes; None: somebody insists in vain."""
        arranging = Arranging(self, wanted)
        if not arranging.place_fixed() and not leave_out:
            stops = any(type(action) is not Start for action in wanted)
            if stops:
                return None
        return arranging.actions()

    # ---- passing on --------------------------------------------------------------------------

    def explain(self, job: Job, now: float) -> Reason:
        """Why the job waits."""
        reason = self.inner.explain(job, now)
        if reason.cause != "next" or self._starts(job, now):
            return reason
        text = f"{short_of_amounts(job.spec.request)}, even if all others had their least"
        return Reason("cpu or memory", text, (), "an end beside it, or less CPU or memory")

    def _starts(self, job: Job, now: float) -> bool:
        """Does the next plan start it?"""
        return any(type(each) is Start and each.job == job.id for each in self.plan(now))

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
