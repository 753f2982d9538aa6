"""Devices one by one: what a tenancy tells the cells when its planners have chosen places.

Inside a virtual cluster any planner may decide where a job sits, so the cells are not asked for a
place but told the tenant's devices; which hardware that is, is still theirs to say.
"""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.tenancy.cells.cell import LOWEST, OPPORTUNISTIC, Physical, Virtual
from dovetail.tenancy.cells.groups import Gang, Group, GroupState
from dovetail.tenancy.cells.mapping import map_to_hardware
from dovetail.tenancy.cells.state import Cells

ONE = {1: 1}


def hardware_for(cells: Cells, leaves: Iterable[Virtual]) -> dict[Virtual, Physical] | None:
    """Which devices a tenant's would be bound to, or None: not now. Changes nothing."""
    by_chain: dict[str, list[Virtual]] = {}
    for leaf in leaves:
        by_chain.setdefault(leaf.chain.name, []).append(leaf)
    found: dict[Virtual, Physical] = {}
    for chain, listed in by_chain.items():
        bindings = map_to_hardware(listed, cells.stocks[chain], None)
        if bindings is None:
            return None
        found.update(bindings)
    return found


def occupy(cells: Cells, mine: Virtual, leaf: Physical) -> None:
    """A tenant uses one of its devices there."""
    gang = Gang(mine.address, mine.tenant, LOWEST, ONE)
    _take(cells, Group(gang, GroupState.ALLOCATED, {1: [[leaf]]}, {1: [[mine]]}), leaf, mine)


def lend(cells: Cells, leaf: Physical, tenant: str) -> None:
    """Somebody uses an idle device until its owner wants it."""
    gang = Gang(f"lent {leaf.address}", tenant, OPPORTUNISTIC, ONE)
    _take(cells, Group(gang, GroupState.ALLOCATED, {1: [[leaf]]}, None), leaf, None)


def _take(cells: Cells, group: Group, leaf: Physical, mine: Virtual | None) -> None:
    cells.holding.take(leaf, mine, group)
    leaf.user = cells.groups[group.gang.name] = group


def vacate(cells: Cells, leaf: Physical) -> None:
    """Nobody uses a device any more."""
    group = leaf.user
    assert group is not None
    cells.holding.dissolve(group)
    del cells.groups[group.gang.name]
