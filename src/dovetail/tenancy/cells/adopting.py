"""Jobs that run already, put there by others: found again among what their tenants own.

A job stays where it is. Its devices become those of its tenant if the tenant has idle cells of a
shape that covers them, everything at once and each machine's part in one machine of the tenant's,
and if that leaves to all others what they are owed. Nothing is searched for on other hardware.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dovetail.tenancy.cells.building import Estate
from dovetail.tenancy.cells.cell import LOWEST, Physical, Virtual, ancestors, places_of
from dovetail.tenancy.cells.commands import Done, Occupy, Vacate
from dovetail.tenancy.cells.groups import Gang
from dovetail.tenancy.cells.state import ONE, Cells

Machine = Callable[[Virtual], int]
"""Which machine of its tenant's a device is in."""


def adopt(
    cells: Cells, tenant: str, parts: Sequence[Sequence[Physical]], machine: Machine
) -> list[list[Virtual]] | None:
    """Devices of a tenant's for those in use, part by part, now occupied; None: it cannot be."""
    estate = cells.forest.estates[tenant]
    found: list[list[Virtual]] = []
    taken: list[Physical] = []
    for part in parts:
        mine = _part(cells, estate, part, machine, taken)
        if mine is None:
            _undo(cells, taken)
            return None
        found.append(mine)
    return found


def _part(
    cells: Cells, estate: Estate, part: Sequence[Physical], machine: Machine, taken: list[Physical]
) -> list[Virtual] | None:
    """One machine's devices, in the smallest kind of cell that will do."""
    for gang, kind in _kinds(estate, part):
        before = len(taken)
        mine = [_device(cells, gang, leaf, kind, taken) for leaf in part]
        owned = [each for each in mine if each is not None]
        if len(owned) == len(part) and len({machine(each) for each in owned}) == 1:
            return owned
        _undo(cells, taken[before:])
        del taken[before:]
    return None


def _kinds(estate: Estate, part: Sequence[Physical]) -> Iterator[tuple[Gang, str]]:
    """Kinds of cells that its devices may be in: what the tenant has pinned there, or any."""
    if not part:
        return
    for above in ancestors(part[0]):
        if above.pinned in estate.pinned:
            yield (
                Gang("", estate.name, LOWEST, ONE, pinned=above.pinned),
                above.chain.types[above.level],
            )
    chain = part[0].chain
    for level, roots in enumerate(estate.roots.get(chain.name, ())):
        if roots:
            yield Gang("", estate.name, LOWEST, ONE), chain.types[level]


def _device(
    cells: Cells, gang: Gang, leaf: Physical, kind: str, taken: list[Physical]
) -> Virtual | None:
    """The tenant's device for one in use, occupied unless somebody shares it already."""
    if leaf.user is not None:
        shared = leaf.user.own(leaf)
        return shared if shared is not None and shared.tenant == gang.tenant else None
    mine = cells.holding.counterpart(leaf, gang, kind)
    if mine is None:
        return None
    done = cells.apply(Occupy(gang.tenant, ((mine.address, leaf.nodes[0], leaf.devices[0]),)))
    taken.append(leaf)
    return mine if isinstance(done, Done) and done.safe else None


def _undo(cells: Cells, taken: Sequence[Physical]) -> None:
    cells.apply(Vacate(places_of(taken)))
