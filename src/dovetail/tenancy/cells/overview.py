"""Who owns which GPU and who is on it: cells as people look at them. Changes nothing.

A cell of a tenant is tied to hardware only while it is used. For all others it is said which GPUs
they would get if all owners wanted theirs now, so that each GPU has one owner, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dovetail.model.tenants import CellCount, Estate, Overview, Patch, Use
from dovetail.tenancy.cells.building import Deed
from dovetail.tenancy.cells.cell import Physical, Virtual
from dovetail.tenancy.cells.mapping import Sparing
from dovetail.tenancy.cells.state import Cells

On = Mapping[Physical, Sequence[int]]
"""By device: the jobs on it."""

USED, IDLE, LENT, BAD = Use.USED, Use.IDLE, Use.LENT, Use.BAD
"""Looking a member up in its class costs ten times as much, and there are very many devices."""

_Kind = tuple[str, Virtual | None, Use, Sequence[int], bool]
"""Node, cell of a contract, use, jobs on it, and whether the cell is tied to it."""


def overview(cells: Cells, on: On) -> Overview:
    """All tenants with what they own, and all GPUs with who has them."""
    hardware = _hardware(cells)
    owners = {leaf: mine for mine, leaf in hardware.items()}
    uses = {mine: _use(leaf, mine, on) for mine, leaf in hardware.items()}
    owned = cells.forest.estates.values()
    estates = tuple(_estate(each.name, each.contract, uses) for each in owned)
    devices = [leaf for levels in cells.forest.physical.values() for leaf in levels[1]]
    patches = tuple(_patches(devices, owners, uses, on))
    return Overview("cells", float(len(devices) - len(owners)), estates, patches)


def _hardware(cells: Cells) -> dict[Virtual, Physical]:
    """For each device of a tenant's the one it has, or would get now; without those with none."""
    apart = cells.stranded()
    only = frozenset(cells.devices.values()) - apart if apart else None
    searches = {name: Sparing(stock, None, only) for name, stock in cells.stocks.items()}
    owned = [each for estate in cells.forest.estates.values() for each in estate.contract]
    found: dict[Virtual, Physical] = {}
    for root, mine in sorted(owned, key=lambda each: -each[0].level):
        bindings: Mapping[Virtual, Physical] = {}
        if root.twin is None or any(leaf.twin is None for leaf in mine):
            # Who is elsewhere than its cells are bound is shown there, and nobody else is.
            idle = [leaf for leaf in mine if leaf.charged is None]
            bindings = searches[root.chain.name].map(idle) or {}
        for leaf in mine:
            hardware = leaf.charged.device if leaf.charged is not None else leaf.twin
            hardware = hardware or bindings.get(leaf)
            if hardware is not None:
                found[leaf] = hardware
    return found


def _use(leaf: Physical, mine: Virtual | None, on: On) -> Use:
    if mine is not None and mine.charged is not None:
        return USED
    if not leaf.healthy:
        return BAD
    return LENT if leaf in on else IDLE


def _estate(name: str, owned: Iterable[Deed], uses: Mapping[Virtual, Use]) -> Estate:
    every: list[Use] = []
    cells: dict[tuple[str, int], list[Use]] = {}
    for root, mine in owned:
        # What finds no healthy hardware is as good as bad.
        seen = [uses.get(leaf, BAD) for leaf in mine]
        every += seen
        kind = (root.chain.types[root.level], root.leaves)
        cells.setdefault(kind, []).append(_first(seen))
    return Estate(
        name,
        float(len(every)),
        every.count(USED),
        every.count(IDLE),
        every.count(LENT),
        every.count(BAD),
        tuple(_count(kind, gpus, seen) for (kind, gpus), seen in cells.items()),
    )


def _first(seen: Sequence[Use]) -> Use:
    """What a cell counts as whose GPUs are not all alike."""
    return next(use for use in (USED, BAD, LENT, IDLE) if use in seen)


def _count(kind: str, gpus: int, seen: Sequence[Use]) -> CellCount:
    return CellCount(kind, gpus, len(seen), *(seen.count(use) for use in (USED, IDLE, LENT, BAD)))


def _patches(
    devices: Sequence[Physical],
    owners: Mapping[Physical, Virtual],
    uses: Mapping[Virtual, Use],
    on: On,
) -> Iterator[Patch]:
    """Devices of a node that are alike, as one."""
    alike: dict[_Kind, list[int]] = {}
    last: _Kind | None = None
    places: list[int] = []
    for leaf in devices:
        mine = owners.get(leaf)
        if mine is None:
            kind: _Kind = (leaf.nodes[0], None, _use(leaf, None, on), on.get(leaf, ()), False)
        else:
            bound = mine.twin is leaf
            kind = (leaf.nodes[0], mine.root, uses[mine], on.get(leaf, ()), bound)
        if kind != last:
            # Neighbours are alike mostly, and finding others takes longer.
            last = kind
            places = alike.setdefault(_hashable(kind), [])
        places.append(leaf.devices[0])
    for (node, root, use, jobs, bound), listed in alike.items():
        tenant = root.tenant if root is not None else ""
        cell = root.address if root is not None else ""
        type_ = root.chain.types[root.level] if root is not None else ""
        yield Patch(node, tuple(sorted(listed)), tenant, use, cell, type_, tuple(jobs), bound)


def _hashable(kind: _Kind) -> _Kind:
    return (*kind[:3], tuple(kind[3]), kind[4])
