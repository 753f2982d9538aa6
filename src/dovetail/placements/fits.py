"""Placements that never refuse a job that enough free devices could hold, wherever they are.

They prefer one node and differ in which; a job that no node can take is spread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from zlib import crc32

from dovetail.core.placing import (
    alone,
    by_index,
    by_room,
    earliest,
    fill,
    on_fewest_nodes,
    tightest,
)
from dovetail.core.protocols import Ask
from dovetail.model.allocation import Part
from dovetail.model.cluster import Cluster


@dataclass(frozen=True)
class Count:
    """Only the number of free GPUs matters: lowest node first, boundaries ignored."""

    relaxed: ClassVar[bool] = True

    def place(self, cluster: Cluster, ask: Ask) -> tuple[Part, ...] | None:
        """Fill nodes by index."""
        return fill(cluster, ask, by_index(cluster, ask))


@dataclass(frozen=True)
class BestFit:
    """The node with the fewest sufficient free GPUs, else the fewest nodes."""

    relaxed: ClassVar[bool] = True

    def place(self, cluster: Cluster, ask: Ask) -> tuple[Part, ...] | None:
        """One tight node, or spread over the emptiest."""
        node = tightest(cluster, ask, ask.units)
        if node >= 0:
            return alone(cluster, node, ask)
        return on_fewest_nodes(cluster, ask)


@dataclass(frozen=True)
class WorstFit:
    """The emptiest nodes first: keeps load even and leaves holes everywhere."""

    relaxed: ClassVar[bool] = True

    def place(self, cluster: Cluster, ask: Ask) -> tuple[Part, ...] | None:
        """Fill nodes by free devices."""
        return fill(cluster, ask, by_room(cluster, ask.start, ask.stop))


@dataclass(frozen=True)
class FirstFit:
    """The first node that takes the whole job, else nodes by index."""

    relaxed: ClassVar[bool] = True

    def place(self, cluster: Cluster, ask: Ask) -> tuple[Part, ...] | None:
        """One early node, or fill by index."""
        node = earliest(cluster, ask, ask.units)
        if node >= 0:
            return alone(cluster, node, ask)
        return fill(cluster, ask, by_index(cluster, ask))


@dataclass(frozen=True)
class Random:
    """A random node that takes the whole job, else nodes from a random one on; a baseline.

    Random but pure: the choice is a hash of the seed and of what is free.
    """

    relaxed: ClassVar[bool] = True
    seed: int = 0

    def place(self, cluster: Cluster, ask: Ask) -> tuple[Part, ...] | None:
        """Hash the state, pick a node."""
        draw = crc32(cluster.free, self.seed ^ ask.units)
        nodes = [
            node
            for node in cluster.sufficient(ask.units * ask.gpus, ask.start, ask.stop)
            if cluster.has(node, ask.units * ask.cpu, ask.units * ask.memory)
        ]
        if nodes:
            return alone(cluster, nodes[draw % len(nodes)], ask)
        first = ask.start + draw % (ask.stop - ask.start)
        return fill(cluster, ask, [*range(first, ask.stop), *range(ask.start, first)])
