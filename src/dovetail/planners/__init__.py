"""Turning an order into a plan: who is admitted, displaced, and where each job goes."""

from __future__ import annotations

from dovetail.core.ordering import Ordering
from dovetail.core.protocols import Allocator, Placement
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.planners.backfill import Conservative, Easy
from dovetail.planners.preemptive import Preemptive
from dovetail.planners.walk import Walk


def planner_for(
    cluster: Cluster, ordering: Ordering, placement: Placement, allocator: Allocator, costs: Costs
) -> Walk:
    """The default planner that does what the ordering's parameters ask for."""
    if ordering.preempt:
        return Preemptive(cluster, ordering, placement, allocator, costs)
    if ordering.backfill == "easy":
        return Easy(cluster, ordering, placement, allocator, costs)
    if ordering.backfill == "conservative":
        return Conservative(cluster, ordering, placement, allocator, costs)
    return Walk(cluster, ordering, placement, allocator, costs)
