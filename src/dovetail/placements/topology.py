"""Close together: one node, else one rack, else one region, else as few racks as possible.

Levels come from the nodes' `place` (`rack=` in the cluster spec or file). Inside the chosen group
of nodes the job takes the fewest nodes; among groups the tightest sufficient one is chosen, so
that empty racks stay empty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from dovetail.core.placing import by_room, fill, on_fewest_nodes, part, tightest
from dovetail.core.protocols import Ask
from dovetail.model.allocation import Part
from dovetail.model.cluster import Cluster


@dataclass(frozen=True)
class Topology:
    """Rack-aware placement that never refuses what free devices could hold."""

    relaxed: ClassVar[bool] = True

    def place(self, cluster: Cluster, ask: Ask) -> tuple[Part, ...] | None:
        """The innermost level at which the job fits."""
        node = tightest(cluster, ask, ask.units)
        if node >= 0:
            return (part(cluster, node, ask.units, ask),)
        for groups in _levels(cluster, ask):
            found = self._in_one(cluster, ask, groups)
            if found is not None:
                return found
        return self._over_racks(cluster, ask)

    def _in_one(
        self, cluster: Cluster, ask: Ask, groups: list[tuple[int, int]]
    ) -> tuple[Part, ...] | None:
        """The group with the fewest sufficient free devices."""
        need = ask.units * ask.gpus
        ranked = sorted((cluster.idle_in(a, b), a, b) for a, b in groups)
        for idle, start, stop in ranked:
            if idle >= need:
                found = on_fewest_nodes(cluster, replace(ask, start=start, stop=stop))
                if found is not None:
                    return found
        return None

    def _over_racks(self, cluster: Cluster, ask: Ask) -> tuple[Part, ...] | None:
        """Racks with most free devices first, emptiest nodes first inside each."""
        levels = _levels(cluster, ask)
        racks = levels[0] if levels else [(ask.start, ask.stop)]
        ranked = sorted(racks, key=lambda rack: (-cluster.idle_in(*rack), rack))
        nodes = [node for rack in ranked for node in by_room(cluster, *rack)]
        return fill(cluster, ask, nodes)


def _levels(cluster: Cluster, ask: Ask) -> list[list[tuple[int, int]]]:
    """The runs of each level that lie in the acceptable range."""
    return [
        [(start, stop) for start, stop in runs if ask.start <= start and stop <= ask.stop]
        for runs in cluster.levels
    ]
