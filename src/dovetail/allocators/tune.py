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
from math import ceil

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
        #: by number of free GPUs and whether the calm or the busy come first: a heap of nodes
        self._heaps: dict[tuple[int, bool], list[tuple[float, int, int]]] = {}

    def find(self, claim: Claim) -> Spots | None:
        """Where a claim should sit: the hungry where little is wanted, donors where much is."""
        hungry = appetite(claim.curve) > 1
        best, outlook = self._on(1, claim, hungry), 0.0
        if claim.gpus == 1:
            return best
        if best is not None:
            outlook = self._outlook(claim, best)
        for parts in self._splits(claim) if hungry else ():
            apart = self._on(parts, claim, True)
            if apart and self._outlook(claim, apart) > WORTH_SPREADING * outlook:
                best, outlook = apart, self._outlook(claim, apart)
        return best or self._anywhere(claim)

    def _splits(self, claim: Claim) -> list[int]:
        """Numbers of nodes worth trying: as many as the appetite needs, then twice as many."""
        filling, most = self.trial.filling, claim.curve.points[-1]
        needed = max(most.cpu / filling.cpu, most.memory / filling.memory) * claim.gpus
        even = [k for k in range(max(2, ceil(needed)), claim.gpus + 1) if claim.gpus % k == 0]
        return even

    def _on(self, parts: int, claim: Claim, calm: bool) -> Spots | None:
        """Equal parts on that many nodes, if there are so many with room."""
        gpus, floor = claim.gpus // parts, claim.curve.points[0]
        heap, sign = self._heap(gpus, calm), 1 if calm else -1
        nodes: list[int] = []
        passed: list[tuple[float, int, int]] = []
        while heap and len(nodes) < parts:
            key, free, node = heap[0]
            desk = self.trial.desk(node)
            now = (sign * desk.load, desk.gpus)
            if desk.gpus < gpus:
                heappop(heap)
            elif now != (key, free):
                # Somebody sat down there since: its place in the heap is another one.
                heapreplace(heap, (*now, node))
            else:
                passed.append(heappop(heap))
                if desk.seats(floor) >= gpus:
                    nodes.append(node)
        for entry in passed:
            heappush(heap, entry)
        return tuple([(node, gpus) for node in sorted(nodes)]) if len(nodes) == parts else None

    def _heap(self, gpus: int, calm: bool) -> list[tuple[float, int, int]]:
        """All nodes with so many free GPUs; whoever sits down later only makes it smaller."""
        heap = self._heaps.get((gpus, calm))
        if heap is None:
            sign = 1 if calm else -1
            desks = [self.trial.desk(node) for node in self._nodes() if self._free(node) >= gpus]
            heap = [(sign * desk.load, desk.gpus, desk.node) for desk in desks]
            heapify(heap)
            self._heaps[gpus, calm] = heap
        return heap

    def _nodes(self) -> range:
        return range(self.trial.occasion.start, self.trial.occasion.stop)

    def _free(self, node: int) -> int:
        desk = self.trial.desks.get(node)
        return self.trial.occasion.cluster.free[node] if desk is None else desk.gpus

    def _anywhere(self, claim: Claim) -> Spots | None:
        """On as few nodes as free GPUs allow."""
        trial, floor, gpus = self.trial, claim.curve.points[0], claim.gpus
        seats = {node: trial.desk(node).seats(floor) for node in self._nodes() if self._free(node)}
        if sum(seats.values()) < gpus:
            return None
        found: dict[int, int] = {}
        for node in sorted(seats, key=lambda node: (-seats[node], node)):
            found[node] = min(seats[node], gpus)
            gpus -= found[node]
            if not gpus:
                break
        return tuple(sorted(found.items()))

    def _outlook(self, claim: Claim, spots: Spots) -> float:
        """The speed a claim may expect there: from its share, or from what nobody else wants."""
        cpu = memory = 1 << 62
        for node, gpus in spots:
            desk = self.trial.desk(node)
            cpu = min(cpu, (desk.cpu - desk.wanted_cpu) // gpus)
            memory = min(memory, (desk.memory - desk.wanted_memory) // gpus)
        fair = claim.curve.fair
        cpu, memory = max(cpu, fair.cpu), max(memory, fair.memory)
        points = claim.curve.points
        rate = max([p.rate for p in points if p.cpu <= cpu and p.memory <= memory])
        needed = -(-claim.gpus // self.trial.occasion.cluster.most)
        return rate / (1.0 + self.trial.occasion.span_penalty * (len(spots) > needed))
