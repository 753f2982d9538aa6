"""Who must go where tenants own numbers of GPUs and one of them wants its own back.

Only those who borrow are asked. Who cannot resume would lose its work: all others go before it,
and where another GPU of the same machine will do, that one is reclaimed. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.model.allocation import Allocation, Part, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.request import WHOLE
from dovetail.tenancy.standing import Taken

Borrowers = dict[int, Taken]
"""By job, first come first."""


def first_to_go(borrowers: Borrowers) -> Iterator[int]:
    """Who can resume, the latest first; then who cannot."""
    yield from (job for job in reversed(borrowers) if borrowers[job].resumable)
    yield from (job for job in reversed(borrowers) if not borrowers[job].resumable)


def is_free(cluster: Cluster, wanted: Allocation) -> bool:
    """Is nobody in the way?"""
    masks = cluster.masks
    there = all(masks[part.node] & part.devices == part.devices for part in wanted.parts)
    return there and _lacking(cluster, wanted, ()) is None


def spared(cluster: Cluster, borrowers: Borrowers, wanted: Allocation) -> Allocation:
    """The same on other devices of the same machines, if that leaves those who cannot resume."""
    fixed = [held.allocation for held in borrowers.values() if not held.resumable]
    if not any(_overlap(each, wanted) for each in fixed):
        return wanted
    resuming = [held.allocation for held in borrowers.values() if held.resumable]
    taken = {part.node: 0 for part in wanted.parts}
    for part in wanted.parts:
        taken[part.node] |= part.devices
    parts = []
    for part in wanted.parts:
        risky = part.devices & _on(part.node, fixed)
        free = cluster.masks[part.node] & ~taken[part.node]
        lent = _on(part.node, resuming) & ~_on(part.node, fixed) & ~taken[part.node]
        devices = _exchanged(part, risky, [*_each(free), *_each(lent & ~free)])
        taken[part.node] = taken[part.node] & ~part.devices | devices
        parts.append(part._replace(devices=devices))
    return allocation_of(tuple(parts), wanted.mode)


def _on(node: int, held: Sequence[Allocation]) -> int:
    """The devices of a machine that are in some allocation."""
    mask = 0
    for each in held:
        for part in each.parts:
            mask |= part.devices if part.node == node else 0
    return mask


def _each(mask: int) -> Iterator[int]:
    return (1 << device for device in range(mask.bit_length()) if mask >> device & 1)


def _exchanged(part: Part, risky: int, others: Sequence[int]) -> int:
    """Devices without the risky ones; as they are, if there are too few others."""
    count = risky.bit_count()
    if part.share != WHOLE or count > len(others):
        return part.devices
    return part.devices & ~risky | sum(others[:count])


def leaving(cluster: Cluster, borrowers: Borrowers, wanted: Allocation) -> list[int] | None:
    """Who borrowed what is needed there; None: others need not go for it."""
    found = [job for job, held in borrowers.items() if _overlap(held.allocation, wanted)]
    lacking = _lacking(cluster, wanted, [borrowers[job].allocation for job in found])
    while lacking is not None:
        beside = (job for job in first_to_go(borrowers) if job not in found)
        there = next((job for job in beside if lacking in _nodes(borrowers[job])), None)
        if there is None:
            return None
        found.append(there)
        lacking = _lacking(cluster, wanted, [borrowers[job].allocation for job in found])
    return found


def _nodes(held: Taken) -> Iterator[int]:
    return (part.node for part in held.allocation.parts)


def _lacking(cluster: Cluster, wanted: Allocation, leaving: Sequence[Allocation]) -> int | None:
    """The first node without the CPU or memory that is wanted there, once these are gone."""
    if not cluster.limited:
        return None
    left: dict[int, list[int]] = {}
    for sign, allocation in [(-1, wanted), *((1, each) for each in leaving)]:
        for part in allocation.parts:
            amounts = left.setdefault(
                part.node, [cluster.cpu[part.node], cluster.memory[part.node]]
            )
            amounts[0] += sign * part.cpu
            amounts[1] += sign * part.memory
    for part in wanted.parts:
        cpu, memory = left[part.node]
        if (part.cpu and cluster.limits_cpu and cpu < 0) or (
            part.memory and cluster.limits_memory and memory < 0
        ):
            return part.node
    return None


def _overlap(one: Allocation, other: Allocation) -> bool:
    return any(
        mine.node == theirs.node and mine.devices & theirs.devices
        for mine in one.parts
        for theirs in other.parts
    )
