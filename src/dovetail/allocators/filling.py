"""Sharing out the CPU and memory of some nodes among the claims that sit on them.

While the queue is long, the sum of speeds counts, because that drains it. Otherwise what counts is
how soon those who run are done, so one over the speed: a small gain of a slow job then beats the
same gain of a fast one. Everybody starts at the floor, which always fits. Then steps up the curves
are taken in order of worth per unit of resource, until nothing fits. A resource that is left over
in the end had too high a price: the filling is tried again with it cheap, and the better result is
improved by trades. Where claims sit is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from math import inf
from typing import NamedTuple

from dovetail.core.claims import NEGLIGIBLE, Curve, Point

Spots = tuple[tuple[int, int], ...]
"""(node, GPUs there) for every node a claim sits on."""

Room = Mapping[int, tuple[int, int]]
"""CPU and memory of each node that the claims may share."""

Member = tuple[Curve, Spots]
"""A claim as far as filling is concerned."""

PRICES = ((1.0, 1.0), (1.0, 0.02), (0.02, 1.0))
"""Prices of CPU and memory, as shares of a node: even, CPU dear, memory dear."""

SPARE = 0.04
"""A resource with more than this share of a node left over was too dear."""

TRADERS = 24
"""Trades are looked for among so many claims at most: their number grows with the square."""

REMEMBERED = 100_000
"""So many ways to fill a node are kept before all are forgotten."""


class Filled(NamedTuple):
    """The point each claim got, in the order of the claims, and what that is worth together."""

    points: list[Point]
    worth: float


Rung = tuple[float, int]
"""(speed gained per price, index of the point it leads to)"""


class Facts(NamedTuple):
    """What filling needs to know of a curve."""

    #: as it was given; kept, because facts are found by its identity
    given: Curve
    #: the same with worth in the place of speed, and back from its points to those given
    curve: Curve
    given_point: dict[Point, Point]
    #: the steps up that are worth their price, for each of `PRICES`
    ladders: list[list[Rung]]
    #: its points, the best first
    best: list[Point]
    #: equal for equal curves, and the same in every process
    digest: int


class Filling:
    """Fills nodes of one kind, and remembers how: the same few mixes of jobs come again."""

    def __init__(self, cpu: int, memory: int, hurry: bool = False) -> None:
        #: count how soon jobs are done, not how much work is done
        self.hurry = hurry
        #: what a node has: resources are priced as shares of it
        self.cpu, self.memory = max(cpu, 1), max(memory, 1)
        # By identity, which the facts keep alive: planners use one curve for all jobs of a model.
        self._facts: dict[int, Facts] = {}
        self._filled: dict[tuple[int, ...], Filled] = {}

    def worth(self, point: Point) -> float:
        """What a claim at that point counts."""
        return -1 / point.rate if self.hurry else point.rate

    def fill(self, members: Sequence[Member], room: Room) -> Filled:
        """Points for all members; where not even their floors fit, the worth is -inf."""
        if len(room) == 1:
            return self._fill_one(members, *room.values())
        facts = [self.facts(curve) for curve, _ in members]
        valued = [(known.curve, spots) for known, (_, spots) in zip(facts, members, strict=True)]
        points, worth = self._best(valued, room)
        back = [known.given_point[point] for known, point in zip(facts, points, strict=True)]
        return Filled(back, worth)

    def _fill_one(self, members: Sequence[Member], room: tuple[int, int]) -> Filled:
        """One node: the result depends on the mix alone, not on who is who."""
        ranked = []
        for index, (curve, spots) in enumerate(members):
            known = self._facts.get(id(curve)) or self.facts(curve)
            ranked.append((known.digest, spots[0][1], index, known))
        ranked.sort()
        key = (*room, *[number for digest, gpus, *_ in ranked for number in (digest, gpus)])
        found = self._filled.get(key)
        if found is None:
            found = self._best(
                [(known.curve, ((0, gpus),)) for _, gpus, _, known in ranked], {0: room}
            )
            if len(self._filled) >= REMEMBERED:
                self._filled.clear()
            self._filled[key] = found
        points = found.points[:]
        for (_, _, index, known), point in zip(ranked, found.points, strict=True):
            points[index] = known.given_point[point]
        return Filled(points, found.worth)

    def _best(self, members: Sequence[Member], room: Room) -> Filled:
        """The best of a few ways to share out the room, improved by trades."""
        filled, left = self._at_price(members, room, 0)
        if left is None:
            return filled
        for price, spare in ((1, left[1] / self.memory), (2, left[0] / self.cpu)):
            if spare > SPARE:
                other, _ = self._at_price(members, room, price)
                if other.worth > filled.worth + NEGLIGIBLE:
                    filled = other
        return self._traded(members, room, filled) if len(members) <= TRADERS else filled

    def _traded(self, members: Sequence[Member], room: Room, filled: Filled) -> Filled:
        """Let one claim climb on what another gives up, while that gains speed."""
        free = {node: [cpu, memory] for node, (cpu, memory) in room.items()}
        for (_, spots), point in zip(members, filled.points, strict=True):
            _put(free, spots, point)
        points = filled.points[:]
        for index, (curve, _) in enumerate(members):
            if points[index].rate < self.facts(curve).best[0].rate - NEGLIGIBLE:
                self._trade(members, index, points, free)
        return Filled(points, sum([point.rate for point in points]))

    def _trade(
        self, members: Sequence[Member], index: int, points: list[Point], free: dict[int, list[int]]
    ) -> None:
        """The best trade of one claim with any other one, if there is one that gains."""
        best, trade = NEGLIGIBLE, None
        curve, spots = members[index]
        for other, (theirs, their_spots) in enumerate(members):
            if other == index or (len(free) > 1 and spots != their_spots):
                continue
            for lower in theirs.points:
                lost = points[other].rate - lower.rate
                if lost <= NEGLIGIBLE or curve.points[-1].rate - points[index].rate - lost <= best:
                    continue
                if not _take(free, their_spots, points[other], lower):
                    continue
                for point in self.facts(curve).best:
                    gain = point.rate - points[index].rate - lost
                    if gain <= best:
                        break
                    if _fits(free, spots, points[index], point):
                        best, trade = gain, (other, lower, point)
                        break
                _take(free, their_spots, lower, points[other])
        if trade is not None:
            other, lower, point = trade
            _take(free, members[other][1], points[other], lower)
            _take(free, spots, points[index], point)
            points[other], points[index] = lower, point

    def _at_price(
        self, members: Sequence[Member], room: Room, price: int
    ) -> tuple[Filled, tuple[int, int] | None]:
        """Fill at one price; also what is left at most on a node, if somebody could use it."""
        free = {node: [cpu, memory] for node, (cpu, memory) in room.items()}
        points: list[Point] = []
        steps: list[tuple[float, int, int, int]] = []
        for index, (curve, spots) in enumerate(members):
            points.append(curve.points[0])
            gpus = _put(free, spots, curve.points[0])
            if len(curve.points) > 1:
                for rung, (gain, to) in enumerate(self.facts(curve).ladders[price]):
                    steps.append((-gain / gpus, index, rung, to))
        if any(cpu < 0 or memory < 0 for cpu, memory in free.values()):
            return Filled(points, -inf), None
        steps.sort()
        stuck = _climb(members, steps, points, free)
        for index in stuck:
            self._squeeze(members[index], index, points, free)
        filled = Filled(points, sum([point.rate for point in points]))
        if not stuck:
            return filled, None
        left = (max(cpu for cpu, _ in free.values()), max(memory for _, memory in free.values()))
        return filled, left

    def _squeeze(
        self, member: Member, index: int, points: list[Point], free: dict[int, list[int]]
    ) -> None:
        """Give a claim whose next step did not fit the fastest point that does."""
        curve, spots = member
        now = points[index]
        for point in self.facts(curve).best:
            if point.rate <= now.rate + NEGLIGIBLE:
                return
            if _take(free, spots, now, point):
                points[index] = point
                return

    def facts(self, given: Curve) -> Facts:
        """What is known of a curve, found out once."""
        found = self._facts.get(id(given))
        if found is None:
            points = [point._replace(rate=self.worth(point)) for point in given.points]
            curve = Curve(tuple(points), given.fair)
            ladders = [self._ladder(curve, *price) for price in PRICES]
            best = sorted(points, key=lambda point: -point.rate)
            digest = blake2b(repr(given).encode(), digest_size=8).digest()
            back = dict(zip(points, given.points, strict=True))
            found = Facts(given, curve, back, ladders, best, int.from_bytes(digest))
            self._facts[id(given)] = found
            self._facts[id(curve)] = found
        return found

    def _ladder(self, curve: Curve, cpu_price: float, memory_price: float) -> list[Rung]:
        """From point to point, always to the one that gains most per price: the concave hull."""

        def cost(point: Point) -> float:
            return cpu_price * point.cpu / self.cpu + memory_price * point.memory / self.memory

        rungs: list[Rung] = []
        points, at = curve.points, 0
        while True:
            here = points[at]
            better = [
                ((point.rate - here.rate) / max(cost(point) - cost(here), NEGLIGIBLE), index)
                for index, point in enumerate(points)
                if point.rate > here.rate + NEGLIGIBLE
            ]
            if not better:
                return rungs
            rungs.append(max(better))
            at = rungs[-1][1]


def _put(free: dict[int, list[int]], spots: Spots, floor: Point) -> int:
    """Seat a claim at its floor; returns its GPUs."""
    total = 0
    for node, gpus in spots:
        here = free[node]
        here[0] -= gpus * floor[0]
        here[1] -= gpus * floor[1]
        total += gpus
    return total


def _climb(
    members: Sequence[Member],
    steps: list[tuple[float, int, int, int]],
    points: list[Point],
    free: dict[int, list[int]],
) -> list[int]:
    """Take steps in order while they fit; returns who could not take theirs."""
    climbed = [0] * len(points)
    stuck: list[int] = []
    for _, index, rung, to in steps:
        if climbed[index] == rung:
            curve, spots = members[index]
            if _take(free, spots, points[index], curve.points[to]):
                points[index] = curve.points[to]
                climbed[index] += 1
            else:
                stuck.append(index)
    return stuck


def _take(free: dict[int, list[int]], spots: Spots, old: Point, new: Point) -> bool:
    """Change a claim's point if all its nodes have the difference."""
    if not _fits(free, spots, old, new):
        return False
    cpu, memory = new[0] - old[0], new[1] - old[1]
    for node, gpus in spots:
        here = free[node]
        here[0] -= cpu * gpus
        here[1] -= memory * gpus
    return True


def _fits(free: dict[int, list[int]], spots: Spots, old: Point, new: Point) -> bool:
    """Have all nodes of a claim the difference between two points?"""
    cpu, memory = new[0] - old[0], new[1] - old[1]
    for node, gpus in spots:
        here = free[node]
        if cpu * gpus > here[0] or memory * gpus > here[1]:
            return False
    return True
