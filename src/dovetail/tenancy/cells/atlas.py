"""Where everything is: from nodes and devices of views and machines to cells, and back.

A tenant's view is a private cluster of its shape: a node for each machine it owns, and one for
each smaller cell. Nothing here changes but the views, and those are changed by others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dovetail.model.allocation import Allocation, Part
from dovetail.model.cluster import Cluster
from dovetail.model.node import Capabilities, Node
from dovetail.tenancy.cells.building import Estate, Forest
from dovetail.tenancy.cells.cell import Physical, Virtual, leaves_of
from dovetail.tenancy.cells.packing import Packing


class Atlas:
    """The views of all tenants on one cluster."""

    def __init__(self, cluster: Cluster, forest: Forest) -> None:
        self.cluster = cluster
        self.views: list[Cluster] = []
        #: by domain and node of its view: the devices there
        self.leaves: list[list[list[Virtual]]] = []
        #: by domain: the node of its view and the number there of each device
        self.devices: list[dict[Virtual, tuple[int, int]]] = []
        #: machines by name
        self.nodes = {node.name: index for index, node in enumerate(cluster.nodes)}
        capabilities = {pool.type: pool.capabilities for pool in cluster.pools}
        for estate in forest.estates.values():
            self._add_view(estate, forest, capabilities)
        self._hardware: list[dict[int, Physical]] = [{} for _ in cluster.nodes]
        for levels in forest.physical.values():
            for leaf in levels[1]:
                self._hardware[self.node(leaf)][leaf.devices[0]] = leaf

    def _add_view(
        self, estate: Estate, forest: Forest, capabilities: dict[str, Capabilities]
    ) -> None:
        machines = {
            cell.address: cell
            for levels in [*estate.full.values(), *estate.pinned.values()]
            for cell in Packing(levels, False).machines
        }
        nodes = [self._machine(cell, forest) for cell in machines.values()]
        view = Cluster(nodes, capabilities)
        self.views.append(view)
        leaves = [list(leaves_of(machines[node.name])) for node in view.nodes]
        self.leaves.append(leaves)
        self.devices.append(
            {
                leaf: (node, number)
                for node, on in enumerate(leaves)
                for number, leaf in enumerate(on)
            }
        )

    def _machine(self, cell: Virtual, forest: Forest) -> Node:
        """A virtual machine as its planner sees it, with its share of a machine of the chain."""
        twin = self.cluster.nodes[self.node(forest.physical[cell.chain.name][1][0])]
        share = cell.leaves
        return Node(
            cell.address,
            cell.leaves,
            None if twin.cpu is None else twin.cpu // twin.gpus * share,
            None if twin.memory is None else twin.memory // twin.gpus * share,
            twin.type,
            twin.gpu_memory,
            (cell.root.address,) if cell.root.level > cell.chain.node else (),
        )

    def node(self, leaf: Physical) -> int:
        """The machine a device is in."""
        return self.nodes[leaf.nodes[0]]

    def mine(self, domain: int, allocation: Allocation) -> list[Virtual]:
        """The tenant's devices in an allocation of its view."""
        leaves = self.leaves[domain]
        return [leaves[part.node][device] for part in allocation.parts for device in _bits(part)]

    def on(self, part: Part) -> list[Physical]:
        """The devices of one machine's part."""
        return [self._hardware[part.node][device] for device in _bits(part)]

    def all_on(self, physical: Allocation) -> list[Physical]:
        """The devices of a physical allocation."""
        return [leaf for part in physical.parts for leaf in self.on(part)]

    def physical(self, virtual: Allocation, leaves: Sequence[Physical]) -> Allocation:
        """Parts of a view as parts of machines; each part of a view is on one machine."""
        parts, at = [], 0
        for part in virtual.parts:
            count = part.devices.bit_count()
            own, at = leaves[at : at + count], at + count
            mask = sum(1 << leaf.devices[0] for leaf in own)
            parts.append(part._replace(node=self.node(own[0]), devices=mask))
        return virtual._replace(parts=tuple(parts))

    def virtual(
        self, domain: int, physical: Allocation, mine: Sequence[Sequence[Virtual]]
    ) -> Allocation:
        """Parts of machines as parts of a view, in which they are these devices."""
        places, parts = self.devices[domain], []
        for part, leaves in zip(physical.parts, mine, strict=True):
            mask = sum(1 << places[leaf][1] for leaf in leaves)
            parts.append(part._replace(node=places[leaves[0]][0], devices=mask))
        return physical._replace(parts=tuple(parts))

    def masks(self, leaves: Iterable[Physical]) -> dict[int, int]:
        """Devices, machine by machine."""
        masks: dict[int, int] = {}
        for leaf in leaves:
            node = self.node(leaf)
            masks[node] = masks.get(node, 0) | 1 << leaf.devices[0]
        return masks


def _bits(part: Part) -> Iterator[int]:
    mask = part.devices
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
