"""From a cluster and what tenants own to a layout of cells.

Nodes that are alike (GPUs, CPU, memory, type) form a chain. A node is halved down to single GPUs,
or divided by the next larger prime where that does not go; racks of equal size are the cells
above. So a node of 8 GPUs has cells of 4, 2 and 1. What a tenant has pinned is marked in the
hardware by `pinning`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from dovetail.core.registry import nearest
from dovetail.model.cluster import Cluster
from dovetail.model.errors import UserError
from dovetail.model.node import Node
from dovetail.tenancy.cells.layout import (
    CellType,
    Layout,
    Owned,
    PhysicalSpec,
    TenantSpec,
    chain_of,
)
from dovetail.tenancy.cells.pinning import Kind, pinned_tops, pins_of, sizes_in
from dovetail.tenancy.contracts import Contract, Holding


def layout_for(cluster: Cluster, contracts: Sequence[Contract]) -> Layout:
    """The layout of a cluster for these tenants; errors name the line."""
    types: dict[str, CellType] = {}
    kinds = [_kind(name, nodes, types) for name, nodes in _alike(cluster).items()]
    pins = pins_of(contracts, kinds)
    tenants = tuple(
        TenantSpec(
            c.name,
            tuple(owned for own in c.own for owned in _owned(c, own, kinds)),
            tuple(pin.name for pin in pins if pin.tenant == c.name),
            c.where,
        )
        for c in contracts
    )
    physical = tuple(top for kind in kinds for top in pinned_tops(kind, pins))
    words = {kind: said for each in kinds for kind, said in each.words().items()}
    return Layout(types, physical, tenants, words)


def owned_gpus(layout: Layout) -> dict[str, int]:
    """How many GPUs each tenant owns in all."""
    chains = {top.type: chain_of(top.type, layout.types) for top in layout.physical}
    pinned = {name: size for top in layout.physical for name, size in sizes_in(top, chains)}
    return {
        tenant.name: sum(pinned[name] for name in tenant.pinned)
        + sum(
            own.number * chains[own.path[0]].leaves[chains[own.path[0]].levels[own.kind]]
            for own in tenant.cells
        )
        for tenant in layout.tenants
    }


def _alike(cluster: Cluster) -> dict[str, list[Node]]:
    """Nodes by kind; a kind is called like its GPU type, where that is enough to tell."""
    groups: dict[tuple[object, ...], list[Node]] = {}
    for node in cluster.nodes:
        if node.gpus:
            key = (node.type, node.gpus, node.cpu, node.memory, node.gpu_memory)
            groups.setdefault(key, []).append(node)
    named: dict[str, list[Node]] = {}
    for nodes in groups.values():
        name = nodes[0].type
        if sum(other[0].type == name for other in groups.values()) > 1:
            name = f"{name}x{nodes[0].gpus}"
        while name in named:
            name += "'"
        named[name] = nodes
    return named


def sizes_of(gpus: int) -> list[int]:
    """The sizes of cells in a node, largest first: halves, or the next prime's parts."""
    sizes = [gpus]
    while sizes[-1] > 1:
        factor = next(f for f in range(2, sizes[-1] + 1) if sizes[-1] % f == 0)
        sizes.append(sizes[-1] // factor)
    return sizes


def _kind(name: str, nodes: list[Node], types: dict[str, CellType]) -> Kind:
    path, sizes = [f"{name}-node"], sizes_of(nodes[0].gpus)
    for above, size in itertools.pairwise(sizes):
        child = name if size == 1 else f"{name}-{size}"
        types[path[-1]] = CellType(path[-1], child, above // size, node=len(path) == 1)
        path.append(child)
    if len(path) == 1:
        types[path[0]] = CellType(path[0], name, 1, node=True)
        path.append(name)
        sizes.append(1)
    racks: dict[tuple[str, ...], list[Node]] = {}
    for node in nodes:
        racks.setdefault(node.place, []).append(node)
    length = len(next(iter(racks.values())))
    even = all(place and len(rack) == length for place, rack in racks.items())
    if not (even and length > 1):
        tops = [PhysicalSpec(path[0], node.name) for node in nodes]
        return Kind(name, path, sizes, tops, racks=False)
    types[f"{name}-rack"] = CellType(f"{name}-rack", path[0], length)
    tops = [
        PhysicalSpec(f"{name}-rack", "/".join(place), tuple(PhysicalSpec("", n.name) for n in rack))
        for place, rack in racks.items()
    ]
    return Kind(name, [f"{name}-rack", *path], [length * sizes[0], *sizes], tops, racks=True)


def _owned(contract: Contract, own: Holding, kinds: list[Kind]) -> list[Owned]:
    if not (own.racks or own.nodes or own.gpus):
        return []
    kind, found = _find(contract, own, kinds), list[Owned]()
    at = 1 if kind.racks else 0
    if own.racks and not kind.racks:
        where = f"{own.at('racks')}{contract.name}"
        raise UserError(f"{where} asks for racks; the cluster has none of equal size for it")
    if own.racks:
        found.append(Owned(tuple(kind.path[:1]), own.racks, own.at("racks")))
    if own.nodes:
        found.append(Owned(tuple(kind.path[: at + 1]), own.nodes, own.at("nodes")))
    inside = kind.sizes[at:]
    for size in dict.fromkeys(own.gpus):
        if size not in inside:
            where, sizes = f"{own.at('gpus')}{contract.name}", ", ".join(map(str, inside))
            raise UserError(f"{where} asks for {size} GPUs of a node; nodes have cells of {sizes}")
        path = tuple(kind.path[: at + inside.index(size) + 1])
        found.append(Owned(path, own.gpus.count(size), own.at("gpus")))
    return found


def _find(contract: Contract, own: Holding, kinds: list[Kind]) -> Kind:
    names = [kind.name for kind in kinds]
    if not own.type and len(kinds) == 1:
        return kinds[0]
    where = f"{own.at('type')}{contract.name}"
    if not own.type:
        raise UserError(f"{where}: say which type: {', '.join(names)}")
    for kind in kinds:
        if kind.name == own.type:
            return kind
    raise UserError(f"{where}: no type {own.type!r}{nearest(own.type, names)}")
