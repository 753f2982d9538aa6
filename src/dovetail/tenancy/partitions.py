"""Hard walls: each tenant has its own nodes and its own queue, and sees nothing else.

A partition is a list of nodes of the physical cluster; its view is a cluster of those nodes alone,
so binding changes node numbers. Jobs of tenants without a partition are refused with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dovetail.core.holding import occupy
from dovetail.core.protocols import Bound, Held, Seat
from dovetail.model.allocation import Allocation, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.errors import UserError
from dovetail.model.job import Job, JobSpec
from dovetail.model.plan import Reason
from dovetail.model.tenants import Estate, Overview


class Partitions:
    """Nodes per partition, by their numbers in the physical cluster."""

    whole = False
    lends = False

    def __init__(
        self,
        cluster: Cluster,
        members: Mapping[str, Sequence[int]],
        column: Callable[[JobSpec], str],
    ) -> None:
        self.domains: Sequence[str] = tuple(members)
        self.touched: set[int] = set()
        self._column = column
        self._index = {name: index for index, name in enumerate(self.domains)}
        capabilities = {pool.type: pool.capabilities for pool in cluster.pools}
        #: by domain: the physical number of each of its nodes, and the other way round
        self._nodes = [tuple(sorted(nodes)) for nodes in members.values()]
        self._numbers = [{at: own for own, at in enumerate(nodes)} for nodes in self._nodes]
        self._views = [
            Cluster([cluster.nodes[node] for node in nodes], capabilities) for nodes in self._nodes
        ]

    def domain(self, spec: JobSpec) -> int | str:
        """The partition named by the job's column."""
        name = self._column(spec)
        return self._index.get(name, f"no partition is named {name!r}")

    def turns(self, domains: list[int], now: float) -> Sequence[int]:
        """As they come: nobody has what another could use."""
        return domains

    def view(self, domain: int) -> Cluster:
        """The nodes of one partition."""
        return self._views[domain]

    def apart(self, domain: int) -> bool:
        """Partitions share nothing."""
        return True

    def bind(
        self, domain: int, allocation: Allocation, spec: JobSpec, at: Allocation | None = None
    ) -> Bound | str:
        """Take it from the partition and give its nodes their physical numbers."""
        # Amounts are checked where they are taken in fact.
        occupy(self._views[domain], allocation)
        return Bound(_renumbered(allocation, self._nodes[domain]))

    def adopt(self, running: Sequence[tuple[JobSpec, Allocation]]) -> list[Seat]:
        """In the partition they are on, even if it is another tenant's: walls have no doors."""
        return [self._adopt(spec, physical) for spec, physical in running]

    def _adopt(self, spec: JobSpec, physical: Allocation) -> Seat:
        nodes = {part.node for part in physical.parts}
        for domain, numbers in enumerate(self._numbers):
            if nodes <= numbers.keys():
                virtual = _renumbered(physical, numbers)
                occupy(self._views[domain], virtual)
                return Seat(domain, virtual)
        raise UserError(f"{spec.name} runs on nodes of several partitions, or of none; stop it")

    def release(self, domain: int, allocation: Allocation, job: int) -> None:
        """Give it back to the partition."""
        self._views[domain].release(allocation)

    def loosen(self, domain: int, allocation: Allocation, job: int) -> None:
        """Free its amounts in the view."""
        self._views[domain].release(allocation)

    def resize(self, domain: int, allocation: Allocation, job: int) -> Sequence[int]:
        """Take its new amounts in the view."""
        occupy(self._views[domain], allocation)
        return ()

    def hold(self, allocation: Allocation) -> None:
        """Occupy each part in the partition that owns its node."""
        for part in allocation.parts:
            for view, index in self._owner(part.node):
                occupy(view, allocation_of((part._replace(node=index),)))

    def free(self, allocation: Allocation) -> None:
        """Free each part in the partition that owns its node."""
        for part in allocation.parts:
            for view, index in self._owner(part.node):
                view.release(allocation_of((part._replace(node=index),)))

    def close(self, node: int, reason: str) -> None:
        """Close the node in the partition that owns it."""
        for view, index in self._owner(node):
            view.close(index, reason)

    def open(self, node: int) -> None:
        """Open the node in the partition that owns it."""
        for view, index in self._owner(node):
            view.open(index)

    def explain(self, job: Job, reason: Reason) -> Reason:
        """A partition is a cluster like any other."""
        return reason

    def overview(self) -> Overview:
        """Whole nodes per tenant, and nothing is lent."""
        free = [view.idle for view in self._views]
        estates = tuple(
            Estate(name, view.gpus, view.gpus - idle, idle)
            for name, view, idle in zip(self.domains, self._views, free, strict=True)
        )
        return Overview("partitions", 0.0, estates)

    def validate(self) -> None:
        """Check the views."""
        for view in self._views:
            view.validate()

    def snapshot(self) -> Any:
        """Who holds what says it all."""
        return None

    def dissolve(self) -> None:
        """Nothing points in circles."""

    def restore(self, state: Any, held: Sequence[Held]) -> None:
        """Occupy what jobs hold."""
        for each in held:
            occupy(self._views[each.domain], each.virtual)

    def _owner(self, node: int) -> list[tuple[Cluster, int]]:
        pairs = zip(self._views, self._numbers, strict=True)
        return [(view, numbers[node]) for view, numbers in pairs if node in numbers]


def dealt(sizes: Mapping[str, int], cluster: Cluster) -> dict[str, range]:
    """Node counts per partition, dealt out in order from the first node on."""
    needed, have = sum(sizes.values()), len(cluster.nodes)
    if needed > have:
        raise UserError(f"the partitions need {needed} nodes; the cluster has {have}")
    members, start = {}, 0
    for name, size in sizes.items():
        members[name] = range(start, start + size)
        start += size
    return members


def _renumbered(allocation: Allocation, numbers: Mapping[int, int] | Sequence[int]) -> Allocation:
    parts = tuple(part._replace(node=numbers[part.node]) for part in allocation.parts)
    return allocation._replace(parts=parts)
