"""From a layout to trees of cells, with everything checked that can be wrong in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from dovetail.core.registry import nearest
from dovetail.model.errors import UserError
from dovetail.tenancy.cells.cell import Physical, Virtual, leaves_of
from dovetail.tenancy.cells.layout import (
    Chain,
    Layout,
    Owned,
    PhysicalSpec,
    TenantSpec,
    chain_of,
)

Levels = list[list[Physical]]
VirtualLevels = list[list[Virtual]]
Deed = tuple[Virtual, list[Virtual]]
"""A cell of a contract, and its devices."""


@dataclass
class Estate:
    """What one tenant owns: by chain and level, and the pinned cells by name."""

    name: str
    #: all its cells, with what is in them
    full: dict[str, VirtualLevels] = field(default_factory=dict)
    #: those of its contract
    roots: dict[str, VirtualLevels] = field(default_factory=dict)
    pinned: dict[str, VirtualLevels] = field(default_factory=dict)

    @cached_property
    def contract(self) -> list[Deed]:
        """The cells of its contract, the largest first, each with its devices."""
        free = [cell for levels in self.roots.values() for each in levels for cell in each]
        pinned = [levels[-1][0] for levels in self.pinned.values()]
        owned = sorted([*free, *pinned], key=lambda cell: -cell.level)
        return [(cell, list(leaves_of(cell))) for cell in owned]


@dataclass
class Forest:
    """All trees of a layout."""

    chains: dict[str, Chain]
    #: by chain and level
    physical: dict[str, Levels]
    estates: dict[str, Estate]
    pinned: dict[str, Physical]


def build(layout: Layout) -> Forest:
    """Make the trees, or say what is wrong with the layout."""
    forest = Forest({}, {}, {}, {})
    for index, spec in enumerate(layout.physical):
        _add_hardware(forest, layout, spec, index)
    for tenant in layout.tenants:
        for owned in tenant.cells:
            _check_number(forest, layout, tenant, owned)
        forest.estates[tenant.name] = _estate(forest, tenant)
    return forest


def _add_hardware(forest: Forest, layout: Layout, spec: PhysicalSpec, index: int) -> None:
    if spec.type not in layout.types:
        hint = nearest(spec.type, list(layout.types))
        raise UserError(f"{spec.where}no cell type is called {spec.type!r}{hint}")
    if spec.type not in forest.chains:
        chain = forest.chains[spec.type] = chain_of(spec.type, layout.types)
        forest.physical[spec.type] = [[] for _ in chain.types]
    chain = forest.chains[spec.type]
    _grow(forest, chain, spec, chain.top, index, "", "")


def _grow(
    forest: Forest,
    chain: Chain,
    spec: PhysicalSpec,
    level: int,
    index: int,
    above: str,
    node: str,
) -> Physical:
    """One physical cell with its children; `index` is its number where no name is stated."""
    own = spec.address or str(index)
    cell = Physical(chain, level, f"{above}/{own}" if above else own, spec.pinned)
    cell.number = len(forest.physical[chain.name][level])
    forest.physical[chain.name][level].append(cell)
    if spec.pinned:
        if spec.pinned in forest.pinned:
            raise UserError(f"{spec.where}two cells are pinned as {spec.pinned!r}")
        forest.pinned[spec.pinned] = cell
    if level == chain.node:
        # Devices are counted within their machine.
        node, index = own, 0
    if level == 1:
        if not own.isdigit():
            raise UserError(f"{spec.where}device {own!r} of {node}: devices are numbers")
        cell.nodes, cell.devices = (node,), (int(own),)
        return cell
    fanout = chain.fanout[level]
    if spec.children and len(spec.children) != fanout:
        raise UserError(
            f"{spec.where}{cell.address} lists {len(spec.children)} children; "
            f"{chain.types[level]} has {fanout}"
        )
    for number, child in enumerate(spec.children or (PhysicalSpec(where=spec.where),) * fanout):
        address = index * fanout + number
        grown = _grow(forest, chain, child, level - 1, address, cell.address, node)
        grown.parent = cell
        cell.children.append(grown)
    if level > chain.node:
        cell.nodes = tuple(name for child in cell.children for name in child.nodes)
    else:
        cell.nodes = (node,)
        cell.devices = tuple(number for child in cell.children for number in child.devices)
    return cell


def _estate(forest: Forest, tenant: TenantSpec) -> Estate:
    estate = Estate(tenant.name)
    count = 0
    for owned in tenant.cells:
        chain, level = _find(forest, tenant, owned)
        empty: VirtualLevels = [[] for _ in chain.types]
        full = estate.full.setdefault(chain.name, empty)
        roots = estate.roots.setdefault(chain.name, [[] for _ in chain.types])
        for _ in range(owned.number):
            roots[level].append(_virtual(chain, level, f"{tenant.name}/{count}", tenant.name, full))
            count += 1
    for name in tenant.pinned:
        if name not in forest.pinned:
            hint = nearest(name, list(forest.pinned))
            raise UserError(f"{tenant.where}no cell is pinned as {name!r}{hint}")
        cell = forest.pinned[name]
        listed: VirtualLevels = [[] for _ in range(cell.level + 1)]
        _virtual(cell.chain, cell.level, f"{tenant.name}/{count}", tenant.name, listed)
        estate.pinned[name] = listed
        count += 1
    return estate


def _check_number(forest: Forest, layout: Layout, tenant: TenantSpec, owned: Owned) -> None:
    """Before as many cells are made: are there as many?"""
    chain, level = _find(forest, tenant, owned)
    there = len(forest.physical[chain.name][level])
    if not 0 <= owned.number <= there:
        asked = layout.counted(owned.number, owned.kind)
        verb = "is" if there == 1 else "are"
        raise UserError(f"{owned.where}{tenant.name} asks for {asked}; there {verb} {there}")


def _find(forest: Forest, tenant: TenantSpec, owned: Owned) -> tuple[Chain, int]:
    top, kind = owned.path[0], owned.path[-1]
    if top not in forest.chains:
        hint = nearest(top, list(forest.chains))
        raise UserError(f"{owned.where}{tenant.name} asks for cells of {top!r}{hint}")
    chain = forest.chains[top]
    level = chain.level(kind)
    if level is None:
        hint = nearest(kind, list(chain.types[1:]))
        raise UserError(f"{owned.where}{tenant.name}: {top} has no {kind!r} in it{hint}")
    return chain, level


def _virtual(chain: Chain, level: int, address: str, tenant: str, listed: VirtualLevels) -> Virtual:
    """One virtual cell with everything in it; devices are numbered within the whole."""
    root = Virtual(chain, level, address, tenant)
    _fill(root, 0, listed)
    return root


def _fill(cell: Virtual, index: int, listed: VirtualLevels) -> None:
    """Give a cell its children; `index` is its number among those of its level in the whole."""
    listed[cell.level].append(cell)
    fanout = cell.chain.fanout[cell.level]
    for own in range(index * fanout, (index + 1) * fanout):
        child = Virtual(cell.chain, cell.level - 1, f"{cell.address}/{own}", cell.tenant)
        child.parent, child.root = cell, cell.root
        cell.children.append(child)
        _fill(child, own, listed)
