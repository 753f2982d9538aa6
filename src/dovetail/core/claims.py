"""What the joint allocators are asked: claims on servers, and what came of them.

A claim is a job that was admitted by its number of GPUs. A curve is what its profile says on these
servers, as the few (CPU, memory) points worth giving it. Everything is integers: thousandths of a
core and MiB, per GPU on a curve and in total on servers and pieces. Nothing here decides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil
from typing import NamedTuple

from dovetail.model.cluster import Cluster
from dovetail.model.node import Node
from dovetail.model.profile import Profile, Surface
from dovetail.model.request import Replica

NEGLIGIBLE = 1e-9
"""Speeds that differ by less are equal."""


class Point(NamedTuple):
    """An amount per GPU and the speed it gives."""

    cpu: int
    memory: int
    rate: float


class Curve(NamedTuple):
    """The points worth giving a job, cheapest first; all are at least as fast as the fair share."""

    points: tuple[Point, ...]
    #: the proportional share itself; the first point costs no more of anything
    fair: Point

    @property
    def flat(self) -> bool:
        """Is there one amount to give and no other?"""
        return self.points == (self.fair,)


class Server(NamedTuple):
    """What claims may use of one node."""

    node: int
    gpus: int
    cpu: int
    memory: int


class Piece(NamedTuple):
    """A job's part on one node. CPU and memory per GPU are equal on all of its nodes."""

    node: int
    gpus: int
    cpu: int
    memory: int


class Claim(NamedTuple):
    """A job that shall run, and where it runs now, if it does."""

    job: int
    gpus: int
    curve: Curve
    held: tuple[Piece, ...] = ()


Arrangement = dict[int, tuple[Piece, ...]]
"""Pieces by job. A claim is missing only where its GPUs, or an amount it insists on, do not fit."""


def fixed(cpu: int, memory: int, rate: float = 1.0) -> Curve:
    """The curve of a job that gets one amount per GPU and nothing else."""
    point = Point(cpu, memory, rate)
    return Curve((point,), point)


def curve(surface: Surface, cpu: int, memory: int) -> Curve:
    """The curve of a surface where `cpu` and `memory` are the proportional share of one GPU."""
    fair = _point(surface, cpu, memory)
    cores = {1000 * step for step in range(ceil(surface.cores[0]), int(surface.cores[-1]) + 1)}
    cores |= {ceil(1000 * level) for level in surface.cores} | {cpu}
    levels = {ceil(1024 * level) for level in surface.memory} | {memory}
    grid = (_point(surface, c, m) for c in cores for m in levels)
    worthy = [point for point in grid if point.rate >= fair.rate - NEGLIGIBLE]
    # No job falls below its proportional speed, and none may need more than that for it.
    floor = min(
        (point for point in worthy if point.cpu <= cpu and point.memory <= memory),
        key=lambda point: (point.cpu / max(cpu, 1) + point.memory / max(memory, 1), point),
    )
    above = [point for point in worthy if point.rate > floor.rate + NEGLIGIBLE]
    return Curve((floor, *_efficient(above, cpu, memory)), fair)


def _point(surface: Surface, cpu: int, memory: int) -> Point:
    return Point(cpu, memory, surface.at(cpu / 1000, memory / 1024))


def _efficient(points: Iterable[Point], cpu: int, memory: int) -> list[Point]:
    """Points that no other beats or equals in speed with no more of either, cheapest first."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: (-point.rate, point.cpu, point.memory)):
        if not any(
            other.cpu <= point.cpu
            and other.memory <= point.memory
            and other.rate >= point.rate - NEGLIGIBLE
            for other in kept
        ):
            kept.append(point)
    return sorted(kept, key=lambda point: point.cpu / max(cpu, 1) + point.memory / max(memory, 1))


class Curves:
    """The curve of each model on each kind of node, computed once."""

    def __init__(
        self, cluster: Cluster, profiles: Mapping[str, Profile], span_penalty: float = 0.0
    ) -> None:
        self.cluster = cluster
        self.profiles = profiles
        #: how much longer a job takes that is spread over more nodes than it needs
        self.span_penalty = span_penalty
        self._known: dict[tuple[object, ...], Curve | None] = {}
        self._flat: dict[Point, Curve] = {}

    def flat(self, point: Point) -> Curve:
        """The curve of one amount; one object for all that have the same, as allocators like it."""
        return self._flat.setdefault(point, fixed(*point))

    def of(self, model: str, node: int, each: Replica) -> Curve | None:
        """What is worth giving such a replica there; None: it insists on more than its share."""
        machine = self.cluster.nodes[node]
        key = (model, each.cpu, each.memory, machine.type)
        if key not in self._known:
            self._known[key] = self._make(model, machine, each.cpu, each.memory)
        return self._known[key]

    def _make(self, model: str, machine: Node, cpu: int | None, memory: int | None) -> Curve | None:
        share = self._share(machine.type)
        profile = self.profiles.get(model)
        # Speed depends on the two only where the cluster states both.
        limited = self.cluster.limits_cpu and self.cluster.limits_memory
        if cpu is None and memory is None and profile is not None and limited:
            return curve(profile.on(machine.type), *share)
        stated = (share[0] if cpu is None else cpu, share[1] if memory is None else memory)
        if stated[0] > share[0] or stated[1] > share[1]:
            return None
        return self.flat(Point(*stated, 1.0))

    def _share(self, kind: str) -> tuple[int, int]:
        """What goes with one GPU of that type: on its poorest node, so that it fits on any."""
        nodes = [node for node in self.cluster.nodes if node.type == kind and node.gpus]
        cpu = min((node.cpu or 0) // node.gpus for node in nodes)
        return cpu, min((node.memory or 0) // node.gpus for node in nodes)


class Seating:
    """Who sits on which node: the claims that hold something, and sums over them per node.

    Kept by the planner, read by allocators. What a node offers to claims is what it has free plus
    what they hold there, so that everything else on it (holdings of others, jobs that take part
    in no arrangement) is left alone.
    """

    __slots__ = (
        "claims",
        "cpu",
        "floor_cpu",
        "floor_memory",
        "kinds",
        "memory",
        "nodes",
    )

    def __init__(self, nodes: int) -> None:
        self.claims: dict[int, Claim] = {}
        #: per node: job -> GPUs it has there
        self.nodes: list[dict[int, int]] = [{} for _ in range(nodes)]
        #: per node: what claims hold there
        self.cpu = [0] * nodes
        self.memory = [0] * nodes
        #: per node: the least they must be left with
        self.floor_cpu = [0] * nodes
        self.floor_memory = [0] * nodes
        #: how many claims there are of each curve and size
        self.kinds: dict[tuple[int, int], tuple[Curve, int]] = {}

    def seat(self, claim: Claim) -> None:
        """A claim holds its pieces from now on."""
        self.claims[claim.job] = claim
        self._add(claim, 1)
        for piece in claim.held:
            self.nodes[piece.node][claim.job] = piece.gpus

    def leave(self, job: int) -> Claim | None:
        """A claim holds nothing any more."""
        claim = self.claims.pop(job, None)
        if claim is not None:
            self._add(claim, -1)
            for piece in claim.held:
                del self.nodes[piece.node][job]
        return claim

    def _add(self, claim: Claim, sign: int) -> None:
        least = claim.curve.points[0]
        kind = (id(claim.curve), claim.gpus)
        self.kinds[kind] = (claim.curve, self.kinds.get(kind, (claim.curve, 0))[1] + sign)
        for node, gpus, cpu, memory in claim.held:
            self.cpu[node] += sign * cpu
            self.memory[node] += sign * memory
            self.floor_cpu[node] += sign * gpus * least.cpu
            self.floor_memory[node] += sign * gpus * least.memory


class Occasion(NamedTuple):
    """What a joint allocator is asked at one moment, for the nodes of one pool."""

    cluster: Cluster
    seating: Seating
    #: jobs admitted now, first in order first; those with pieces are already told where to sit
    coming: Sequence[Claim]
    #: jobs that sit there but leave in this plan
    going: Collection[int]
    #: nodes on which something changed since the last arrangement
    touched: Collection[int]
    #: the pool is nodes start to stop-1
    start: int
    stop: int
    #: is the queue long, with more jobs waiting than running?
    queue: bool = True
    #: how much longer a job takes that is spread over more nodes than it needs
    span_penalty: float = 0.0
    #: seconds without progress that a move costs
    move: float = 0.0
    #: may the allocator choose nodes? Otherwise the placement does, and nobody is moved
    seats: bool = True
    #: is what a job gets now final while it runs? Then free GPUs keep their fair shares
    lasting: bool = False
