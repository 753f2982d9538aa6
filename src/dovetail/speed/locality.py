"""The plain speed model: width, the mode's time factor, GPU type, a penalty for being spread out.

A job that can be narrower and is, with w of its W GPUs, runs at (w / W) ** scaling of its full
rate: in proportion, unless something else is known. A job on more nodes than its GPUs need takes
(1 + span_penalty) times as long. A type factor of 2 means twice as fast as the type work is counted
in. Neighbours do not matter here.
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
    #: 1: half the GPUs, half the speed; below 1: a narrow job makes more of each GPU
    scaling: float = 1.0

    @property
    def even(self) -> bool:
        """Is the rate 1 in every plain mode at full width, so that nobody needs to ask?"""
        return not (self.span_penalty or self.type_factors)

    def rate(self, spec: JobSpec, allocation: Allocation, cluster: Cluster) -> float:
        """Work per second."""
        rate, request = 1.0, spec.request
        if allocation.gpus != request.gpus and (full := request.full(allocation.gpus)):
            rate = float((allocation.gpus / full) ** self.scaling)
        if allocation.mode:
            rate /= request.modes[allocation.mode].time_factor
        if self.type_factors and allocation.parts:
            kind = cluster.nodes[allocation.parts[0].node].type
            rate *= self.type_factors.get(kind, 1.0)
        if self.span_penalty and len(allocation.parts) > 1:
            # Parts of several groups, or several shares, may lie on one node.
            used = len({part.node for part in allocation.parts})
            if used > max(1, -(-allocation.gpus // max(cluster.most, 1))):
                rate /= 1.0 + self.span_penalty
        return rate
