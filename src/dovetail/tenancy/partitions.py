"""Hard walls: each tenant has its own nodes and its own queue, and sees nothing else.

A partition is a run of nodes of the physical cluster; its view is a cluster of those nodes alone,
so binding shifts node numbers. Jobs of tenants without a partition are refused with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dovetail.core.holding import occupy
from dovetail.core.protocols import Bound
from dovetail.model.allocation import Allocation, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec


class Partitions:
    """Node counts per partition, dealt out in order from the first node on."""

    whole = False

    def __init__(
        self, cluster: Cluster, sizes: Mapping[str, int], column: Callable[[JobSpec], str]
    ) -> None:
        needed = sum(sizes.values())
        if needed > len(cluster.nodes):
            have = len(cluster.nodes)
            raise UserError(f"the partitions need {needed} nodes; the cluster has {have}")
        self.domains: Sequence[str] = tuple(sizes)
        self._column = column
        self._index = {name: index for index, name in enumerate(self.domains)}
        self._starts: list[int] = []
        self._views: list[Cluster] = []
        start = 0
        capabilities = {pool.type: pool.capabilities for pool in cluster.pools}
        for size in sizes.values():
            self._starts.append(start)
            self._views.append(Cluster(cluster.nodes[start : start + size], capabilities))
            start += size

    def domain(self, spec: JobSpec) -> int | str:
        """The partition named by the job's column."""
        name = self._column(spec)
        return self._index.get(name, f"no partition is named {name!r}")

    def view(self, domain: int) -> Cluster:
        """The nodes of one partition."""
        return self._views[domain]

    def bind(self, domain: int, allocation: Allocation) -> Bound | str:
        """Take it from the partition and shift node numbers to the physical ones."""
        # Amounts are checked where they are taken in fact.
        occupy(self._views[domain], allocation)
        return Bound(_shift(allocation, self._starts[domain]))

    def release(self, domain: int, allocation: Allocation) -> None:
        """Give it back to the partition."""
        self._views[domain].release(allocation)

    def virtual(self, domain: int, allocation: Allocation) -> Allocation:
        """Physical nodes in the numbers of the partition."""
        return _shift(allocation, -self._starts[domain])

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

    def _owner(self, node: int) -> list[tuple[Cluster, int]]:
        pairs = zip(self._views, self._starts, strict=True)
        return [(view, node - at) for view, at in pairs if at <= node < at + len(view.nodes)]


def _shift(allocation: Allocation, by: int) -> Allocation:
    parts = tuple(part._replace(node=part.node + by) for part in allocation.parts)
    return allocation._replace(parts=parts)
