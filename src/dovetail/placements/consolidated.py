"""As few nodes as possible, or wait: the rule of YARN-based managers, Tiresias and Helios.

A job that one node could hold needs one node with room. A wider one needs wholly idle nodes and
one more node for the remainder. `fit=first` takes the first node that will do; `fit=best` the one
with the fewest sufficient free devices, and puts a remainder on the next most free node, failing
if that one is too full (Helios).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dovetail.core.placing import alone, by_room, earliest, part, room, tightest
from dovetail.core.protocols import Ask
from dovetail.model.allocation import Part
from dovetail.model.cluster import Cluster
from dovetail.model.errors import UserError


@dataclass(frozen=True)
class Consolidated:
    """Fewest nodes or nothing."""

    fit: str = "first"

    relaxed: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.fit not in ("first", "best"):
            raise UserError(f"consolidated:fit={self.fit}: say first or best")

    def place(self, cluster: Cluster, ask: Ask) -> tuple[Part, ...] | None:
        """One node, or idle nodes and a remainder."""
        one = tightest if self.fit == "best" else earliest
        if ask.units * ask.gpus <= cluster.most:
            node = one(cluster, ask, ask.units)
            if node >= 0:
                return alone(cluster, node, ask)
            if ask.units * ask.gpus <= _widest(cluster, ask):
                return None
        return self._wide(cluster, ask)

    def _wide(self, cluster: Cluster, ask: Ask) -> tuple[Part, ...] | None:
        parts: list[Part] = []
        left = ask.units
        ranked = list(by_room(cluster, ask.start, ask.stop))
        for position, node in enumerate(ranked):
            size = cluster.nodes[node].gpus // ask.gpus
            if left < size or cluster.free[node] < size * ask.gpus:
                return self._remainder(cluster, ask, parts, left, ranked[position:])
            if room(cluster, node, ask) < size:
                continue
            parts.append(part(cluster, node, size, ask))
            left -= size
            if not left:
                return tuple(parts)
        return None

    def _remainder(
        self, cluster: Cluster, ask: Ask, parts: list[Part], left: int, nodes: list[int]
    ) -> tuple[Part, ...] | None:
        """The rest of a wide job on one node: the most free one, or the first that will do."""
        if not parts:
            return None
        candidates = nodes[:1] if self.fit == "best" else sorted(nodes)
        for node in candidates:
            if room(cluster, node, ask) >= left:
                return (*parts, part(cluster, node, left, ask))
        return None


def _widest(cluster: Cluster, ask: Ask) -> int:
    if ask.start == 0 and ask.stop == len(cluster.nodes):
        return cluster.most
    return max(node.gpus for node in cluster.nodes[ask.start : ask.stop])
