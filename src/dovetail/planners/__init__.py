"""Turning an order into a plan: who is admitted, displaced, and where each job goes."""

from __future__ import annotations

from dovetail.core.claims import Curves
from dovetail.core.draft import granting
from dovetail.core.ordering import Ordering
from dovetail.core.protocols import Allocator, JointAllocator, Placement
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.planners.arranged import Arranged
from dovetail.planners.backfill import Conservative, Easy
from dovetail.planners.patience import (
    Patient,
    PatientConservative,
    PatientEasy,
    PatientPreemptive,
    Reserving,
)
from dovetail.planners.preemptive import Preemptive
from dovetail.planners.walk import Walk


def planner_for(
    cluster: Cluster,
    ordering: Ordering,
    placement: Placement,
    allocator: Allocator,
    costs: Costs,
    curves: Curves | None = None,
    fallback: Allocator | None = None,
) -> Walk | Arranged:
    """The default planner that does what the ordering's parameters ask for.

    A joint allocator also needs `curves`, and a `fallback` for jobs that are not whole GPUs.
    """
    kind = _impatient(ordering) if ordering.patience is not None else _plain(ordering)
    walk = kind(cluster, ordering, placement, allocator, costs, curves)
    if not isinstance(allocator, JointAllocator) or curves is None or fallback is None:
        return walk
    return Arranged(walk, allocator, curves, granting(cluster, fallback))


def _plain(ordering: Ordering) -> type[Walk]:
    if ordering.preempt:
        return Preemptive
    return {"none": Walk, "easy": Easy, "conservative": Conservative}[ordering.backfill]


def _impatient(ordering: Ordering) -> type[Walk]:
    """Strict walks need no reservation: they stop at the first misfit anyway."""
    if ordering.preempt:
        return PatientPreemptive
    none = Reserving if ordering.skip else Patient
    return {"none": none, "easy": PatientEasy, "conservative": PatientConservative}[
        ordering.backfill
    ]
