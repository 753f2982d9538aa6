"""What a job states it gets; where it is silent, the share that goes with its GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dovetail.core.claims import Curve
from dovetail.model.cluster import Cluster
from dovetail.model.request import Replica


@dataclass(frozen=True)
class Proportional:
    """A job with half the GPUs of a node gets half its cores and memory."""

    by_model: ClassVar[bool] = False

    def grant(
        self, cluster: Cluster, node: int, each: Replica, gpus: int, curve: Curve | None
    ) -> tuple[int, int]:
        """Thousandths of a core and MiB for one replica."""
        machine = cluster.nodes[node]
        # Shares of one device get that share of what goes with the whole device.
        milli = each.gpus * each.share
        cpu = (machine.cpu or 0) * milli // (1000 * machine.gpus) if machine.gpus else 0
        memory = (machine.memory or 0) * milli // (1000 * machine.gpus) if machine.gpus else 0
        return (
            cpu if each.cpu is None else each.cpu,
            memory if each.memory is None else each.memory,
        )
