"""One plan of a joint allocator being made: fixed jobs first, then claims, pool by pool.

Takes what the ordering wants, asks the allocator for pieces, and turns them into actions with
devices. It changes nothing but its own draft.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import TYPE_CHECKING

from dovetail.core.claims import Claim, Curve, Occasion, Piece, Seating
from dovetail.core.draft import Draft, options
from dovetail.model.allocation import Allocation, Part, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.job import Job
from dovetail.model.node import Pool
from dovetail.model.plan import Action, Change, Start, Stop

if TYPE_CHECKING:
    from dovetail.planners.arranged import Arranged

RESIZED = "shares of its node were handed out anew"
MOVED = "everybody together is faster this way"
CROWDED_OUT = "CPU or memory for it went to jobs before it"


class Arranging:
    """One plan on the way from wishes to actions."""

    def __init__(self, planner: Arranged, wanted: Iterable[Action]) -> None:
        self.planner = planner
        self.cluster = planner.cluster
        self.seating = planner.seating
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
        #: claims among them that the seating still lists
        self.leaving = self.going & planner.seating.claims.keys()
        #: nodes of those it does not list any more
        self.cleared: set[int] = set()
        #: do others use what claims must be left with?
        self.overdrawn = False
        self.fixed: list[Action] = []
        self.claims: list[tuple[Claim, Allocation]] = []

    def place_fixed(self) -> None:
        """Place those who are no claims, on a cluster where claims are at their floors."""
        others: list[tuple[Job, Allocation, type]] = []
        for job, proposed, kind in self.coming:
            curve = self.planner.curve(job, proposed.parts[0].node)
            if curve is None:
                others.append((job, proposed, kind))
            else:
                curve = self._eased(job, curve, proposed.parts[0].node)
                told = () if self.planner.inner.placement.relaxed else _pieces(proposed)
                claim = Claim(job.spec.id, job.spec.request.gpus, curve, told)
                self.claims.append((claim, proposed))
        if others or self._stopped_fixed():
            self._clear()
        for each in others:
            self._place(*each)

    def _eased(self, job: Job, curve: Curve, node: int) -> Curve:
        """Less than its share, down to half of it, for a job that states nothing of its own.

        On one machine the share of all GPUs is all there is. Where somebody else uses a part of
        that, such a job would wait for ever.
        """
        gpus, nodes = self.cluster.free[node], len(self.cluster.nodes)
        if nodes > 1 or not gpus or self.going or not curve.flat:
            return curve
        each, seating = job.spec.request.alternatives[0].groups[0].each, self.seating
        cpu = self.cluster.cpu[node] + seating.cpu[node] - seating.floor_cpu[node]
        memory = self.cluster.memory[node] + seating.memory[node] - seating.floor_memory[node]
        fair = curve.fair
        return self.planner.curves.flat(
            fair._replace(
                cpu=_less(fair.cpu, each.cpu, cpu // gpus),
                memory=_less(fair.memory, each.memory, memory // gpus),
            )
        )

    def _stopped_fixed(self) -> bool:
        return any(number not in self.planner.seating.claims for number in self.going)

    def _clear(self) -> None:
        """Go on with copies on which everybody who leaves has left.

        Fixed jobs may take what claims that leave have held, so it must be free for them.
        """
        self.cluster, self.seating = self.cluster.copy(), Seating(len(self.cluster.nodes))
        for number, claim in self.planner.seating.claims.items():
            if number not in self.leaving:
                self.seating.seat(claim)
        for number in self.going:
            held = self.planner.inner.view.jobs[number].virtual
            assert held is not None
            self.cluster.release(held)
            self.cleared |= {part.node for part in held.parts}
        self.leaving = set()

    def _place(self, job: Job, proposed: Allocation, kind: type) -> None:
        """Find a place for fixed amounts, if there is one, and take it from what claims share."""
        choices = options(job.spec.request, self.cluster, self.planner.fallback)
        found = Draft(self.lowered(), self.planner.inner.placement).find(choices)
        if found is None:
            return
        # What claims hold above their floors counts as free here: they will give it back.
        self._lend(1)
        self.cluster.take(found)
        self._lend(-1)
        make = Start if kind is Start else Change
        self.fixed.append(make(job.spec.id, found))

    def _lend(self, sign: int) -> None:
        """Add (1) or subtract (-1) what claims hold to what is free."""
        for node in range(len(self.cluster.nodes)):
            self.cluster.cpu[node] += sign * self.seating.cpu[node]
            self.cluster.memory[node] += sign * self.seating.memory[node]

    def lowered(self) -> Cluster:
        """The draft with every claim that stays at its floor."""
        twin, seating = self.cluster.copy(), self.seating
        for node in range(len(twin.nodes)):
            twin.cpu[node] += seating.cpu[node] - seating.floor_cpu[node]
            twin.memory[node] += seating.memory[node] - seating.floor_memory[node]
        return twin

    def actions(self) -> list[Action]:
        """Stops, changes of those who stay, and starts of those who come."""
        arranged: dict[int, tuple[Piece, ...]] = {}
        self._ignore_overdrafts()
        for pool in self.cluster.pools:
            occasion = self._occasion(pool)
            if occasion.coming or occasion.going or occasion.touched:
                arranged.update(self.planner.allocator.arrange(occasion))
        return self._as_actions(arranged)

    def _ignore_overdrafts(self) -> None:
        """Where others use more than claims can give back, claims keep their floors."""
        if min(self.cluster.cpu) >= 0 and min(self.cluster.memory) >= 0:
            return
        seating, staying, short = self.seating, self._floors(), []
        for node in range(len(self.cluster.nodes)):
            floor_cpu, floor_memory = staying.get(node, (0, 0))
            cpu = floor_cpu - seating.cpu[node] - self.cluster.cpu[node]
            memory = floor_memory - seating.memory[node] - self.cluster.memory[node]
            if cpu > 0 or memory > 0:
                short.append((node, max(cpu, 0), max(memory, 0)))
        if short:
            self.overdrawn = True
            self.cluster = self.cluster.copy()
        for node, cpu, memory in short:
            self.cluster.cpu[node] += cpu
            self.cluster.memory[node] += memory

    def _floors(self) -> dict[int, tuple[int, int]]:
        """What claims that stay must be left with, by node."""
        floors: dict[int, tuple[int, int]] = {}
        for number, claim in self.seating.claims.items():
            least = claim.curve.points[0]
            for piece in claim.held if number not in self.leaving else ():
                cpu, memory = floors.get(piece.node, (0, 0))
                cpu, memory = cpu + piece.gpus * least.cpu, memory + piece.gpus * least.memory
                floors[piece.node] = cpu, memory
        return floors

    def _occasion(self, pool: Pool) -> Occasion:
        """What the allocator is asked for the nodes of one pool."""
        seated, nodes = self.seating.claims, range(pool.start, pool.stop)
        return Occasion(
            self.cluster,
            self.seating,
            [claim for claim, proposed in self.claims if proposed.parts[0].node in nodes],
            [job for job in sorted(self.leaving) if seated[job].held[0].node in nodes],
            self._touched(pool),
            pool.start,
            pool.stop,
            self._queue(),
            self.planner.curves.span_penalty,
            self._move_price(pool),
            self.planner.inner.placement.relaxed,
            not pool.capabilities.resize_in_place,
        )

    def _move_price(self, pool: Pool) -> float:
        """Seconds a move costs; where it takes a stop that must be confirmed, nobody moves.

        Nor where others use more than they should: there a seat is worth less than it seems.
        """
        able, costs = pool.capabilities, self.planner.inner.view.costs
        if not able.move or able.start_latency is not None or self.overdrawn:
            return inf
        return costs.restart if costs.move is None else costs.move

    def _queue(self) -> bool:
        """Will more jobs wait than run after this plan?"""
        starts = sum(kind is Start for _, _, kind in self.coming)
        waiting = self.planner.waiting + len(self.passed) - starts
        return waiting > len(self.planner.seating.claims)

    def _touched(self, pool: Pool) -> list[int]:
        changed = self.planner.touched | self.cleared
        nodes = {node for node in changed if pool.start <= node < pool.stop}
        for action in self.fixed:
            assert isinstance(action, Start | Change)
            nodes |= {
                part.node for part in action.allocation.parts if pool.start <= part.node < pool.stop
            }
        return sorted(nodes)

    def _as_actions(self, arranged: dict[int, tuple[Piece, ...]]) -> list[Action]:
        jobs, seating = self.planner.inner.view.jobs, self.seating
        proposals = {claim.job: proposed for claim, proposed in self.claims}
        stays: list[Action] = []
        homeless: list[int] = []
        masks: dict[int, int] = {}
        for number in self.leaving:
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
        # The ordering moved them, but those before them left no room for their floors.
        lost = self.going & proposals.keys() - arranged.keys()
        stops = [Stop(number, CROWDED_OUT) for number in sorted(lost)]
        return [*self.passed, *stops, *stays, *moves, *self.fixed, *starts]

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
            devices = 0 if relaxed or proposed is None else proposed.parts[index].devices
            if not devices or devices & ~mask:
                # Nobody chose them, or a job with fixed amounts was faster.
                devices = _lowest(mask, gpus)
            masks[node] = mask & ~devices
            parts.append(Part(node, devices, cpu, memory))
        return allocation_of(tuple(parts))


def _less(share: int, stated: int | None, left: int) -> int:
    """A share, or what is left of it, but not less than half; what is stated stays."""
    return share if stated is not None else min(share, max(left, (share + 1) // 2))


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
