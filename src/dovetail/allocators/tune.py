"""Synergy's idea, all the way: everybody gets what they profit from, nobody less than their share.

After Synergy-Tune (Mohan et al., OSDI'22), with four differences: the whole curve of a job counts
instead of two points; what is left after placing is handed out by speed gained per resource; jobs
stay where they are unless a move earns its cost back; and jobs change places between nodes where
that helps. Both promises of the paper hold: every admitted job is placed, and none runs slower
than with its GPU-proportional share.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace

from dovetail.allocators.exchanging import exchange
from dovetail.allocators.filling import Filling, Spots
from dovetail.allocators.joint import Joint
from dovetail.allocators.trial import Trial
from dovetail.core.claims import Arrangement, Claim, Curve, Occasion

WORTH_SPREADING = 1.05
"""A job is spread over more nodes than it needs only if that makes it so much faster."""

EFFORT = 6400
"""Exchanges tried at most in one plan, times the nodes of the pool."""


@dataclass(frozen=True)
class Tune(Joint):
    """Shares CPU and memory out by measured sensitivity."""

    #: how many exchanges between nodes are tried for each job that comes or leaves
    exchanges: int = 24
    #: seconds in which a move must earn back what it costs
    payback: float = 3600.0
    _fillings: dict[tuple[int, int, bool], Filling] = field(
        default_factory=dict, init=False, repr=False
    )

    def arrange(self, occasion: Occasion) -> Arrangement:
        """Pieces for those who come, and new pieces for those who should change."""
        filling = self._filling(occasion)
        trial = Trial(occasion, filling)
        seat(trial)
        nodes = {*occasion.touched, *trial.changed}
        trial.settle(nodes)
        exchange(trial, nodes, self._budget(occasion), self.payback)
        return trial.arrangement()

    def _filling(self, occasion: Occasion) -> Filling:
        node = occasion.cluster.nodes[occasion.start]
        kind = (node.cpu or 0, node.memory or 0, not occasion.queue)
        filling = self._fillings.get(kind)
        if filling is None:
            filling = self._fillings[kind] = Filling(*kind)
        return filling

    def _budget(self, occasion: Occasion) -> int:
        """More exchanges for more change, fewer on large clusters: the next plans go on."""
        changes = 1 + len(occasion.coming) + len(occasion.going) + len(occasion.touched)
        return min(self.exchanges * changes, EFFORT // (occasion.stop - occasion.start))


def appetite(curve: Curve) -> float:
    """How many times its fair share a job would like to have of what it wants most."""
    most, fair = curve.points[-1], curve.fair
    return max(most.cpu / max(fair.cpu, 1), most.memory / max(fair.memory, 1))


def seat(trial: Trial) -> None:
    """Find nodes for those who come: wide ones first, then the hungriest."""
    occasion = trial.occasion
    told = [claim for claim in occasion.coming if claim.held]
    for claim in told:
        trial.sit(claim.job, tuple((piece.node, piece.gpus) for piece in claim.held))
    homeless = [claim for claim in occasion.coming if not claim.held]
    if not homeless:
        return
    homeless.sort(key=lambda claim: (-claim.gpus, -appetite(claim.curve)))
    tables = Tables(trial)
    for claim in homeless:
        spots = tables.find(claim)
        if spots is not None:
            trial.sit(claim.job, spots)


class Tables:
    """The nodes with free GPUs, by how much is wanted of them already."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._size = 0
        self._calm: list[tuple[float, int, int]] = []
        self._busy: list[tuple[float, int, int]] = []

    def find(self, claim: Claim) -> Spots | None:
        """Where a claim should sit: the hungry where little is wanted, donors where much is."""
        hungry = appetite(claim.curve) > 1
        self._prepare(claim.gpus)
        node = self._first(claim, hungry)
        together: Spots | None = ((node, claim.gpus),) if node >= 0 else None
        if claim.gpus == 1 or (together and not hungry):
            return together
        apart = self._spread(claim, hungry)
        if together is None or apart is None:
            return apart if together is None else together
        penalty = 1.0 + self.trial.occasion.span_penalty
        gain = self._outlook(claim, apart) / penalty / self._outlook(claim, together)
        return apart if gain > WORTH_SPREADING else together

    def _prepare(self, gpus: int) -> None:
        """List the nodes with room for a claim of this size; claims come in falling sizes."""
        if gpus == self._size:
            return
        self._size = gpus
        trial = self.trial
        desks = [trial.desk(node) for node in self._nodes() if self._free(node) >= gpus]
        self._calm = [(desk.load, desk.gpus, desk.node) for desk in desks]
        self._busy = [(-desk.load, desk.gpus, desk.node) for desk in desks]
        heapify(self._calm)
        heapify(self._busy)

    def _nodes(self) -> range:
        return range(self.trial.occasion.start, self.trial.occasion.stop)

    def _free(self, node: int) -> int:
        desk = self.trial.desks.get(node)
        return self.trial.occasion.cluster.free[node] if desk is None else desk.gpus

    def _first(self, claim: Claim, hungry: bool) -> int:
        """The first node of the fitting heap with room, its place in the heap renewed; -1: none."""
        heap, sign = (self._calm, 1) if hungry else (self._busy, -1)
        passed: list[tuple[float, int, int]] = []
        node = -1
        while heap and node < 0:
            key, free, first = heap[0]
            desk = self.trial.desk(first)
            now = (sign * desk.load, desk.gpus)
            if desk.gpus < claim.gpus:
                heappop(heap)
            elif now != (key, free):
                heapreplace(heap, (*now, first))
            elif desk.seats(claim.curve.points[0]) < claim.gpus:
                # Others on the node leave too little for this claim, but maybe not for the next.
                passed.append(heappop(heap))
            else:
                node = first
        for entry in passed:
            heappush(heap, entry)
        return node

    def _spread(self, claim: Claim, hungry: bool) -> Spots | None:
        """GPUs one by one where least is wanted, or from the emptiest nodes if spreading costs."""
        trial, floor, gpus = self.trial, claim.curve.points[0], claim.gpus
        seats = {node: trial.desk(node).seats(floor) for node in self._nodes() if self._free(node)}
        if sum(seats.values()) < gpus:
            return None
        spots: dict[int, int] = {}
        if trial.occasion.span_penalty > 0 or not hungry:
            for node in sorted(seats, key=lambda node: (-seats[node], node)):
                spots[node] = min(seats[node], gpus)
                gpus -= spots[node]
                if not gpus:
                    break
            return tuple(spots.items())
        heap = [(0, trial.desk(node).load, node) for node in seats if seats[node]]
        heapify(heap)
        for _ in range(gpus):
            count, load, node = heap[0]
            spots[node] = count + 1
            if spots[node] == seats[node]:
                heappop(heap)
            else:
                heapreplace(heap, (count + 1, load, node))
        return tuple(sorted(spots.items()))

    def _outlook(self, claim: Claim, spots: Spots) -> float:
        """The speed a claim may expect on these nodes: from its share, or from what nobody wants"""
        cpu = memory = 1 << 62
        for node, gpus in spots:
            desk = self.trial.desk(node)
            cpu = min(cpu, (desk.cpu - desk.wanted_cpu) // gpus)
            memory = min(memory, (desk.memory - desk.wanted_memory) // gpus)
        fair = claim.curve.fair
        cpu, memory = max(cpu, fair.cpu), max(memory, fair.memory)
        return max(
            (p.rate for p in claim.curve.points if p.cpu <= cpu and p.memory <= memory),
            default=fair.rate,
        )
