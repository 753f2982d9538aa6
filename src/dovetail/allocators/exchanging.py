"""Letting claims change places between nodes, where everybody together gets faster by it.

One node's hungry job against another's modest one, or into another's free GPU. Each exchange is
tried by filling both nodes anew; the sum of speeds decides, and a move must earn its cost back.
Jobs on several nodes stay where they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import nsmallest

from dovetail.allocators.filling import Filled, Spots
from dovetail.allocators.trial import Desk, Trial
from dovetail.core.claims import Curve

PARTNERS = 8
"""So many other nodes are looked at for each hungry one, the least wanted first."""

LEAST = 0.01
"""Exchanges that gain less speed than this, in jobs at their proportional speed, are not made."""


def exchange(trial: Trial, nodes: Collection[int], budget: int, payback: float) -> None:
    """Improve the nodes just settled by exchanges, within a budget of trials."""
    if budget > 0:
        Exchanging(trial, budget, payback).run(nodes)


class Exchanging:
    """A search for better seats, hungriest node first."""

    def __init__(self, trial: Trial, budget: int, payback: float) -> None:
        self.trial = trial
        self.budget = budget
        self.payback = payback
        occasion = trial.occasion
        nodes = range(occasion.start, occasion.stop)
        loads = [(trial.load(node), node) for node in nodes if node not in occasion.cluster.closed]
        self._calmest = [node for _, node in nsmallest(PARTNERS, loads)]

    def run(self, nodes: Collection[int]) -> None:
        """Exchange while it helps and the budget lasts."""
        hungry = [(self._hunger(node), node) for node in nodes]
        queue = [node for hunger, node in sorted(hungry, reverse=True) if hunger > LEAST]
        while queue and self.budget > 0:
            node = queue.pop(0)
            partner = self._improve(node)
            if partner is not None:
                queue += [each for each in (node, partner) if self._hunger(each) > LEAST]

    def _hunger(self, node: int) -> float:
        """How much faster those on a node could be."""
        trial = self.trial
        hunger = 0.0
        for job in trial.desk(node).jobs:
            if len(trial.where(job)) == 1:
                hunger += trial.claim(job).curve.points[-1].rate - trial.point(job).rate
        return hunger

    def _improve(self, node: int) -> int | None:
        """Make the first exchange of a hungry node that pays; returns the other node."""
        for partner in self._partners(node):
            self.budget -= 1
            before = self._rate(node) + self._rate(partner)
            for ours, theirs in self._pairs(node, partner):
                if self.budget <= 0:
                    return None
                self.budget -= 1
                if self._try(node, partner, ours, theirs, before):
                    return partner
        return None

    def _partners(self, node: int) -> list[int]:
        """Other nodes of the pool, the least wanted first."""
        own = self.trial.desk(node).load
        others = [other for other in self._calmest if other != node]
        return [other for other in others if self.trial.desk(other).load < own]

    def _pairs(self, node: int, partner: int) -> Iterator[tuple[int, int | None]]:
        """Jobs that could change places: ours wants more than it has and more than theirs."""
        trial = self.trial
        desk = trial.desk(partner)
        tried: set[tuple[int, int]] = set()
        theirs = sorted(self._movable(desk), key=self._wants)
        for ours in sorted(self._movable(trial.desk(node)), key=self._wants, reverse=True):
            claim = trial.claim(ours)
            if (
                desk.seats(claim.curve.points[0]) >= claim.gpus
                and (id(claim.curve), 0) not in tried
            ):
                tried.add((id(claim.curve), 0))
                yield ours, None
            for other in theirs:
                if trial.claim(other).gpus != claim.gpus or self._wants(other) >= self._wants(ours):
                    continue
                pair = (id(claim.curve), id(trial.claim(other).curve))
                if pair not in tried:
                    tried.add(pair)
                    yield ours, other

    def _movable(self, desk: Desk) -> list[int]:
        return [job for job in desk.jobs if len(self.trial.where(job)) == 1]

    def _wants(self, job: int) -> float:
        claim = self.trial.claim(job)
        most, whole = claim.curve.points[-1], self.trial.filling
        return claim.gpus * max(most.cpu / whole.cpu, most.memory / whole.memory)

    def _rate(self, node: int) -> float:
        return self._filled(node).worth

    def _filled(self, node: int) -> Filled:
        """How a node would be shared among those who sit there alone; the others keep theirs."""
        trial = self.trial
        desk = trial.desk(node)
        cpu, memory = desk.cpu, desk.memory
        members: list[tuple[Curve, Spots]] = []
        for job in self._members(node):
            members.append((trial.claim(job).curve, trial.where(job)))
        for job in desk.jobs.keys() - self._members(node) if len(members) < len(desk.jobs) else ():
            point, gpus = trial.point(job), desk.jobs[job]
            cpu, memory = cpu - gpus * point.cpu, memory - gpus * point.memory
        return trial.filling.fill(members, {node: (cpu, memory)})

    def _members(self, node: int) -> list[int]:
        return sorted(self._movable(self.trial.desk(node)))

    def _try(self, node: int, partner: int, ours: int, theirs: int | None, before: float) -> bool:
        """Exchange two jobs (or move one) and keep it if it pays."""
        trial = self.trial
        self._swap(node, partner, ours, theirs)
        filled = [self._filled(each) for each in (node, partner)]
        gain = sum(each.worth for each in filled) - before
        if gain * self.payback > self._price(ours, theirs) and gain > LEAST:
            for each, result in zip((node, partner), filled, strict=True):
                trial.points.update(zip(self._members(each), result.points, strict=True))
            return True
        self._swap(partner, node, ours, theirs)
        return False

    def _price(self, ours: int, theirs: int | None) -> float:
        """Work lost by moving those who run already."""
        seated, move = self.trial.occasion.seating.claims, self.trial.occasion.move
        movers = [job for job in (ours, theirs) if job is not None and job in seated]
        return move * sum(self.trial.claim(job).curve.fair.rate for job in movers)

    def _swap(self, source: int, target: int, ours: int, theirs: int | None) -> None:
        trial = self.trial
        trial.rise(ours)
        if theirs is not None:
            trial.rise(theirs)
            trial.sit(theirs, ((source, trial.claim(theirs).gpus),))
        trial.sit(ours, ((target, trial.claim(ours).gpus),))
