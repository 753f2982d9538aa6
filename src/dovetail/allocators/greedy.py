"""Everybody gets what makes them fastest, or waits until it is free.

Synergy-Greedy (Mohan et al., OSDI'22), kept for comparison: GPUs stay idle where CPU or memory run
out first, and demanding jobs wait longest. A job wider than its nodes allow is held to what they
have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dovetail.core.claims import Curve
from dovetail.model.cluster import Cluster
from dovetail.model.request import Replica


@dataclass(frozen=True)
class Greedy:
    """The fastest point of the job's profile, no less."""

    by_model: ClassVar[bool] = True

    def grant(
        self, cluster: Cluster, node: int, each: Replica, gpus: int, curve: Curve | None
    ) -> tuple[int, int]:
        """Thousandths of a core and MiB for one replica."""
        if curve is None or not each.gpus:
            return each.cpu or 0, each.memory or 0
        # The dearest point of a curve is not always the fastest.
        machine, most = cluster.nodes[node], max(curve.points, key=lambda point: point.rate)
        together = min(gpus, machine.gpus)
        cpu = min(most.cpu, (machine.cpu or 0) // together)
        memory = min(most.memory, (machine.memory or 0) // together)
        return cpu * each.gpus * each.share // 1000, memory * each.gpus * each.share // 1000
