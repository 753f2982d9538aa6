"""A cheap what-if: places a request on a copy of the cluster, whole or not at all.

Gang semantics live here, so no planner can violate them. The copy is made on the first change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from dovetail.core.claims import Curves
from dovetail.core.placing import ENOUGH, share_of_device, without_gpus
from dovetail.core.protocols import Allocator, Ask, Placement
from dovetail.model.allocation import Allocation, Part, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.node import Pool
from dovetail.model.request import WHOLE, Alternative, Group, Mode, Request


@dataclass(slots=True)
class Option:
    """One concrete way to satisfy a request: a mode and the asks that must all be met."""

    asks: tuple[Ask, ...]
    mode: int
    labels: tuple[str, ...]
    #: devices of all asks together
    gpus: int
    #: those of them that must be wholly free
    whole_gpus: int
    milli_gpus: int
    #: one ask for whole devices and no labels: the placement alone decides
    plain: bool
    #: allocations on one node, by the identity of their parts, which they keep alive: placements
    #: give the same parts again and again
    made: dict[int, Allocation] = field(default_factory=dict, init=False, compare=False, repr=False)


Grant = Callable[[int, Group], tuple[int, int]]
"""CPU and memory of one replica of a group on nodes like a given one."""


def granting(
    cluster: Cluster, allocator: Allocator, curves: Curves | None = None, model: str = ""
) -> Grant:
    """What an allocator grants the replicas of a model's jobs."""

    def grant(node: int, group: Group) -> tuple[int, int]:
        curve = None
        if curves is not None and allocator.by_model and cluster.nodes[node].gpus:
            curve = curves.of(model, node, group.each)
        return allocator.grant(cluster, node, group.each, group.gpus, curve)

    return grant


def options(request: Request, cluster: Cluster, grant: Grant) -> tuple[Option, ...]:
    """All ways to satisfy a request here: best alternative, type, mode and width first."""
    return tuple(
        _option(asks, index, request.labels)
        for alternative in request.alternatives
        for pool in _pools(cluster, alternative)
        for index, mode in enumerate(request.modes)
        for asks in _widths(alternative, mode, pool, grant)
    )


def _option(asks: tuple[Ask, ...], mode: int, labels: tuple[str, ...]) -> Option:
    gpus = sum(ask.units * ask.gpus for ask in asks)
    whole = sum(ask.units * ask.gpus for ask in asks if ask.share == WHOLE)
    milli = sum(ask.units * ask.gpus * ask.share for ask in asks)
    plain = len(asks) == 1 and not labels and asks[0].gpus > 0 and asks[0].share == WHOLE
    return Option(asks, mode, labels, gpus, whole, milli, plain)


def _pools(cluster: Cluster, alternative: Alternative) -> Iterator[Pool]:
    if not alternative.types:
        if any(group.gpus for group in alternative.groups):
            yield from cluster.pools
        else:
            # Who needs no GPU should not sit in front of one.
            yield from sorted(cluster.pools, key=lambda pool: cluster.nodes[pool.start].gpus)
    for kind in alternative.types:
        yield from (pool for pool in cluster.pools if pool.type == kind)


def _widths(
    alternative: Alternative, mode: Mode, pool: Pool, grant: Grant
) -> Iterator[tuple[Ask, ...]]:
    """Full width first; groups that can live with less shrink together, one replica at a time."""
    spread = max(group.most - group.least for group in alternative.groups)
    for fewer in range(spread + 1):
        asks = []
        for group in alternative.groups:
            each = group.each
            cpu, memory = grant(pool.start, group)
            units = max(group.least, group.most - fewer)
            memory = int(memory * mode.memory_factor)
            gpu_memory = int(each.gpu_memory * mode.memory_factor)
            asks.append(
                Ask(units, each.gpus, pool.start, pool.stop, cpu, memory, each.share, gpu_memory)
            )
        yield tuple(asks)


def _allocation(option: Option, parts: tuple[Part, ...]) -> Allocation:
    allocation = Allocation(parts, option.gpus, option.mode, option.milli_gpus)
    if len(parts) == 1:
        if len(option.made) >= ENOUGH:
            option.made.clear()
        option.made[id(parts)] = allocation
    return allocation


class Draft:
    """The cluster as it would be. Reading is free; the first change makes a copy."""

    __slots__ = ("_owned", "cluster", "placement")

    def __init__(self, cluster: Cluster, placement: Placement) -> None:
        self.cluster = cluster
        self.placement = placement
        self._owned = False

    def find(self, choices: Sequence[Option]) -> Allocation | None:
        """A place for the first option that fits, or None. Changes nothing."""
        idle = self.cluster.idle
        for option in choices:
            if option.whole_gpus > idle:
                # More may be free than a view lets anybody have.
                continue
            if option.plain:
                parts = self.placement.place(self.cluster, option.asks[0])
            else:
                parts = self._find_all(option)
            if parts is not None:
                return option.made.get(id(parts)) or _allocation(option, parts)
        return None

    def _find(self, cluster: Cluster, ask: Ask) -> tuple[Part, ...] | None:
        if not ask.gpus:
            return without_gpus(cluster, ask)
        if ask.share < WHOLE:
            return share_of_device(cluster, ask)
        return self.placement.place(cluster, ask)

    def _find_all(self, option: Option) -> tuple[Part, ...] | None:
        twin = self.cluster.copy()
        for index, node in enumerate(twin.nodes) if option.labels else ():
            if not set(option.labels) <= set(node.labels):
                twin.close(index, "lacks a label")
        parts: tuple[Part, ...] = ()
        for ask in option.asks:
            found = self._find(twin, ask)
            if found is None:
                return None
            twin.take(allocation_of(found))
            parts += found
        return parts

    def take(self, allocation: Allocation) -> None:
        """Occupy an allocation in the draft."""
        self._own()
        self.cluster.take(allocation)

    def release(self, allocation: Allocation) -> None:
        """Free an allocation in the draft."""
        self._own()
        self.cluster.release(allocation)

    def fork(self) -> Draft:
        """A draft of the draft."""
        return Draft(self.cluster, self.placement)

    def _own(self) -> None:
        if not self._owned:
            self.cluster = self.cluster.copy()
            self._owned = True
