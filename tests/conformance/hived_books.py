"""Cells that keep their books as HiveD does, also where those do not balance.

Bad hardware can bring HiveD there: a cell that was bound because it was bad is in use by the time
it is repaired, spared or left. What HiveD notes then is not the case, and mostly it ends itself
later. Our own cells stay correct, so they cannot agree from there on (docs/decisions/0022). Here is
what HiveD notes, so that such records can be replayed to their last step; all else is our own. It
keeps no promise and is for replaying only.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

from dovetail.tenancy.cells.building import VirtualLevels
from dovetail.tenancy.cells.cell import (
    FREE,
    LOWEST,
    Physical,
    Virtual,
    bind,
    leaves_of,
    part,
    prioritise,
    unbind,
    use,
)
from dovetail.tenancy.cells.finding import Finder
from dovetail.tenancy.cells.groups import Gang, Group
from dovetail.tenancy.cells.holding import Demotion, Holding, lowest
from dovetail.tenancy.cells.mapping import Bindings, Candidates, Mapping
from dovetail.tenancy.cells.state import Cells
from dovetail.tenancy.cells.stock import Stock, remove


class HivedStock(Stock):
    """Who uses doomed hardware has it as before when it is repaired, and when it is spared."""

    def _unshow(self, cell: Physical, virtual: Virtual) -> None:
        if cell.priority >= LOWEST:
            # It stays doomed, and is never given back.
            return
        part(cell)
        if virtual.parent is None:
            remove(self.owners[virtual.tenant].doomed[cell.level], cell)
            self.give_back(cell, virtual.tenant, doomed=True)

    #: what was noted that is not so, even if only for the moment
    wrong: str | None = None

    def _let_go(self, cell: Physical) -> None:
        """What is in it stays bound to its tenant's, on hardware that is free for others."""
        if cell.priority >= LOWEST:
            self.wrong = self.wrong or f"{cell} is free for others while its tenant uses it"


class HivedHolding(Holding):
    """A device counts as what it is bound to, whoever has it and why ever it is bound."""

    def _bind(self, leaf: Physical, mine: Virtual) -> None:
        """Bad hardware that is shown where the device goes stays there, as its parent."""
        bind(leaf, mine)

    def release(self, leaf: Physical, mine: Virtual | None, group: Group) -> None:
        mine = leaf.twin
        if mine is not None:
            # Of a lent device that is bound because it is bad, this counts one free device less.
            use(mine, mine.priority, -1)
            prioritise(mine, FREE)
            mine.charged, root = None, mine.root.twin
            assert root is not None, "HiveD ends itself here"
            if leaf.healthy:
                unbind(leaf)
            stock = self.stocks[leaf.chain.name]
            unused = mine.root.priority < LOWEST and not root.pinned
            if unused and not stock.is_doomed(root, group.gang.tenant):
                stock.give_back(root, group.gang.tenant)
        use(leaf, leaf.priority, -1)
        prioritise(leaf, FREE)

    def make_way(self, leaves: Iterable[Virtual], by: str) -> list[Demotion]:
        demoted = []
        for leaf in (mine.twin for mine in leaves):
            user = None if leaf is None or leaf.claimant is not None else leaf.user
            if user is not None and user.gang.lazy:
                demoted.append(self.demote(user, by))
        return demoted

    def _descend(
        self, leaf: Physical, levels: VirtualLevels, level: int, gang: Gang
    ) -> Virtual | None:
        mine = _counterpart(leaf, levels, level, gang.priority)
        if mine is not None and not leaf.dealt and mine.root.priority > FREE:
            self._vacate(mine.root, gang.name)
        return mine

    def _vacate(self, root: Virtual, by: str) -> None:
        for leaf in leaves_of(root):
            if leaf.twin is not None and leaf.twin.user is not None:
                self.demote(leaf.twin.user, by)


class HivedFinder(Finder):
    """Others are driven out also where that takes what somebody else is owed."""

    def _hardware(
        self, leaves: list[Virtual], stock: Stock, candidates: Candidates
    ) -> Bindings | None:
        mapping = Mapping(stock, candidates)
        found = mapping.map(leaves)
        in_use = found is not None and any(leaf.user for leaf in found.values())
        if in_use and not mapping.is_safe() and isinstance(stock, HivedStock):
            stock.wrong = stock.wrong or f"others are owed what is taken with {mapping.taken}"
        return found


class HivedCells(Cells):
    """Cells with HiveD's books."""

    stock_kind = HivedStock
    holding_kind = HivedHolding
    finder_kind = HivedFinder

    def promised(
        self, pairs: Iterable[tuple[Physical, Virtual | None]]
    ) -> AbstractContextManager[None]:
        """While a gang's devices are bound, those to come may be doomed."""
        return nullcontext()

    def validate(self) -> None:
        """Nothing is promised."""


def imbalance(cells: Cells) -> str | None:
    """What in these books cannot be, if anything: the promises that our own cells keep."""
    for stock in cells.stocks.values():
        if isinstance(stock, HivedStock) and stock.wrong:
            return stock.wrong
    try:
        Cells.validate(cells)
    except AssertionError as error:
        return str(error)
    return None


def _counterpart(
    cell: Physical, levels: VirtualLevels, level: int, priority: int
) -> Virtual | None:
    """The tenant's cell that goes with hardware: what it is bound to, or a free or lower one."""
    if cell.twin is not None:
        return cell.twin
    if cell.level == level:
        return lowest(levels[level], priority)
    above = cell.parent and _counterpart(cell.parent, levels, level, priority)
    return above and lowest(above.children, priority)
