"""Occasions for joint allocators: random pools, claims and seatings, and what must hold of answers.

Speeds are looked up through the surfaces here, so that an allocator's own numbers prove nothing.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from placed_optimum import Instance, random_surface

from dovetail.core.claims import Arrangement, Claim, Curve, Occasion, Piece, Seating, curve
from dovetail.core.protocols import JointAllocator
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.node import Node
from dovetail.model.profile import Surface
from dovetail.profiles import published

Shape = tuple[int, int, int]
"""GPUs, cores and GiB of one server."""

SHAPES: tuple[Shape, ...] = (
    (8, 24, 500),
    (8, 64, 500),
    (4, 10, 200),
    (8, 12, 1000),
    (2, 48, 100),
    (16, 48, 750),
    (3, 7, 100),
    (1, 4, 64),
)
"""Even and odd shares, rich and poor in either resource."""

DEAR = 1e9
"""A price nobody pays."""


class Pool(NamedTuple):
    """A cluster, its curves with the surfaces they were made of, and claims on it."""

    cluster: Cluster
    surfaces: dict[int, Surface]
    claims: list[Claim]

    @property
    def share(self) -> tuple[int, int]:
        node = self.cluster.nodes[0]
        return (node.cpu or 0) // node.gpus, (node.memory or 0) // node.gpus


def servers(count: int, shape: Shape) -> Cluster:
    gpus, cores, memory = shape
    return Cluster([Node(f"n{i}", gpus, 1000 * cores, 1024 * memory) for i in range(count)])


def pool_of(rng: Random, nodes: int, shape: Shape, load: float = 1.0) -> Pool:
    """Claims of one to sixteen GPUs on some or all GPUs of a pool; more than fit if `load` > 1."""
    cluster = servers(nodes, shape)
    share = 1000 * shape[1] // shape[0], 1024 * shape[2] // shape[0]
    models = [*(profile.on("") for profile in published().values())]
    models += [random_surface(rng, share) for _ in range(4)]
    curves = [curve(model, *share) for model in models]
    left, claims, surfaces = round(load * nodes * shape[0]), [], {}
    while left > 0:
        width = rng.choice([each for each in (1, 1, 1, 2, 3, 4, 8, 16) if each <= left])
        which = rng.randrange(len(models))
        surfaces[len(claims)] = models[which]
        claims.append(Claim(len(claims), width, curves[which]))
        left -= width
    return Pool(cluster, surfaces, claims)


def occasion(pool: Pool, seating: Seating | None = None, **more: object) -> Occasion:
    """Everybody who does not sit comes."""
    seated = seating or Seating(len(pool.cluster.nodes))
    coming = [claim for claim in pool.claims if claim.job not in seated.claims]
    settings = {"going": (), "touched": (), "start": 0, "stop": len(pool.cluster.nodes), **more}
    return Occasion(pool.cluster, seated, coming, **settings)  # type: ignore[arg-type]


def seat(pool: Pool, arrangement: Arrangement) -> Seating:
    """Carry an arrangement out: take what it says on the cluster, which refuses too much."""
    seating = Seating(len(pool.cluster.nodes))
    for claim in pool.claims:
        pieces = arrangement.get(claim.job, ())
        if pieces:
            parts = []
            for node, gpus, cpu, memory in pieces:
                parts.append(Part(node, pool.cluster.devices(node, gpus), cpu, memory))
            pool.cluster.take(allocation_of(tuple(parts)))
            seating.seat(claim._replace(held=pieces))
    return seating


def assert_promises(pool: Pool, arrangement: Arrangement, everybody: bool = True) -> None:
    """All that fit by GPUs are placed, whole; none is slower than with its proportional share."""
    if everybody:
        assert arrangement.keys() == {claim.job for claim in pool.claims}
    for claim in pool.claims:
        if claim.job in arrangement:
            assert_kept(pool, claim, arrangement[claim.job])
    assert_capacity(pool.cluster, arrangement)


def assert_kept(pool: Pool, claim: Claim, pieces: tuple[Piece, ...]) -> None:
    assert sum(piece.gpus for piece in pieces) == claim.gpus
    assert all(piece.gpus > 0 for piece in pieces)
    assert len({piece.node for piece in pieces}) == len(pieces)
    amounts = {(piece.cpu / piece.gpus, piece.memory / piece.gpus) for piece in pieces}
    assert len(amounts) == 1, "its parts are not alike"
    cpu, memory = amounts.pop()
    surface, share = pool.surfaces[claim.job], pool.share
    fair = surface.at(share[0] / 1000, share[1] / 1024)
    assert surface.at(cpu / 1000, memory / 1024) >= fair - 1e-9, "slower than its share"


def assert_capacity(cluster: Cluster, arrangement: Arrangement) -> None:
    """Pieces fit what is free on the cluster as it is."""
    used = [[0, 0, 0] for _ in cluster.nodes]
    for pieces in arrangement.values():
        for node, *amounts in pieces:
            used[node] = [a + b for a, b in zip(used[node], amounts, strict=True)]
    for node, (gpus, cpu, memory) in enumerate(used):
        assert gpus <= cluster.free[node]
        assert cpu <= cluster.cpu[node]
        assert memory <= cluster.memory[node]


def arranged(instance: Instance, allocator: JointAllocator, span_penalty: float) -> Arrangement:
    """What an allocator makes of an instance from scratch, with a queue."""
    nodes = [Node(f"n{s.node}", s.gpus, s.cpu, s.memory) for s in instance.servers]
    seating, count = Seating(len(nodes)), len(nodes)
    asked = Occasion(Cluster(nodes), seating, instance.claims, (), (), 0, count, True, span_penalty)
    return allocator.arrange(asked)


def fresh(pool: Pool) -> Pool:
    """The same pool made of other objects."""
    copies: dict[int, Curve] = {}
    for claim in pool.claims:
        copies.setdefault(id(claim.curve), Curve((*claim.curve.points,), claim.curve.fair))
    claims = [claim._replace(curve=copies[id(claim.curve)]) for claim in pool.claims]
    return Pool(pool.cluster.copy(), pool.surfaces, claims)
