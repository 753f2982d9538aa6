"""Hardware for what a tenant's planner has placed: buddy allocation, with what else must be there.

A machine must have the CPU and memory that go with the devices, which others than us may use. And
devices of jobs that would lose their work, or that owners use elsewhere than they own, are left
alone where others will do. Changes nothing.
"""

from __future__ import annotations

from dovetail.model.allocation import Allocation
from dovetail.tenancy.cells.atlas import Atlas
from dovetail.tenancy.cells.cell import Physical, Virtual
from dovetail.tenancy.cells.lending import Lending
from dovetail.tenancy.cells.mapping import hardware_for
from dovetail.tenancy.cells.state import Cells

Places = dict[Virtual, Physical]


class Searching:
    """What can be bound to devices of a view."""

    def __init__(self, cells: Cells, atlas: Atlas, lending: Lending) -> None:
        self._cells, self._atlas, self._lending = cells, atlas, lending

    def exactly(self, mine: list[Virtual], at: Allocation) -> Places | None:
        """The hardware that was decided on before."""
        only = frozenset(self._atlas.all_on(at))
        fresh = hardware_for(self._cells.stocks, _unbound(mine), None, only)
        return None if fresh is None else _bound(mine) | fresh

    def places(
        self, mine: list[Virtual], wanted: Allocation, spared: set[Physical]
    ) -> Places | None:
        """Any that will do, none of the spared devices if it can be so."""
        if spared:
            found = self._among(mine, wanted, frozenset(self._cells.devices.values()) - spared)
            if found is not None:
                return found
        return self._among(mine, wanted, None)

    def _among(
        self, mine: list[Virtual], wanted: Allocation, only: frozenset[Physical] | None
    ) -> Places | None:
        """On machines that have the amounts that go with it."""
        candidates: frozenset[str] | None = None
        while True:
            fresh = hardware_for(self._cells.stocks, _unbound(mine), candidates, only)
            if fresh is None or not all(leaf.healthy for leaf in fresh.values()):
                # What was bound meanwhile may have left only bad hardware to the tenant.
                return None
            found = _bound(mine) | fresh
            physical = self._atlas.physical(wanted, [found[leaf] for leaf in mine])
            lacking = self._lending.lacking(physical.parts)
            if not lacking:
                return found
            # Others than us use it: the guarantee is as good as the hardware.
            known = self._atlas.nodes.keys() if candidates is None else candidates
            left = known - {self._atlas.cluster.nodes[node].name for node in lacking}
            if left == candidates or not left:
                return None
            candidates = frozenset(left)


def _bound(mine: list[Virtual]) -> Places:
    return {leaf: leaf.charged.device for leaf in mine if leaf.charged is not None}


def _unbound(mine: list[Virtual]) -> list[Virtual]:
    return [leaf for leaf in mine if leaf.charged is None]
