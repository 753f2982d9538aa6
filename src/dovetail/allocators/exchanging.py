"""Letting claims change places between nodes, where everybody together is better off by it.

What a hungry node holds of a demanding job goes to a calmer node, and as many GPUs of modest jobs
come back, or a free GPU is taken. Each exchange is tried by filling both nodes anew; the worth of
the result decides, and a move must earn its cost back. Only jobs that sit on one node move, and
whole; a thorough search, for when most jobs are new, also moves parts of jobs where spreading them
costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import nsmallest
from typing import NamedTuple

from dovetail.allocators.trial import Trial
from dovetail.core.claims import Point

PARTNERS = 8
"""So many other nodes are looked at for each hungry one, the calmest first."""

LEAST = 0.01
"""Exchanges that gain less than this, in jobs at their proportional speed, are not made."""


class Slice(NamedTuple):
    """So many GPUs of a job on a node; how much is aimed at per GPU there; its kind."""

    density: float
    job: int
    gpus: int
    kind: int


Deal = tuple[tuple[Slice, ...], tuple[Slice, ...]]
"""What we give and what we get."""


def exchange(
    trial: Trial, nodes: Collection[int], budget: int, payback: float, thorough: bool = False
) -> None:
    """Improve the nodes just settled by exchanges, within a budget of trials."""
    if budget > 0:
        Exchanging(trial, budget, payback, thorough).run(nodes)


class Exchanging:
    """A search for better seats, hungriest node first."""

    def __init__(self, trial: Trial, budget: int, payback: float, thorough: bool) -> None:
        self.trial = trial
        self.budget = budget
        self.payback = payback
        self.thorough = thorough
        #: may jobs be taken apart?
        self.apart = thorough and not trial.occasion.span_penalty

    def run(self, nodes: Collection[int]) -> None:
        """Exchange while it helps and the budget lasts."""
        closed = self.trial.occasion.cluster.closed
        open_nodes = [node for node in nodes if node not in closed]
        hungry = sorted(((self._hunger(node), node) for node in open_nodes), reverse=True)
        queue = [node for hunger, node in hungry if hunger > LEAST]
        calmest = self._calmest() if queue else []
        while queue and self.budget > 0:
            node = queue.pop(0)
            partner = self._improve(node, calmest)
            if partner is not None:
                queue += [each for each in (node, partner) if self._hunger(each) > LEAST]

    def _calmest(self) -> list[int]:
        """Nodes on which least is aimed at."""
        occasion = self.trial.occasion
        nodes = range(occasion.start, occasion.stop)
        loads = (
            (self.trial.desk(node).load, node)
            for node in nodes
            if node not in occasion.cluster.closed
        )
        return [node for _, node in nsmallest(PARTNERS, loads)]

    def _hunger(self, node: int) -> float:
        """How much better those on a node could do."""
        trial = self.trial
        worth = trial.filling.worth
        return sum(
            worth(trial.claim(job).curve.points[-1]) - worth(trial.point(job))
            for job, gpus in trial.desk(node).jobs.items()
            if self.thorough or gpus == trial.claim(job).gpus
        )

    def _improve(self, node: int, partners: list[int]) -> int | None:
        """Make the first exchange of a hungry node that pays; returns the other node."""
        for partner in partners:
            if partner != node:
                for ours, theirs in self._deals(node, partner):
                    if self.budget <= 0:
                        return None
                    self.budget -= 1
                    if self._try(node, partner, ours, theirs):
                        return partner
        return None

    # ---- what could be exchanged -------------------------------------------------------------

    def _deals(self, node: int, partner: int) -> Iterator[Deal]:
        """Exchanges of equal numbers of GPUs: our most demanding for their most modest."""
        ours = sorted(self._slices(node), reverse=True)
        theirs = sorted(self._slices(partner))
        tried: set[tuple[tuple[int, int], ...]] = set()
        for deal in self._pairs(ours, theirs, self.trial.desk(partner).gpus):
            kinds = tuple((each.kind, each.gpus) for side in deal for each in (*side, NOBODY))
            if kinds not in tried:
                tried.add(kinds)
                yield deal

    def _pairs(self, ours: list[Slice], theirs: list[Slice], free: int) -> Iterator[Deal]:
        for give in ours:
            if give.gpus <= free:
                yield (give,), ()
            for get in theirs:
                if get.gpus == give.gpus and get.density < give.density:
                    yield (give,), (get,)
            for several in _adding_up(theirs, give.gpus):
                if _mean(several) < give.density:
                    yield (give,), several
        for get in theirs:
            for several in _adding_up(ours, get.gpus):
                if _mean(several) > get.density:
                    yield several, (get,)

    def _slices(self, node: int) -> Iterator[Slice]:
        """What may leave a node: whole jobs, or single GPUs where jobs may be taken apart."""
        trial = self.trial
        for job, gpus in trial.desk(node).jobs.items():
            claim = trial.claim(job)
            target, whole = trial.target(claim), trial.filling
            density = max(target.cpu / whole.cpu, target.memory / whole.memory)
            if gpus == claim.gpus:
                yield Slice(density, job, gpus, id(claim.curve))
            if self.apart and claim.gpus > 1:
                yield Slice(density, job, 1, id(claim.curve) + claim.gpus)

    # ---- trying ------------------------------------------------------------------------------

    def _try(
        self, node: int, partner: int, ours: tuple[Slice, ...], theirs: tuple[Slice, ...]
    ) -> bool:
        """Make an exchange and keep it if it pays."""
        trial = self.trial
        jobs = [job for each in (node, partner) for job in self._members(each)]
        if self.thorough:
            jobs = self._around(node, partner)
        before = sum(trial.filling.worth(trial.point(job)) for job in jobs)
        spots = {each.job: trial.where(each.job) for each in (*ours, *theirs)}
        self._move(ours, node, partner)
        self._move(theirs, partner, node)
        points, after = self._filled(node, partner)
        gain = after - before
        if gain > LEAST and gain * self.payback > self._price(spots):
            trial.points.update(points)
            return True
        for job in spots:
            trial.rise(job)
        for job, old in spots.items():
            trial.sit(job, old)
        return False

    def _around(self, node: int, partner: int) -> list[int]:
        desks = self.trial.desk(node).jobs, self.trial.desk(partner).jobs
        return sorted({**desks[0], **desks[1]})

    def _filled(self, node: int, partner: int) -> tuple[dict[int, Point], float]:
        """How two nodes would be shared out: each alone, unless jobs on several nodes take part."""
        trial = self.trial
        points: dict[int, Point] = {}
        jobs = self._around(node, partner)
        if self.thorough and any(len(trial.where(job)) > 1 for job in jobs):
            filled = trial.filled((node, partner), jobs)
            return dict(zip(jobs, filled.points, strict=True)), filled.worth
        worth = 0.0
        for each in (node, partner):
            members = self._members(each)
            filled = trial.filled_alone(each, members)
            points.update(zip(members, filled.points, strict=True))
            worth += filled.worth
        return points, worth

    def _members(self, node: int) -> list[int]:
        """Those who sit on this node and no other."""
        trial = self.trial
        jobs = trial.desk(node).jobs
        return sorted([job for job, gpus in jobs.items() if gpus == trial.claim(job).gpus])

    def _move(self, slices: tuple[Slice, ...], source: int, target: int) -> None:
        for each in slices:
            spots = dict(self.trial.where(each.job))
            spots[source] -= each.gpus
            spots[target] = spots.get(target, 0) + each.gpus
            self.trial.rise(each.job)
            self.trial.sit(each.job, tuple(sorted((n, g) for n, g in spots.items() if g)))

    def _price(self, movers: Collection[int]) -> float:
        """Work lost by moving those who run already."""
        seated, move = self.trial.occasion.seating.claims, self.trial.occasion.move
        lost = [seated[job].curve.fair.rate for job in movers if job in seated]
        return move * sum(lost) if lost else 0.0


NOBODY = Slice(0.0, -1, 0, 0)


def _adding_up(slices: list[Slice], gpus: int) -> Iterator[tuple[Slice, ...]]:
    """Several slices that make up exactly so many GPUs, taken in order from each one on."""
    for first, start in enumerate(slices if gpus > 1 else ()):
        found, jobs, left = [start], {start.job}, gpus - start.gpus
        for each in slices[first + 1 :]:
            if 0 < each.gpus <= left and each.job not in jobs:
                found.append(each)
                jobs.add(each.job)
                left -= each.gpus
        if not left and len(found) > 1:
            yield tuple(found)


def _mean(slices: tuple[Slice, ...]) -> float:
    """What is aimed at per GPU."""
    return sum(each.density * each.gpus for each in slices) / sum(each.gpus for each in slices)
