"""Turning an order into a plan: who is admitted, displaced, and where each job goes."""

from __future__ import annotations

from functools import cache
from typing import cast

from dovetail.core.claims import Curves
from dovetail.core.draft import granting
from dovetail.core.ordering import Ordering
from dovetail.core.protocols import Allocator, JointAllocator, Placement
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.model.errors import UserError
from dovetail.model.quota import Quotas
from dovetail.planners.arranged import Arranged
from dovetail.planners.backfill import Conservative, Easy
from dovetail.planners.displacing import Lower
from dovetail.planners.patience import Patient, Reserving
from dovetail.planners.preemptive import Preemptive
from dovetail.planners.protection import Protected
from dovetail.planners.quotas import Limited
from dovetail.planners.walk import Walk


def planner_for(
    cluster: Cluster,
    ordering: Ordering,
    placement: Placement,
    allocator: Allocator,
    costs: Costs,
    curves: Curves | None = None,
    fallback: Allocator | None = None,
    quotas: Quotas | None = None,
) -> Walk | Arranged:
    """The default planner that does what the ordering's parameters ask for, within quotas.

    A joint allocator also needs `curves`, and a `fallback` for jobs that are not whole GPUs.
    """
    joint = isinstance(allocator, JointAllocator)
    if joint and quotas is not None and quotas.beyond_gpus:
        raise UserError(
            "quotas of cores or memory do not go with an allocator that shares them out by itself: "
            "limit GPUs alone, or take the allocator proportional"
        )
    kinds = _kinds(ordering, quotas)
    walk = _joined(kinds)(cluster, ordering, placement, allocator, costs, curves, quotas)
    if not isinstance(allocator, JointAllocator) or curves is None or fallback is None:
        return walk
    return Arranged(walk, allocator, curves, granting(cluster, fallback))


def _kinds(ordering: Ordering, quotas: Quotas | None) -> tuple[type[Walk], ...]:
    """The kind of walk, behind all that is mixed into it."""
    mixed: list[type[Walk]] = []
    if quotas is not None:
        mixed.append(Limited)
    if ordering.min_run:
        mixed.append(Protected)
    if ordering.displace == "lower":
        mixed.append(Lower)
    if ordering.patience is not None:
        mixed.append(Patient)
    if ordering.preempt:
        return (*mixed, Preemptive)
    if ordering.patience is not None and ordering.skip and ordering.backfill == "none":
        # Strict walks need no reservation: they stop at the first misfit anyway.
        return (*mixed[:-1], Reserving)
    kinds: dict[str, type[Walk]] = {"none": Walk, "easy": Easy, "conservative": Conservative}
    return (*mixed, kinds[ordering.backfill])


@cache
def _joined(kinds: tuple[type[Walk], ...]) -> type[Walk]:
    """One class of several, the first to be asked first."""
    if kinds[-1] is Walk and len(kinds) > 1:
        kinds = kinds[:-1]
    name = "".join(kind.__name__ for kind in kinds)
    return kinds[0] if len(kinds) == 1 else cast("type[Walk]", type(name, kinds, {}))
