"""A seating as it would be: nodes are copied when they are first changed, nothing else is.

Keeps who would sit where and hands out CPU and memory among them. Decides neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from dovetail.allocators.filling import Filled, Filling, Spots
from dovetail.core.claims import Arrangement, Claim, Curve, Occasion, Piece, Point


class Desk:
    """One node of a trial: its free GPUs, what claims may share, and who sits there."""

    __slots__ = (
        "cpu",
        "gpus",
        "jobs",
        "memory",
        "node",
        "spare_cpu",
        "spare_memory",
        "wanted_cpu",
        "wanted_memory",
    )

    def __init__(self, node: int, occasion: Occasion) -> None:
        cluster, seating = occasion.cluster, occasion.seating
        self.node = node
        self.gpus = cluster.free[node]
        self.cpu = cluster.cpu[node] + seating.cpu[node]
        self.memory = cluster.memory[node] + seating.memory[node]
        #: what is left when everybody is at their floor
        self.spare_cpu = self.cpu - seating.floor_cpu[node]
        self.spare_memory = self.memory - seating.floor_memory[node]
        self.jobs = dict(seating.nodes[node])
        self.wanted_cpu = seating.wanted_cpu[node]
        self.wanted_memory = seating.wanted_memory[node]

    def seats(self, floor: Point) -> int:
        """How many GPUs here can still have such a floor."""
        gpus = self.gpus
        if floor.cpu:
            gpus = min(gpus, self.spare_cpu // floor.cpu)
        if floor.memory:
            gpus = min(gpus, self.spare_memory // floor.memory)
        return gpus

    @property
    def load(self) -> float:
        """How much of the scarcer resource everybody here would like to have, 1 being all."""
        return max(self.wanted_cpu / max(self.cpu, 1), self.wanted_memory / max(self.memory, 1))


class Trial:
    """The seating of an occasion, free to be changed."""

    def __init__(self, occasion: Occasion, filling: Filling) -> None:
        self.occasion = occasion
        self.filling = filling
        self.desks: dict[int, Desk] = {}
        #: where each claim that was looked at sits, and the point it gets
        self.spots: dict[int, Spots] = {}
        self.points: dict[int, Point] = {}
        #: what jobs settled elsewhere take more than before of nodes that are not settled
        self.lent: dict[int, tuple[int, int]] = {}
        #: nodes on which somebody sat down or rose
        self.changed: set[int] = set()
        self.claims = {claim.job: claim for claim in occasion.coming}
        for job in occasion.going:
            self.rise(job)

    def desk(self, node: int) -> Desk:
        """The node as it is in this trial."""
        desk = self.desks.get(node)
        if desk is None:
            desk = self.desks[node] = Desk(node, self.occasion)
        return desk

    def load(self, node: int) -> float:
        """How much is wanted of a node, whether it was changed or not."""
        desk = self.desks.get(node)
        if desk is not None:
            return desk.load
        cluster, seating = self.occasion.cluster, self.occasion.seating
        cpu = cluster.cpu[node] + seating.cpu[node]
        memory = cluster.memory[node] + seating.memory[node]
        wanted = seating.wanted_cpu[node], seating.wanted_memory[node]
        return max(wanted[0] / max(cpu, 1), wanted[1] / max(memory, 1))

    def claim(self, job: int) -> Claim:
        """A claim that sits or comes."""
        return self.claims.get(job) or self.occasion.seating.claims[job]

    def where(self, job: int) -> Spots:
        """Where a claim sits."""
        spots = self.spots.get(job)
        if spots is None:
            held = self.occasion.seating.claims[job].held
            spots = self.spots[job] = tuple([(piece.node, piece.gpus) for piece in held])
        return spots

    def rise(self, job: int) -> None:
        """Take a claim off its nodes."""
        points = self.claim(job).curve.points
        for node, gpus in self.where(job):
            del self.desk(node).jobs[job]
            self._occupy(node, -gpus, points)

    def sit(self, job: int, spots: Spots) -> None:
        """Put a claim on nodes."""
        self.spots[job] = spots
        points = self.claim(job).curve.points
        for node, gpus in spots:
            self.desk(node).jobs[job] = gpus
            self._occupy(node, gpus, points)

    def _occupy(self, node: int, gpus: int, points: tuple[Point, ...]) -> None:
        self.changed.add(node)
        desk, least, most = self.desks[node], points[0], points[-1]
        desk.gpus -= gpus
        desk.spare_cpu -= gpus * least.cpu
        desk.spare_memory -= gpus * least.memory
        desk.wanted_cpu += gpus * most.cpu
        desk.wanted_memory += gpus * most.memory

    def settle(self, nodes: Iterable[int]) -> None:
        """Share out anew what these nodes have among those who sit there."""
        for group in self._joined(nodes):
            jobs = self._jobs(group)
            filled = self.filled(group, jobs)
            assert filled.worth > -inf, "claims were seated where their floors do not fit"
            for job, point in zip(jobs, filled.points, strict=True):
                if len(self.where(job)) > 1:
                    self._lend(group, job, point)
                self.points[job] = point

    def _joined(self, nodes: Iterable[int]) -> list[list[int]]:
        """Nodes that share a job are settled together."""
        groups: list[list[int]] = []
        left = dict.fromkeys(nodes)
        while left:
            group = [left.popitem()[0]]
            for node in group:
                for job in self.desk(node).jobs:
                    for other, _ in self.where(job) if self.claim(job).gpus > 1 else ():
                        if other in left:
                            del left[other]
                            group.append(other)
            groups.append(group)
        return groups

    def _jobs(self, group: Sequence[int]) -> list[int]:
        """Those who sit on any of the nodes, each once, in a stable order."""
        if len(group) == 1:
            return sorted(self.desk(group[0]).jobs)
        return sorted({job for node in group for job in self.desk(node).jobs})

    def filled(self, group: Sequence[int], jobs: Sequence[int]) -> Filled:
        """How the nodes of a group would be shared among the claims that sit on them."""
        room = {node: (desk.cpu, desk.memory) for node in group for desk in (self.desk(node),)}
        members: list[tuple[Curve, Spots]] = []
        for job in jobs:
            spots = self.where(job)
            members.append((self.claim(job).curve, spots))
            for node, gpus in spots if len(spots) > 1 else ():
                if node not in group:
                    # Everybody else there keeps what they have.
                    self._add_outside(room, node, gpus, job)
        return self.filling.fill(members, room)

    def _add_outside(
        self, room: dict[int, tuple[int, int]], node: int, gpus: int, job: int
    ) -> None:
        cluster, point = self.occasion.cluster, self.point(job)
        cpu, memory = room.get(node) or (cluster.cpu[node], cluster.memory[node])
        if node not in room and node in self.lent:
            cpu, memory = cpu - self.lent[node][0], memory - self.lent[node][1]
        room[node] = (cpu + gpus * point.cpu, memory + gpus * point.memory)

    def _lend(self, group: Sequence[int], job: int, new: Point) -> None:
        """Note what a job takes of nodes outside the group that is being settled."""
        for node, gpus in self.where(job):
            if node not in group:
                old, (cpu, memory) = self.point(job), self.lent.get(node, (0, 0))
                more = gpus * (new.cpu - old.cpu), gpus * (new.memory - old.memory)
                self.lent[node] = (cpu + more[0], memory + more[1])

    def point(self, job: int) -> Point:
        """What a claim has per GPU: in this trial, or in fact."""
        point = self.points.get(job)
        if point is None:
            claim = self.occasion.seating.claims[job]
            piece = claim.held[0]
            amounts = (piece.cpu // piece.gpus, piece.memory // piece.gpus)
            known = [each for each in claim.curve.points if each[:2] == amounts]
            point = known[0] if known else Point(*amounts, claim.curve.fair.rate)
        return point

    def arrangement(self) -> Arrangement:
        """Pieces of everybody whose pieces are not what they were."""
        changed: Arrangement = {}
        for job, point in self.points.items():
            pieces = tuple(
                [
                    Piece(node, gpus, gpus * point.cpu, gpus * point.memory)
                    for node, gpus in self.spots[job]
                ]
            )
            if pieces != self.claim(job).held:
                changed[job] = pieces
        return changed
