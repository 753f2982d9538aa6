"""The plain speed model: the mode's time factor, GPU type, and a penalty for being spread out.

A job on more nodes than its GPUs need takes (1 + span_penalty) times as long. A type factor of 2
means twice as fast as the type work is counted in. Neighbours do not matter here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dovetail.model.allocation import Allocation
from dovetail.model.cluster import Cluster
from dovetail.model.job import JobSpec


@dataclass(frozen=True)
class Locality:
    """Rate 1 for a consolidated job on the reference type in its plain mode."""

    span_penalty: float = 0.0
    type_factors: dict[str, float] = field(default_factory=dict)

    @property
    def even(self) -> bool:
        """Is the rate 1 in every plain mode, so that nobody needs to ask?"""
        return not (self.span_penalty or self.type_factors)

    def rate(self, spec: JobSpec, allocation: Allocation, cluster: Cluster) -> float:
        """Work per second."""
        rate = 1.0
        if allocation.mode:
            rate /= spec.request.modes[allocation.mode].time_factor
        if self.type_factors and allocation.parts:
            kind = cluster.nodes[allocation.parts[0].node].type
            rate *= self.type_factors.get(kind, 1.0)
        if self.span_penalty and len(allocation.parts) > 1:
            # Parts of several groups, or several shares, may lie on one node.
            used = len({part.node for part in allocation.parts})
            if used > max(1, -(-allocation.gpus // max(cluster.most, 1))):
                rate /= 1.0 + self.span_penalty
        return rate
