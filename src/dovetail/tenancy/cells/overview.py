"""Who owns which GPU and who is on it: cells as people look at them. Changes nothing.

A cell of a tenant is tied to hardware only while it is used. For all others it is said which GPUs
they would get if all owners wanted theirs now, so that each GPU has one owner, or none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dovetail.model.tenants import CellCount, Estate, Overview, Patch, Use
from dovetail.tenancy.cells import building
from dovetail.tenancy.cells.cell import Physical, Virtual, leaves_of
from dovetail.tenancy.cells.mapping import Mapping as Search
from dovetail.tenancy.cells.state import Cells

On = Mapping[Physical, Sequence[int]]
"""By device: the jobs on it."""
Owned = tuple[Virtual, list[Virtual]]
"""A cell of a contract, and its devices."""


def overview(cells: Cells, on: On) -> Overview:
    """All tenants with what they own, and all GPUs with who has them."""
    owned = {
        name: [(root, list(leaves_of(root))) for root in _roots(estate)]
        for name, estate in cells.forest.estates.items()
    }
    hardware = _hardware(cells, [cell for listed in owned.values() for cell in listed])
    owners = {leaf: mine for mine, leaf in hardware.items()}
    uses = {mine: _use(leaf, mine, on) for mine, leaf in hardware.items()}
    estates = tuple(_estate(name, listed, uses) for name, listed in owned.items())
    devices = [leaf for levels in cells.forest.physical.values() for leaf in levels[1]]
    patches = tuple(_patches(devices, owners, uses, on))
    return Overview("cells", float(len(devices) - len(owners)), estates, patches)


def _roots(estate: building.Estate) -> list[Virtual]:
    """The cells of a contract, the largest first."""
    free = [cell for levels in estate.roots.values() for each in levels for cell in each]
    pinned = [levels[-1][0] for levels in estate.pinned.values()]
    return sorted([*free, *pinned], key=lambda cell: -cell.level)


def _hardware(cells: Cells, owned: Iterable[Owned]) -> dict[Virtual, Physical]:
    """For each device of a tenant's the one it has, or would get now; without those with none."""
    searches = {name: Search(stock, None, None) for name, stock in cells.stocks.items()}
    found: dict[Virtual, Physical] = {}
    for root, mine in sorted(owned, key=lambda each: -each[0].level):
        bindings: Mapping[Virtual, Physical] = {}
        if any(leaf.twin is None for leaf in mine):
            bindings = searches[root.chain.name].map(mine) or {}
        for leaf in mine:
            hardware = leaf.charged.device if leaf.charged is not None else leaf.twin
            hardware = hardware or bindings.get(leaf)
            if hardware is not None:
                found[leaf] = hardware
    return found


def _use(leaf: Physical, mine: Virtual | None, on: On) -> Use:
    if mine is not None and mine.charged is not None:
        return Use.USED
    if not leaf.healthy:
        return Use.BAD
    return Use.LENT if leaf in on else Use.IDLE


def _estate(name: str, owned: Iterable[Owned], uses: Mapping[Virtual, Use]) -> Estate:
    counts: Counter[Use] = Counter()
    cells: dict[tuple[str, int], Counter[Use]] = {}
    for root, mine in owned:
        # What finds no healthy hardware is as good as bad.
        seen = Counter([uses.get(leaf, Use.BAD) for leaf in mine])
        counts.update(seen)
        kind = (root.chain.types[root.level], root.leaves)
        cells.setdefault(kind, Counter())[_first(seen)] += 1
    return Estate(
        name,
        float(counts.total()),
        counts[Use.USED],
        counts[Use.IDLE],
        counts[Use.LENT],
        counts[Use.BAD],
        tuple(_count(kind, gpus, seen) for (kind, gpus), seen in cells.items()),
    )


def _first(seen: Counter[Use]) -> Use:
    """What a cell counts as whose GPUs are not all alike."""
    return next(use for use in (Use.USED, Use.BAD, Use.LENT, Use.IDLE) if seen[use])


def _count(kind: str, gpus: int, seen: Counter[Use]) -> CellCount:
    uses = (Use.USED, Use.IDLE, Use.LENT, Use.BAD)
    return CellCount(kind, gpus, seen.total(), *(seen[use] for use in uses))


def _patches(
    devices: Sequence[Physical],
    owners: Mapping[Physical, Virtual],
    uses: Mapping[Virtual, Use],
    on: On,
) -> Iterator[Patch]:
    """Devices of a node that are alike, as one."""
    alike: dict[tuple[str, Virtual | None, Use, tuple[int, ...], bool], list[int]] = {}
    for leaf in devices:
        mine = owners.get(leaf)
        bound = mine is not None and mine.twin is leaf
        use = uses[mine] if mine is not None else _use(leaf, None, on)
        key = (leaf.nodes[0], mine and mine.root, use, tuple(on.get(leaf, ())), bound)
        alike.setdefault(key, []).append(leaf.devices[0])
    for (node, root, use, jobs, bound), places in alike.items():
        tenant = root.tenant if root is not None else ""
        cell = root.address if root is not None else ""
        kind = root.chain.types[root.level] if root is not None else ""
        yield Patch(node, tuple(sorted(places)), tenant, use, cell, kind, jobs, bound)
