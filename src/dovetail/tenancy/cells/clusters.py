"""Virtual clusters behind the core's interface: each tenant plans on the cells it owns.

A tenant's view is a private cluster of its shape: a node for each machine it owns, and one for
each smaller cell. Binding gives its devices hardware, which buddy allocation chooses; jobs that
were lent it must go. One more domain, for all jobs of negative priority, sees the hardware itself,
without what owners use. A cell owns its share of its machine's CPU and memory: owners have it
while they use the cell, and what is lent of it goes with the devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dovetail.core.holding import occupy
from dovetail.core.protocols import Bound
from dovetail.core.registry import nearest
from dovetail.model.allocation import Allocation, Part, allocation_of
from dovetail.model.cluster import Capabilities, Cluster, Node
from dovetail.model.job import JobSpec
from dovetail.model.tenants import Overview
from dovetail.tenancy.cells import devices
from dovetail.tenancy.cells.building import Estate
from dovetail.tenancy.cells.cell import Physical, Virtual, leaves_of
from dovetail.tenancy.cells.commands import Break, Repair
from dovetail.tenancy.cells.layout import Layout
from dovetail.tenancy.cells.overview import overview
from dovetail.tenancy.cells.packing import Packing
from dovetail.tenancy.cells.state import Cells
from dovetail.tenancy.paths import listed

LENT = "lent"
"""The domain of jobs that run on what owners leave idle."""
NO_HARDWARE = "healthy hardware for the tenant's cells is in use or kept for others"


class VirtualClusters:
    """Tenants with cells, and lending between them."""

    whole = False

    def __init__(self, cluster: Cluster, layout: Layout) -> None:
        self.cells = Cells(layout)
        self.cluster = cluster
        self.domains: Sequence[str] = (*self.cells.forest.estates, LENT)
        #: domains whose views changed through others
        self.touched: set[int] = set()
        self._index = {name: index for index, name in enumerate(self.domains)}
        self._lent = len(self.domains) - 1
        self._node = {node.name: index for index, node in enumerate(cluster.nodes)}
        self._views: list[Cluster] = []
        #: by domain and node of its view: the devices there
        self._leaves: list[list[list[Virtual]]] = []
        capabilities = {pool.type: pool.capabilities for pool in cluster.pools}
        for estate in self.cells.forest.estates.values():
            self._add_view(estate, capabilities)
        self._views.append(Cluster(cluster.nodes, capabilities))
        self._hardware = self._index_hardware()
        #: by device: the jobs on it, with what each of them holds and where
        self._on: dict[Physical, list[int]] = {}
        self._held: dict[int, tuple[int, Allocation, list[Physical]]] = {}
        #: jobs that had to go and have not been told yet
        self._evicted: set[int] = set()
        #: nodes on which others than us hold something
        self._foreign: dict[int, int] = {}

    def _add_view(self, estate: Estate, capabilities: dict[str, Capabilities]) -> None:
        machines = {
            cell.address: cell
            for levels in [*estate.full.values(), *estate.pinned.values()]
            for cell in Packing(levels, False).machines
        }
        view = Cluster([self._machine(cell) for cell in machines.values()], capabilities)
        self._views.append(view)
        self._leaves.append([list(leaves_of(machines[node.name])) for node in view.nodes])

    def _machine(self, cell: Virtual) -> Node:
        """A virtual machine as its planner sees it, with its share of a machine of the chain."""
        levels = self.cells.forest.physical[cell.chain.name]
        twin = self.cluster.nodes[self._node[levels[1][0].nodes[0]]]
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

    def _index_hardware(self) -> list[dict[int, Physical]]:
        found: list[dict[int, Physical]] = [{} for _ in self.cluster.nodes]
        for levels in self.cells.forest.physical.values():
            for leaf in levels[1]:
                found[self._node[leaf.nodes[0]]][leaf.devices[0]] = leaf
        return found

    # ---- whose it is -------------------------------------------------------------------------

    def domain(self, spec: JobSpec) -> int | str:
        """The tenant's own, by the longest path that has one; what is lent for low priorities."""
        if spec.priority < 0:
            return self._lent if spec.resumable else "what is lent is taken back: it must resume"
        path = listed(spec.tenant, self._index)
        if path and path != LENT:
            return self._index[path]
        hint = nearest(spec.tenant, list(self.domains[:-1]))
        return f"no tenant is called {spec.tenant!r}{hint}"

    def turns(self, domains: list[int], now: float) -> Sequence[int]:
        """Owners first, then who lives on what they leave."""
        return sorted(domains, key=self._lent.__eq__)

    def view(self, domain: int) -> Cluster:
        """A private cluster of the tenant's shape, or the hardware without what owners use."""
        return self._views[domain]

    # ---- binding -----------------------------------------------------------------------------

    def bind(
        self, domain: int, allocation: Allocation, job: int, at: Allocation | None = None
    ) -> Bound | str:
        """Give devices of the view hardware; who was lent it must go."""
        if domain == self._lent:
            self._views[domain].take(allocation, closed_too=True)
            self._lend(job, allocation)
            return Bound(allocation)
        mine = [leaf for part in allocation.parts for leaf in self._virtual_leaves(domain, part)]
        known = {leaf: leaf.charged.device for leaf in mine if leaf.charged is not None}
        new = [leaf for leaf in mine if leaf.charged is None]
        fresh = devices.hardware_for(self.cells, new)
        if at is not None:
            placed = dict(zip(mine, self._physical_leaves(at), strict=True))
            fresh = {leaf: placed[leaf] for leaf in new}
        if fresh is None:
            return NO_HARDWARE
        found = known | fresh
        self._views[domain].take(allocation, closed_too=True)
        victims = self._make_room(list(fresh.values()))
        for virtual, leaf in fresh.items():
            devices.occupy(self.cells, virtual, leaf)
        self._note(domain, job, allocation, [found[leaf] for leaf in mine])
        self._look_at_health()
        return Bound(self._physical(allocation, [found[leaf] for leaf in mine]), tuple(victims))

    def _virtual_leaves(self, domain: int, part: Part) -> list[Virtual]:
        leaves = self._leaves[domain][part.node]
        return [leaves[device] for device in _bits(part.devices)]

    def _physical_leaves(self, allocation: Allocation) -> Iterator[Physical]:
        for part in allocation.parts:
            for device in _bits(part.devices):
                yield self._hardware[part.node][device]

    def _physical(self, allocation: Allocation, leaves: list[Physical]) -> Allocation:
        """Parts of a view as parts of machines; each part of a view is on one machine."""
        parts, at = [], 0
        for part in allocation.parts:
            count = part.devices.bit_count()
            own, at = leaves[at : at + count], at + count
            mask = sum(1 << leaf.devices[0] for leaf in own)
            parts.append(part._replace(node=self._node[own[0].nodes[0]], devices=mask))
        return allocation._replace(parts=tuple(parts))

    def _note(self, domain: int, job: int, allocation: Allocation, on: list[Physical]) -> None:
        self._held[job] = (domain, allocation, on)
        for leaf in on:
            self._on.setdefault(leaf, []).append(job)

    def _lend(self, job: int, allocation: Allocation) -> None:
        on = list(self._physical_leaves(allocation))
        for leaf in on:
            if leaf.user is None:
                devices.lend(self.cells, leaf, self.domains[0])
        self._note(self._lent, job, allocation, on)

    def _make_room(self, wanted: list[Physical]) -> list[int]:
        """Take hardware from the lent view; returns the jobs that must leave for it."""
        victims = list(dict.fromkeys(job for leaf in wanted for job in self._on.get(leaf, ())))
        for job in victims:
            self._evict(job)
        view = self._views[self._lent]
        for part in self._parts(wanted):
            while not view.has(part.node, part.cpu, part.memory):
                # Somebody on the same machine was lent more than goes with its devices.
                last = max(self._lent_on(part.node))
                victims.append(last)
                self._evict(last)
            view.take(allocation_of((part,)), closed_too=True)
        return victims

    def _lent_on(self, node: int) -> list[int]:
        jobs = [job for leaf in self._hardware[node].values() for job in self._on.get(leaf, ())]
        return [job for job in jobs if self._held[job][0] == self._lent]

    def _parts(self, leaves: list[Physical]) -> Iterator[Part]:
        """Devices with the share of CPU and memory that they own, machine by machine."""
        masks: dict[int, int] = {}
        for leaf in leaves:
            node = self._node[leaf.nodes[0]]
            masks[node] = masks.get(node, 0) | 1 << leaf.devices[0]
        for node, mask in masks.items():
            machine, count = self.cluster.nodes[node], mask.bit_count()
            cpu = (machine.cpu or 0) // machine.gpus * count
            memory = (machine.memory or 0) // machine.gpus * count
            yield Part(node, mask, cpu, memory)

    def _evict(self, job: int) -> None:
        domain, allocation, _ = self._held[job]
        self._drop(domain, allocation, job)
        self._evicted.add(job)

    # ---- letting go --------------------------------------------------------------------------

    def release(self, domain: int, allocation: Allocation, job: int) -> None:
        """Give devices back; those of an owner can be lent from now on."""
        if job in self._evicted:
            self._evicted.discard(job)
            return
        self._drop(domain, allocation, job)
        if domain != self._lent:
            self.touched.add(self._lent)
        self._look_at_health()

    def _drop(self, domain: int, allocation: Allocation, job: int) -> None:
        _, _, on = self._held.pop(job)
        self._views[domain].release(allocation)
        left: list[Physical] = []
        for leaf in dict.fromkeys(on):
            jobs = self._on[leaf]
            jobs.remove(job)
            if not jobs:
                del self._on[leaf]
                left.append(leaf)
        for leaf in left:
            devices.vacate(self.cells, leaf)
        if domain != self._lent:
            for part in self._parts(left):
                self._views[self._lent].release(allocation_of((part,)))

    def loosen(self, domain: int, allocation: Allocation, job: int) -> None:
        """Free its amounts in the view."""
        self._views[domain].release(allocation)

    def resize(self, domain: int, allocation: Allocation, job: int) -> None:
        """Take its new amounts in the view."""
        occupy(self._views[domain], allocation)
        self._held[job] = self._held[job][0], allocation, self._held[job][2]

    def virtual(self, domain: int, allocation: Allocation) -> Allocation:
        """Hardware that is bound, in the terms of its tenant's view."""
        if domain == self._lent:
            return allocation
        places = {
            leaf: (node, device)
            for node, leaves in enumerate(self._leaves[domain])
            for device, leaf in enumerate(leaves)
        }
        parts: list[Part] = []
        for part in allocation.parts:
            at: dict[int, int] = {}
            for leaf in self._physical_leaves(allocation._replace(parts=(part,))):
                assert leaf.twin is not None, f"{leaf} is not bound"
                node, device = places[leaf.twin]
                at[node] = at.get(node, 0) | 1 << device
            parts += [part._replace(node=node, devices=mask) for node, mask in at.items()]
        return allocation._replace(parts=tuple(parts))

    def overview(self) -> Overview:
        """All tenants with what they own, and all GPUs with who has them."""
        return overview(self.cells, self._on)

    # ---- hardware that is not there ----------------------------------------------------------

    def hold(self, allocation: Allocation) -> None:
        """Others use a machine: none of its cells is bound for new work."""
        for part in allocation.parts:
            self._foreign[part.node] = self._foreign.get(part.node, 0) + 1
            self.close(part.node, "others use it")

    def free(self, allocation: Allocation) -> None:
        """They let go of it."""
        for part in allocation.parts:
            self._foreign[part.node] -= 1
            if not self._foreign[part.node]:
                del self._foreign[part.node]
                self.open(part.node)

    def close(self, node: int, reason: str) -> None:
        """A machine is bad: its cells are bound no more, and doomed ones are shown."""
        self._views[self._lent].close(node, reason)
        self.cells.apply(Break(self.cluster.nodes[node].name))
        self._look_at_health(always=True)

    def open(self, node: int) -> None:
        """A machine is healthy again, unless others use it."""
        if node not in self._foreign:
            self._views[self._lent].open(node)
            self.cells.apply(Repair(self.cluster.nodes[node].name))
            self._look_at_health(always=True)

    def _look_at_health(self, always: bool = False) -> None:
        """Close what is bound to bad hardware in the views, and open what is not any more."""
        if not (always or self.cells.bad_nodes):
            return
        for domain, machines in enumerate(self._leaves):
            view = self._views[domain]
            for node, leaves in enumerate(machines):
                bad = any(leaf.twin is not None and not leaf.twin.healthy for leaf in leaves)
                if bad and node not in view.closed:
                    view.close(node, "bad hardware")
                elif not bad and node in view.closed:
                    view.open(node)
                    self.touched.add(domain)

    def validate(self) -> None:
        """Check the cells, the views, and that both say the same."""
        self.cells.validate()
        for view in self._views:
            view.validate()
        for domain, machines in enumerate(self._leaves):
            for node, leaves in enumerate(machines):
                for device, leaf in enumerate(leaves):
                    used = self._views[domain].share_of(node, device)[0] < 1000
                    assert used == (leaf.charged is not None), f"{leaf} differs from its view"

    def snapshot(self) -> Any:
        """Who holds what says it all."""
        return None

    def restore(self, state: Any) -> None:
        """Nothing to take back."""


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
