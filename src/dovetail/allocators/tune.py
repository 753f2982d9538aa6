"""Synergy's idea, all the way: everybody gets what they profit from, nobody less than their share.

After Synergy-Tune (Mohan et al., OSDI'22), with four differences: the whole curve of a job counts
instead of two points; what is left after placing is handed out by speed gained per resource; jobs
stay where they are unless a move earns its cost back; and jobs change places between nodes where
that helps. Both promises of the paper hold: every admitted job is placed, and none runs slower
than with its GPU-proportional share.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from heapq import heapify, heappop, heappush, heapreplace

from dovetail.allocators.exchanging import exchange
from dovetail.allocators.filling import Filling, Spots
from dovetail.allocators.joint import Joint
from dovetail.allocators.trial import Trial
from dovetail.core.claims import Arrangement, Claim, Occasion

WORTH_SPREADING = 1.05
"""A job is spread over more nodes than it needs only if that makes it so much faster."""

SMALL = 16
"""Pools of so many nodes are seated in two ways when most of their jobs are new."""

EFFORT = 1600
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
        return self.chosen(occasion).arrangement()

    def chosen(self, occasion: Occasion) -> Trial:
        """The better of the ways to seat those who come."""
        trial = self.tried(occasion, thin=False)
        if _free_to_spread(occasion):
            other = self.tried(occasion, thin=True)
            if other.worth() > trial.worth():
                trial = other
        return trial

    def tried(self, occasion: Occasion, thin: bool) -> Trial:
        """One way to seat everybody, settled and improved."""
        trial = Trial(occasion, self.filling(occasion))
        seat(trial, thin)
        nodes = {*occasion.touched, *trial.changed}
        trial.settle(nodes)
        if occasion.seats:
            exchange(trial, nodes, self.budget(occasion), self.payback, _anew(occasion))
        return trial

    def filling(self, occasion: Occasion) -> Filling:
        """What fills nodes of this pool, with all it remembers."""
        node = occasion.cluster.nodes[occasion.start]
        kind = (node.cpu or 0, node.memory or 0, not occasion.queue)
        filling = self._fillings.get(kind)
        if filling is None:
            filling = self._fillings[kind] = Filling(*kind)
        return filling

    def budget(self, occasion: Occasion) -> int:
        """More exchanges for more change, fewer on large clusters: the next plans go on."""
        changes = 1 + len(occasion.coming) + len(occasion.going) + len(occasion.touched)
        return min(self.exchanges * changes, EFFORT // (occasion.stop - occasion.start))


def _anew(occasion: Occasion) -> bool:
    """Is most of a small pool seated anew? Then a thorough search is worth its time."""
    small = occasion.stop - occasion.start <= SMALL
    return small and len(occasion.coming) > len(occasion.seating.claims)


def _free_to_spread(occasion: Occasion) -> bool:
    """Are there wide jobs among many that come, which may be spread at no cost?"""
    wide = any(claim.gpus > 1 for claim in occasion.coming)
    return wide and not occasion.span_penalty and _anew(occasion)


def seat(trial: Trial, thin: bool = False) -> None:
    """Find nodes for those who come: wide ones first, then the hungriest.

    `thin` spreads every job over as many nodes as it can.
    """
    occasion = trial.occasion
    told = [claim for claim in occasion.coming if claim.held]
    for claim in told:
        floor = claim.curve.points[0]
        if all(trial.desk(piece.node).seats(floor) >= piece.gpus for piece in claim.held):
            trial.sit(claim.job, tuple((piece.node, piece.gpus) for piece in claim.held))
    homeless = [claim for claim in occasion.coming if not claim.held]
    if not homeless:
        return
    # Where spreading costs nothing, there is no packing problem: the hungriest choose first.
    packed = occasion.span_penalty > 0
    homeless.sort(key=lambda claim: (-claim.gpus * packed, -trial.appetite(claim), -claim.gpus))
    tables = Tables(trial)
    for claim in homeless:
        spots = tables.thinnest(claim) if thin else tables.find(claim)
        if spots is not None:
            trial.sit(claim.job, spots)


@cache
def _divisors(gpus: int) -> list[int]:
    """Numbers of nodes over which so many GPUs can be spread evenly."""
    return [parts for parts in range(2, gpus + 1) if gpus % parts == 0]


class Tables:
    """The nodes with free GPUs, by how much is wanted of them already."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        #: by number of free GPUs and whether the calm or the busy come first: a heap of nodes
        self._heaps: dict[tuple[int, bool], list[tuple[float, int, int]]] = {}
        self._by_free: list[tuple[int, int]] | None = None

    def find(self, claim: Claim) -> Spots | None:
        """Where a claim should sit: the hungry where little is wanted, donors where much is."""
        hungry = self.trial.appetite(claim) > 1
        best, outlook = self._on(1, claim, hungry), 0.0
        if claim.gpus == 1:
            return best
        if best is not None:
            outlook = self._outlook(claim, best)
        for parts in _divisors(claim.gpus) if hungry else ():
            apart = self._on(parts, claim, True)
            if apart and self._better(claim, apart, best, outlook):
                best, outlook = apart, self._outlook(claim, apart)
        return best or self._anywhere(claim)

    def thinnest(self, claim: Claim) -> Spots | None:
        """GPUs one by one over all nodes with room, the calmest first."""
        floor, gpus = claim.curve.points[0], claim.gpus
        desks = [self.trial.desk(node) for node in self._nodes() if self._free(node)]
        heap = [(0, desk.load, desk.node) for desk in desks if desk.seats(floor)]
        heapify(heap)
        spots: dict[int, int] = {}
        while heap and gpus:
            count, load, node = heap[0]
            spots[node], gpus = count + 1, gpus - 1
            if spots[node] == self.trial.desk(node).seats(floor):
                heappop(heap)
            else:
                heapreplace(heap, (count + 1, load, node))
        return None if gpus else tuple(sorted(spots.items()))

    def _better(self, claim: Claim, apart: Spots, best: Spots | None, outlook: float) -> bool:
        """Is it worth spreading a claim further?"""
        return best is None or self._outlook(claim, apart) > WORTH_SPREADING * outlook

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
        heap, floor, gpus = self._emptiest(), claim.curve.points[0], claim.gpus
        found: dict[int, int] = {}
        passed: list[tuple[int, int]] = []
        while heap and gpus:
            key, node = heap[0]
            desk = self.trial.desk(node)
            if -key != desk.gpus:
                heapreplace(heap, (-desk.gpus, node))
            elif not desk.gpus:
                heappop(heap)
            else:
                passed.append(heappop(heap))
                if seats := min(desk.seats(floor), gpus):
                    found[node] = seats
                    gpus -= seats
        for entry in passed:
            heappush(heap, entry)
        return None if gpus else tuple(sorted(found.items()))

    def _emptiest(self) -> list[tuple[int, int]]:
        """All nodes with free GPUs, those with most of them first."""
        if self._by_free is None:
            self._by_free = [(-self._free(node), node) for node in self._nodes()]
            heapify(self._by_free)
        return self._by_free

    def _outlook(self, claim: Claim, spots: Spots) -> float:
        """The share of its target that a claim may expect there, after what others are aimed at.

        Where nodes are full, that is less than one; where more than the target is free, no more.
        """
        target, share = self.trial.target(claim), 1.0
        for node, gpus in spots:
            desk = self.trial.desk(node)
            if target.cpu:
                share = min(share, (desk.cpu - desk.wanted_cpu) / (gpus * target.cpu))
            if target.memory:
                share = min(share, (desk.memory - desk.wanted_memory) / (gpus * target.memory))
        needed = -(-claim.gpus // self.trial.occasion.cluster.most)
        spread = len(spots) > needed
        return max(share, 0.1) / (1.0 + self.trial.occasion.span_penalty * spread)
