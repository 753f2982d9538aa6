"""Two decisions in one plan: the ordering says who runs, a joint allocator how much and where.

Wraps the planner of any ordering, which admits by number of GPUs. Jobs that are gangs of whole GPUs
become claims; the allocator gives each its CPU, memory and nodes, and resizes or moves those who
run already. Jobs of other shapes (shares, groups, no GPUs, amounts above their share) keep fixed
amounts, for which claims are lowered towards their floors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

from dovetail.core.claims import Claim, Curve, Curves, Occasion, Piece, Seating
from dovetail.core.draft import Draft, Grant, Option, options
from dovetail.core.protocols import JointAllocator
from dovetail.model.allocation import Allocation, Part, allocation_of
from dovetail.model.cluster import Cluster, Pool
from dovetail.model.job import Job
from dovetail.model.plan import Action, Change, Reason, Start, Stop
from dovetail.planners.walk import Walk

RESIZED = "shares of its node were handed out anew"
MOVED = "everybody together is faster this way"


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
        #: nodes on which somebody left since the last plan
        self._touched: set[int] = set()

    # ---- who holds what ----------------------------------------------------------------------

    def submitted(self, job: Job, now: float) -> str | None:
        """A new job waits, unless it can never run."""
        return self.inner.submitted(job, now)

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
            self._touched.update(part.node for part in job.virtual.parts)
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
        curve = self._curve(job, parts[0].node)
        if curve is not None:
            held = tuple(
                [
                    Piece(part.node, part.devices.bit_count(), part.cpu, part.memory)
                    for part in parts
                ]
            )
            self.seating.seat(Claim(job.spec.id, job.virtual.gpus, curve, held))

    def _curve(self, job: Job, node: int) -> Curve | None:
        """The curve of a job that takes part in arrangements, or None."""
        choices: tuple[Option, ...] = job.lane.options
        if not choices[0].plain or choices[0].asks[0].gpus != 1 or choices[0].mode:
            return None
        return self.curves.of(job.spec.model, node, job.spec.request.alternatives[0].groups[0].each)

    def capacity_changed(self) -> None:
        """Nodes or holdings changed: look at all of them."""
        self._touched.update(range(len(self.cluster.nodes)))
        self.inner.capacity_changed()

    # ---- deciding ----------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return self.inner.waiting

    def advance(self, now: float) -> None:
        """What was touched before the last plan has been settled by it."""
        self._touched.clear()
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
        if not wanted and not self._touched:
            return []
        made = self._arrange(wanted)
        if made is None:
            # A job that insists on its amounts cannot be placed: nobody is stopped in vain.
            made = self._arrange([action for action in wanted if type(action) is Start], True)
            assert made is not None
        return made

    def follow(self, now: float, actions: Sequence[Action]) -> None:
        """Bring ranks to where `plan` would have brought them."""
        self.inner.rank_running(now)
        self.inner.follow(now, actions)

    def _arrange(self, wanted: list[Action], leave_out: bool = False) -> list[Action] | None:
        """The ordering's wishes with amounts and nodes; None: somebody insists in vain."""
        drafting = Drafting(self, wanted)
        if not drafting.place_fixed() and not leave_out:
            stops = any(type(action) is not Start for action in wanted)
            if stops:
                return None
        return drafting.actions()

    # ---- passing on --------------------------------------------------------------------------

    def explain(self, job: Job, now: float) -> Reason:
        """Why the job waits."""
        return self.inner.explain(job, now)

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


class Drafting:
    """One plan being made: fixed jobs first, then claims, pool by pool."""

    def __init__(self, planner: Arranged, wanted: Iterable[Action]) -> None:
        self.planner = planner
        self.cluster = planner.cluster
        jobs = planner.inner.view.jobs
        self.passed = [action for action in wanted if type(action) is Stop]
        #: (job, what the ordering proposed) for those who come and for those it moves
        self.coming = [
            (jobs[action.job], action.allocation, type(action))
            for action in wanted
            if isinstance(action, Start | Change)
        ]
        self.going = {action.job for action in self.passed}
        self.going |= {job.spec.id for job, _, kind in self.coming if kind is Change}
        self.fixed: list[Action] = []
        self.claims: list[tuple[Claim, Allocation]] = []

    def place_fixed(self) -> bool:
        """Place those who are no claims, on a cluster where claims are at their floors."""
        others: list[tuple[Job, Allocation, type]] = []
        for job, proposed, kind in self.coming:
            curve = self.planner._curve(job, proposed.parts[0].node)
            if curve is None:
                others.append((job, proposed, kind))
            else:
                told = () if self.planner.inner.placement.relaxed else _pieces(proposed)
                claim = Claim(job.spec.id, job.spec.request.gpus, curve, told)
                self.claims.append((claim, proposed))
        if not others and not self._stopped_fixed():
            return True
        self.cluster = self._without(self.going)
        placed = [self._place(*each) for each in others]
        return all(placed)

    def _stopped_fixed(self) -> bool:
        return any(number not in self.planner.seating.claims for number in self.going)

    def _without(self, going: set[int]) -> Cluster:
        """The cluster once those who are no claims and leave have left."""
        twin = self.planner.cluster.copy()
        for number in going - self.planner.seating.claims.keys():
            held = self.planner.inner.view.jobs[number].virtual
            assert held is not None
            twin.release(held)
        return twin

    def _place(self, job: Job, proposed: Allocation, kind: type) -> bool:
        """Find a place for fixed amounts and take it from what claims may share."""
        choices = options(job.spec.request, self.cluster, self.planner.fallback)
        found = Draft(self._lowered(), self.planner.inner.placement).find(choices)
        if found is None:
            return False
        bare = tuple(part._replace(cpu=0, memory=0) for part in found.parts)
        self.cluster.take(found._replace(parts=bare))
        for part in found.parts:
            self.cluster.cpu[part.node] -= part.cpu
            self.cluster.memory[part.node] -= part.memory
        make = Start if kind is Start else Change
        self.fixed.append(make(job.spec.id, found))
        return True

    def _lowered(self) -> Cluster:
        """The draft with every claim that stays at its floor and those who leave gone."""
        twin, seating = self.cluster.copy(), self.planner.seating
        for node in range(len(twin.nodes)):
            twin.cpu[node] += seating.cpu[node] - seating.floor_cpu[node]
            twin.memory[node] += seating.memory[node] - seating.floor_memory[node]
        for number in self.going & seating.claims.keys():
            claim = seating.claims[number]
            least = claim.curve.points[0]
            held = self.planner.inner.view.jobs[number].virtual
            assert held is not None
            parts = tuple(
                part._replace(
                    cpu=part.devices.bit_count() * least.cpu,
                    memory=part.devices.bit_count() * least.memory,
                )
                for part in held.parts
            )
            twin.release(held._replace(parts=parts))
        return twin

    def actions(self) -> list[Action]:
        """Stops, changes of those who stay, and starts of those who come."""
        arranged: dict[int, tuple[Piece, ...]] = {}
        seating = self.planner.seating
        for pool in self.cluster.pools:
            touched = self._touched(pool)
            mine = [
                claim
                for claim, proposed in self.claims
                if pool.start <= proposed.parts[0].node < pool.stop
            ]
            going = [
                number
                for number in self.going
                if number in seating.claims
                and pool.start <= seating.claims[number].held[0].node < pool.stop
            ]
            if mine or going or touched:
                curves = self.planner.curves
                occasion = Occasion(
                    self.cluster,
                    seating,
                    mine,
                    going,
                    touched,
                    pool.start,
                    pool.stop,
                    self._queue(),
                    curves.span_penalty,
                    self._move_price(pool),
                )
                arranged.update(self.planner.allocator.arrange(occasion))
        return self._as_actions(arranged)

    def _move_price(self, pool: Pool) -> float:
        """Seconds a move costs; where it takes a stop that must be confirmed, nobody moves."""
        able, costs = pool.capabilities, self.planner.inner.view.costs
        if not able.move or able.start_latency is not None:
            return inf
        return costs.restart if costs.move is None else costs.move

    def _queue(self) -> bool:
        """Will more jobs wait than run after this plan?"""
        starts = sum(kind is Start for _, _, kind in self.coming)
        waiting = self.planner.waiting + len(self.passed) - starts
        return waiting > len(self.planner.seating.claims)

    def _touched(self, pool: Pool) -> list[int]:
        nodes = {node for node in self.planner._touched if pool.start <= node < pool.stop}
        for action in self.fixed:
            assert isinstance(action, Start | Change)
            nodes |= {
                part.node for part in action.allocation.parts if pool.start <= part.node < pool.stop
            }
        return sorted(nodes)

    def _as_actions(self, arranged: dict[int, tuple[Piece, ...]]) -> list[Action]:
        jobs, seating = self.planner.inner.view.jobs, self.planner.seating
        proposals = {claim.job: proposed for claim, proposed in self.claims}
        stays: list[Action] = []
        homeless: list[int] = []
        masks: dict[int, int] = {}
        for number in self.going & seating.claims.keys():
            self._free(masks, jobs[number])
        for number, pieces in arranged.items():
            if number in proposals:
                homeless.append(number)
                continue
            held = jobs[number].virtual
            assert held is not None
            if _places(pieces) == _places(seating.claims[number].held):
                parts = tuple(
                    [
                        part._replace(cpu=piece.cpu, memory=piece.memory)
                        for part, piece in zip(held.parts, pieces, strict=True)
                    ]
                )
                stays.append(Change(number, held._replace(parts=parts), RESIZED))
            else:
                self._free(masks, jobs[number])
                homeless.append(number)
        moves: list[Action] = []
        starts: list[Action] = []
        for number in homeless:
            allocation = self._allocation(masks, arranged[number], proposals.get(number))
            if number in proposals and number not in self.going:
                starts.append(Start(number, allocation))
            else:
                moves.append(Change(number, allocation, MOVED))
        return [*self.passed, *stays, *moves, *self.fixed, *starts]

    def _free(self, masks: dict[int, int], job: Job) -> None:
        assert job.virtual is not None
        for part in job.virtual.parts:
            before = masks.get(part.node, self.cluster.masks[part.node])
            masks[part.node] = before | part.devices

    def _allocation(
        self, masks: dict[int, int], pieces: tuple[Piece, ...], proposed: Allocation | None
    ) -> Allocation:
        """Devices for pieces: those the placement proposed if it decides, else the lowest free."""
        relaxed = self.planner.inner.placement.relaxed
        parts = []
        for index, (node, gpus, cpu, memory) in enumerate(pieces):
            mask = masks.get(node, self.cluster.masks[node])
            if proposed is not None and not relaxed:
                devices = proposed.parts[index].devices
            else:
                devices = _lowest(mask, gpus)
            masks[node] = mask & ~devices
            parts.append(Part(node, devices, cpu, memory))
        return allocation_of(tuple(parts))


def _pieces(allocation: Allocation) -> tuple[Piece, ...]:
    return tuple(Piece(part.node, part.devices.bit_count(), 0, 0) for part in allocation.parts)


def _places(pieces: tuple[Piece, ...]) -> list[tuple[int, int]]:
    return [(piece.node, piece.gpus) for piece in pieces]


def _lowest(mask: int, count: int) -> int:
    devices = 0
    for _ in range(count):
        low = mask & -mask
        devices |= low
        mask ^= low
    return devices
