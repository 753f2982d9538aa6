"""Cells that keep their books as HiveD does, also where those do not balance.

Bad hardware can bring HiveD there: a cell that was bound because it was bad is in use by the time
it is repaired, spared or left. What HiveD notes then is not the case, and mostly it ends itself
later. Our own cells stay correct, so they cannot agree from there on. Here is what HiveD notes, so
that such records can be replayed to their last step. All that finds, maps, packs and reserves is
our own. It keeps no promise and is for replaying only.
"""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.tenancy.cells.building import VirtualLevels
from dovetail.tenancy.cells.cell import (
    FREE,
    LOWEST,
    LeafState,
    Physical,
    Virtual,
    bind,
    leaves_of,
    part,
    prioritise,
    unbind,
    use,
)
from dovetail.tenancy.cells.groups import Gang, Group, GroupState
from dovetail.tenancy.cells.holding import Demotion, Holding, lowest
from dovetail.tenancy.cells.state import Cells
from dovetail.tenancy.cells.stock import Stock, remove


class HivedStock(Stock):
    """What is doomed stays so while it is in use, whatever becomes of the hardware."""

    def _let_go(self, cell: Physical) -> None:
        """What is in it stays bound, and in use."""

    def _unshow(self, cell: Physical, virtual: Virtual) -> None:
        if cell.priority >= LOWEST:
            return
        part(cell)
        if virtual.parent is None:
            remove(self.owners[virtual.tenant].doomed[cell.level], cell)
            self.give_back(cell, virtual.tenant, doomed=True)

    def validate(self) -> None:
        """Nothing is promised."""


class HivedHolding(Holding):
    """A device is released as what it is bound to, whoever had it and why ever it is bound."""

    def _bind(self, leaf: Physical, mine: Virtual) -> None:
        bind(leaf, mine)

    def release(self, leaf: Physical, mine: Virtual | None, group: Group) -> None:
        mine = leaf.twin
        if mine is not None:
            use(mine, mine.priority, -1)
            prioritise(mine, FREE)
            mine.charged = None
            root = mine.root.twin
            if leaf.healthy:
                unbind(leaf)
            assert root is not None
            stock = self.stocks[leaf.chain.name]
            unused = mine.root.priority < LOWEST and not root.pinned
            if unused and not stock.is_doomed(root, group.gang.tenant):
                stock.give_back(root, group.gang.tenant)
        use(leaf, leaf.priority, -1)
        prioritise(leaf, FREE)

    def give_way(self, leaf: Physical) -> None:
        assert leaf.user is not None
        self.release(leaf, None, leaf.user)
        leaf.user.state = GroupState.BEING_PREEMPTED

    def take_back(self, leaf: Physical) -> None:
        assert leaf.user is not None
        self.take(leaf, leaf.user.own(leaf), leaf.user)

    def dissolve(self, group: Group) -> None:
        for leaf, _ in group.leaves():
            leaf.user = None
            if leaf.claimant is None:
                self.release(leaf, None, group)

    def demote(self, group: Group, by: str) -> Demotion:
        for _, mine in group.leaves():
            if mine is not None:
                assert mine.twin is not None
                leaf = mine.twin
                self.release(leaf, mine, group)
                self.take(leaf, None, group)
        demotion = Demotion(group, group.virtual, set())
        group.virtual, group.lazily_preempted_by = None, by
        return demotion

    def promote(self, demotion: Demotion) -> None:
        group = demotion.group
        group.virtual, group.lazily_preempted_by = demotion.virtual, None
        for leaf, mine in group.leaves():
            self.release(leaf, mine, group)
            self.take(leaf, mine, group)

    def make_way(self, leaves: Iterable[Virtual], by: str) -> list[Demotion]:
        demoted = []
        for mine in leaves:
            leaf = mine.twin
            if leaf is not None and leaf.state is LeafState.USED:
                assert leaf.user is not None
                if leaf.user.gang.lazy:
                    demoted.append(self.demote(leaf.user, by))
        return demoted

    def _descend(
        self, leaf: Physical, levels: VirtualLevels, level: int, gang: Gang
    ) -> Virtual | None:
        mine = _counterpart(leaf, levels, level, gang.priority)
        if mine is not None and not leaf.dealt and mine.root.priority > FREE:
            for other in leaves_of(mine.root):
                if other.twin is not None and other.twin.user is not None:
                    self.demote(other.twin.user, gang.name)
        return mine

    def validate(self, groups: dict[str, Group]) -> None:
        """Nothing is promised."""


class HivedCells(Cells):
    """Cells with HiveD's books."""

    stock_kind = HivedStock
    holding_kind = HivedHolding


def _counterpart(
    cell: Physical, levels: VirtualLevels, level: int, priority: int
) -> Virtual | None:
    """The tenant's cell that goes with this hardware: what it is bound to, whoever owns that."""
    if cell.twin is not None:
        return cell.twin
    if cell.level == level:
        return lowest(levels[level], priority)
    if cell.parent is None:
        return None
    above = _counterpart(cell.parent, levels, level, priority)
    return None if above is None else lowest(above.children, priority)
