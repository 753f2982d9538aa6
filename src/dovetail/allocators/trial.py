"""A seating as it would be: nodes are copied when they are first changed, nothing else is.

Keeps who would sit where and hands out CPU and memory among them. Decides neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from dovetail.allocators.filling import Filled, Filling, Spots
from dovetail.allocators.targets import Targets
from dovetail.core.claims import Arrangement, Claim, Curve, Occasion, Piece, Point
from dovetail.model.node import Node


class Desk:
    """One node of a trial: its free GPUs, what claims may share, and who sits there."""

    __slots__ = (
        "cpu",
        "gpus",
        "jobs",
        "memory",
        "node",
        "share",
        "spare_cpu",
        "spare_memory",
        "wanted_cpu",
        "wanted_memory",
    )

    def __init__(self, node: int, trial: Trial) -> None:
        cluster, seating = trial.occasion.cluster, trial.occasion.seating
        self.node = node
        self.gpus = cluster.free[node]
        self.cpu = cluster.cpu[node] + seating.cpu[node]
        self.memory = cluster.memory[node] + seating.memory[node]
        #: what is left when everybody is at their floor
        self.spare_cpu = self.cpu - seating.floor_cpu[node]
        self.spare_memory = self.memory - seating.floor_memory[node]
        #: what is kept for each free GPU, so that whoever comes later finds it
        self.share = _share(cluster.nodes[node]) if trial.occasion.lasting else (0, 0)
        self.jobs = dict(seating.nodes[node])
        #: what is aimed at for them
        self.wanted_cpu = self.wanted_memory = 0
        for job, gpus in self.jobs.items():
            target = trial.target(seating.claims[job])
            self.wanted_cpu += gpus * target.cpu
            self.wanted_memory += gpus * target.memory

    def seats(self, floor: Point) -> int:
        """How many GPUs here can still have such a floor."""
        gpus = self.gpus
        if floor.cpu:
            gpus = min(gpus, self.spare_cpu // floor.cpu)
        if floor.memory:
            gpus = min(gpus, self.spare_memory // floor.memory)
        return gpus

    @property
    def room(self) -> tuple[int, int]:
        """What those who sit here may share."""
        cpu, memory = self.gpus * self.share[0], self.gpus * self.share[1]
        return (
            self.cpu - min(cpu, max(self.spare_cpu, 0)),
            self.memory - min(memory, max(self.spare_memory, 0)),
        )

    @property
    def load(self) -> float:
        """How much of the scarcer resource is aimed at here, 1 being all there is."""
        return max(self.wanted_cpu / max(self.cpu, 1), self.wanted_memory / max(self.memory, 1))


def _share(node: Node) -> tuple[int, int]:
    """What goes with one GPU of a node."""
    gpus = max(node.gpus, 1)
    return (node.cpu or 0) // gpus, (node.memory or 0) // gpus


class Trial:
    """The seating of an occasion, free to be changed."""

    def __init__(self, occasion: Occasion, filling: Filling) -> None:
        self.occasion = occasion
        self.filling = filling
        self.desks: dict[int, Desk] = {}
        #: where each claim that was looked at sits, and the point it gets
        self.spots: dict[int, Spots] = {}
        self.points: dict[int, Point] = {}
        self._appetites: dict[tuple[int, int], float] = {}
        #: nodes on which somebody sat down or rose
        self.changed: set[int] = set()
        self.claims = {claim.job: claim for claim in occasion.coming}
        self.targets = self._aim()
        for job in occasion.going:
            self.rise(job)

    def _aim(self) -> Targets:
        """What everybody who stays or comes would get if the pool were one node."""
        occasion, seating = self.occasion, self.occasion.seating
        kinds = dict(seating.kinds)
        if len(occasion.cluster.pools) > 1:
            kinds = self._kinds_here()
        leaving = [(seating.claims[job], -1) for job in occasion.going]
        for claim, sign in (*leaving, *[(claim, 1) for claim in occasion.coming]):
            kind = (id(claim.curve), claim.gpus)
            kinds[kind] = (claim.curve, kinds.get(kind, (claim.curve, 0))[1] + sign)
        nodes = slice(occasion.start, occasion.stop)
        cpu = sum(occasion.cluster.cpu[nodes]) + sum(seating.cpu[nodes])
        memory = sum(occasion.cluster.memory[nodes]) + sum(seating.memory[nodes])
        present = {kind: entry for kind, entry in kinds.items() if entry[1]}
        return Targets(present, cpu, memory, self.filling)

    def _kinds_here(self) -> dict[tuple[int, int], tuple[Curve, int]]:
        """How many claims of each kind sit in this pool, where there are others."""
        nodes = range(self.occasion.start, self.occasion.stop)
        kinds: dict[tuple[int, int], tuple[Curve, int]] = {}
        for claim in self.occasion.seating.claims.values():
            if claim.held[0].node in nodes:
                kind = (id(claim.curve), claim.gpus)
                kinds[kind] = (claim.curve, kinds.get(kind, (claim.curve, 0))[1] + 1)
        return kinds

    def desk(self, node: int) -> Desk:
        """The node as it is in this trial."""
        desk = self.desks.get(node)
        if desk is None:
            desk = self.desks[node] = Desk(node, self)
        return desk

    def target(self, claim: Claim) -> Point:
        """The amounts per GPU that are aimed at for a claim."""
        return self.targets.of(claim.curve, claim.gpus)

    def appetite(self, claim: Claim) -> float:
        """How many times its fair share is aimed at for a claim, of what it wants most."""
        kind = (id(claim.curve), claim.gpus)
        found = self._appetites.get(kind)
        if found is None:
            target, fair = self.target(claim), claim.curve.fair
            found = max(target.cpu / max(fair.cpu, 1), target.memory / max(fair.memory, 1))
            self._appetites[kind] = found
        return found

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
        claim = self.claim(job)
        for node, gpus in self.where(job):
            del self.desk(node).jobs[job]
            self._occupy(node, -gpus, claim)

    def sit(self, job: int, spots: Spots) -> None:
        """Put a claim on nodes."""
        self.spots[job] = spots
        claim = self.claim(job)
        for node, gpus in spots:
            self.desk(node).jobs[job] = gpus
            self._occupy(node, gpus, claim)

    def _occupy(self, node: int, gpus: int, claim: Claim) -> None:
        self.changed.add(node)
        desk, least, target = self.desks[node], claim.curve.points[0], self.target(claim)
        if node not in self.occasion.cluster.closed:
            # A closed node shows no free GPU, whoever leaves it.
            desk.gpus -= gpus
        desk.spare_cpu -= gpus * least.cpu
        desk.spare_memory -= gpus * least.memory
        desk.wanted_cpu += gpus * target.cpu
        desk.wanted_memory += gpus * target.memory

    def settle(self, nodes: Iterable[int]) -> None:
        """Share out anew what these nodes have among those who sit there."""
        for group in self._joined(nodes):
            jobs = self._jobs(group)
            filled = self.filled(group, jobs)
            assert filled.worth > -inf, "claims were seated where their floors do not fit"
            self.points.update(zip(jobs, filled.points, strict=True))

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
        room = {node: self.desk(node).room for node in group}
        members: list[tuple[Curve, Spots]] = []
        for job in jobs:
            spots = self.where(job)
            members.append((self.claim(job).curve, spots))
            for node, gpus in spots if len(spots) > 1 else ():
                if node not in group:
                    # Everybody else there keeps what they have.
                    cpu, memory = room.get(node) or self._left(node)
                    point = self.point(job)
                    room[node] = (cpu + gpus * point.cpu, memory + gpus * point.memory)
        return self.filling.fill(members, room)

    def filled_alone(self, node: int, members: Sequence[int]) -> Filled:
        """How a node would be shared among some who sit there alone; the others keep theirs."""
        desk = self.desk(node)
        cpu, memory = desk.room
        if len(members) < len(desk.jobs):
            for job in desk.jobs.keys() - set(members):
                point, gpus = self.point(job), desk.jobs[job]
                cpu, memory = cpu - gpus * point.cpu, memory - gpus * point.memory
        claims = [(self.claim(job).curve, self.where(job)) for job in members]
        return self.filling.fill(claims, {node: (cpu, memory)})

    def _left(self, node: int) -> tuple[int, int]:
        """What nobody has on a node that is not being settled."""
        desk = self.desk(node)
        cpu, memory = desk.room
        for job, gpus in desk.jobs.items():
            point = self.point(job)
            cpu, memory = cpu - gpus * point.cpu, memory - gpus * point.memory
        return cpu, memory

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

    def worth(self) -> tuple[int, float]:
        """How many have a seat, and what all of them have together."""
        staying = self.occasion.seating.claims.keys() - set(self.occasion.going)
        seated = staying | self.points.keys()
        return len(seated), sum(self.filling.worth(self.point(job)) for job in sorted(seated))

    def spread(self) -> int:
        """How many sit on more nodes than they need."""
        occasion = self.occasion
        seated = (occasion.seating.claims.keys() | self.spots.keys()) - set(occasion.going)
        widths = [(len(self.where(job)), self.claim(job).gpus) for job in seated]
        return sum(nodes > -(-gpus // occasion.cluster.most) for nodes, gpus in widths)

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
