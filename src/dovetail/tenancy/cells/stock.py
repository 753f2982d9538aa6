"""The hardware of one chain that is in nobody's hands, and what tenants are still owed of it.

Free cells are kept as large as possible: taking one splits what it is part of, giving it back
merges buddies. Safety is the one promise everything rests on: at every level there is at least as
much left as tenants are owed.

Bad hardware: where a tenant is owed more cells than healthy ones are left, so many of its cells
are doomed, and bound to bad hardware so that it sees them. Every change of what is left, owed or
healthy is followed by that comparison, at every level it touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from dovetail.tenancy.cells.building import Levels, VirtualLevels
from dovetail.tenancy.cells.cell import (
    LOWEST,
    Physical,
    Virtual,
    ancestors,
    bind,
    go_together,
    join,
    leaves_of,
    part,
    reprioritise,
    strand,
    unbound,
)
from dovetail.tenancy.cells.layout import Chain

T = TypeVar("T")


@dataclass
class Owner:
    """What one tenant is owed of a chain."""

    #: by level: cells of its contract that are not bound
    owed: list[int]
    #: by level: hardware its doomed cells are bound to
    doomed: Levels
    #: by level: cells of its contract, without pinned ones
    roots: VirtualLevels


class Stock:
    """Free cells of one chain. Changed by `take` and `give_back`, and by health."""

    def __init__(self, chain: Chain, full: Levels, owners: dict[str, Owner]) -> None:
        self.chain = chain
        self.full = full
        self.owners = owners
        self.free: Levels = [[] for _ in chain.types]
        self.free[chain.top] = list(full[chain.top])
        #: cells that are free or could be had by splitting
        self.left = [len(cells) for cells in full]
        #: the bad ones among them
        self.bad: Levels = [[] for _ in chain.types]
        #: what all tenants together are owed
        self.owed = self.sum_owed()
        #: cells of contracts that are about to be bound, with the hardware they get
        self.promised: dict[Virtual, Physical] = {}
        #: devices of owners whose cells are bound there no longer; some may be free by now
        self.stranded: set[Physical] = set()

    def sum_owed(self) -> list[int]:
        """By level: what all tenants together are owed."""
        return [sum(o.owed[level] for o in self.owners.values()) for level in range(len(self.full))]

    # ---- taking and giving back --------------------------------------------------------------

    def take(self, cell: Physical, tenant: str, doomed: bool = False) -> bool:
        """A cell is bound for a tenant; False: somebody else is then owed more than is left."""
        level = cell.level
        self._owe(tenant, level, -1)
        self.left[level] -= 1
        highest = self._cut(cell)
        above = cell.parent
        for up in range(level + 1, highest + 1):
            assert above is not None
            self.left[up] -= 1
            if above.healthy:
                self._doom(up)
            else:
                remove(self.bad[up], above)
            above = above.parent
        self._reunite(cell)
        if cell.healthy:
            self._doom(level)
        else:
            self.show(cell)
            if not doomed:
                self._spare(level)
        inside = self.chain.fanout[level]
        for down in range(level - 1, 0, -1):
            self.left[down] -= inside
            if not doomed:
                self._doom(down)
            inside *= self.chain.fanout[down]
        return min(self.splittable(self.free, self.owed)) >= 0

    def give_back(self, cell: Physical, tenant: str, doomed: bool = False) -> None:
        """A cell is no longer bound for a tenant."""
        level = cell.level
        self._owe(tenant, level, 1)
        self.left[level] += 1
        highest = self._merge(cell)
        above = cell.parent
        for up in range(level + 1, highest + 1):
            assert above is not None
            self.left[up] += 1
            if above.healthy:
                self._spare(up)
            else:
                self.bad[up].append(above)
            above = above.parent
        if cell.healthy:
            self._spare(level)
        else:
            self._hide_bad(cell)
            if not doomed:
                self._doom(level)
        inside = self.chain.fanout[level]
        for down in range(level - 1, 0, -1):
            self.left[down] += inside
            if not doomed:
                self._spare(down)
            inside *= self.chain.fanout[down]

    def _owe(self, tenant: str, level: int, by: int) -> None:
        self.owners[tenant].owed[level] += by
        self.owed[level] += by

    def _cut(self, cell: Physical) -> int:
        """Take a cell out of the free ones, splitting what it is in; the highest level touched."""
        while True:
            level, above = cell.level, cell.parent
            last = above is None or above.split
            if above is not None and not above.split:
                self.free[level].extend(above.children)
                above.split = True
            remove(self.free[level], cell)
            if last:
                return level
            assert above is not None
            cell = above

    def _merge(self, cell: Physical) -> int:
        """Put a cell among the free ones, with its buddies as one; the highest level touched."""
        while True:
            level, above = cell.level, cell.parent
            free = self.free[level]
            buddies = [] if above is None else [b for b in above.children if b is not cell]
            if above is None or not all(buddy in free for buddy in buddies):
                free.append(cell)
                return level
            for buddy in buddies:
                remove(free, buddy)
            above.split = False
            cell = above

    def promise(self, root: Virtual, leaf: Physical) -> None:
        """This hardware is about to be bound to that cell: neither is free for anything else.

        Also where it is bound already: whoever has it may give way first.
        """
        self.promised[root] = next(c for c in ancestors(leaf) if c.level == root.level)

    def _unpromised(
        self, cells: list[Physical], roots: list[Virtual]
    ) -> tuple[Physical, Virtual] | None:
        """The first of the cells, and of those of a contract that are not bound.

        What is promised to another is left out; what is promised to each other is not.
        """
        kept = {above for cell in self.promised.values() for above in ancestors(cell)}
        root = next((root for root in roots if root.twin is None), None)
        if root is not None and self.promised.get(root) is cells[0]:
            return cells[0], root
        cell = next((cell for cell in cells if cell not in kept), None)
        free = (root for root in roots if root.twin is None and root not in self.promised)
        root = next(free, None)
        return None if cell is None or root is None else (cell, root)

    # ---- health ------------------------------------------------------------------------------

    def fall_ill(self, cell: Physical) -> None:
        """A device is bad, and so is everything it is part of."""
        if not cell.healthy:
            return
        cell.healthy = False
        if cell.parent is not None:
            self.fall_ill(cell.parent)
        if not cell.dealt:
            self.bad[cell.level].append(cell)
            if self.owed[cell.level] > self._healthy(cell.level):
                self._doom(cell.level)
        elif cell.twin is None and not cell.split:
            self._show(cell)

    def recover(self, cell: Physical) -> None:
        """A device is healthy, and so is what it is part of once all of it is."""
        if cell.healthy:
            return
        cell.healthy = True
        if not cell.dealt:
            remove(self.bad[cell.level], cell)
            self._spare(cell.level)
        elif cell.twin is not None and not cell.pinned:
            self._unshow(cell, cell.twin)
        above = cell.parent
        if above is not None and all(buddy.healthy for buddy in above.children):
            self.recover(above)

    def _unshow(self, cell: Physical, virtual: Virtual) -> None:
        """It was bound because it was bad, and stays so only where it is in use by now."""
        doomed = self.owners[virtual.tenant].doomed[cell.level]
        if cell in doomed:
            remove(doomed, cell)
        if cell.priority < LOWEST:
            part(cell)
            if virtual.parent is None:
                self.give_back(cell, virtual.tenant, doomed=True)

    def _healthy(self, level: int) -> int:
        return self.left[level] - len(self.bad[level])

    def _doom(self, level: int) -> None:
        """Bind bad hardware to cells that no healthy hardware is left for."""
        if not self.bad[level]:
            return
        for tenant, owner in self.owners.items():
            while self.bad[level] and owner.owed[level] > self._healthy(level):
                pair = self._unpromised(self.bad[level], owner.roots[level])
                if pair is None:
                    break
                join(*pair)
                owner.doomed[level].append(pair[0])
                self.take(pair[0], tenant, doomed=True)

    def _spare(self, level: int) -> None:
        """Take doomed cells back for which healthy hardware is left now."""
        for tenant, owner in self.owners.items():
            doomed = owner.doomed[level]
            while doomed and owner.owed[level] < self._healthy(level):
                cell = doomed[0]
                part(cell)
                self._let_go(cell)
                remove(doomed, cell)
                self.give_back(cell, tenant, doomed=True)

    def _let_go(self, cell: Physical) -> None:
        """It was doomed and is no longer bound; what is healthy of it may be in use."""
        self.stranded |= {leaf for leaf in leaves_of(cell) if leaf.priority >= LOWEST}
        strand(cell)

    def _reunite(self, cell: Physical) -> None:
        """Who was stranded in it is at home again if it is bound as before."""
        stranded = self.still_stranded()
        for leaf in leaves_of(cell) if stranded else ():
            if leaf not in stranded or leaf.user is None or leaf.claimant is not None:
                continue
            mine = leaf.user.own(leaf)
            if mine is not None and mine.root is cell.twin and go_together(leaf, mine):
                bind(leaf, mine)
                reprioritise(leaf, mine.priority)

    def still_stranded(self) -> set[Physical]:
        """Devices that owners use, though their cells are no longer bound there."""
        if self.stranded:
            self.stranded = {leaf for leaf in self.stranded if _is_stranded(leaf)}
        return self.stranded

    def is_doomed(self, cell: Physical, tenant: str) -> bool:
        """Is the cell bound for the tenant only because it is bad?"""
        return cell in self.owners[tenant].doomed[cell.level]

    def show(self, cell: Physical) -> None:
        """A bad cell is bound: bind what is bad in it, so that the tenant sees it."""
        if cell in self.bad[cell.level]:
            remove(self.bad[cell.level], cell)
        if cell.twin is None:
            self._show(cell)
        for child in cell.children:
            if not child.healthy:
                self.show(child)

    def _show(self, cell: Physical) -> None:
        assert cell.parent is not None and cell.parent.twin is not None
        join(cell, unbound(cell.parent.twin.children))

    def _hide_bad(self, cell: Physical) -> None:
        self.bad[cell.level].append(cell)
        if cell.twin is not None:
            part(cell)
        for child in cell.children:
            if not child.healthy:
                self._hide_bad(child)

    # ---- checking ----------------------------------------------------------------------------

    def splittable(self, free: Levels, owed: list[int]) -> list[int]:
        """By level: how many cells can be split so that all that is owed can still be had."""
        spare = [0] * (self.chain.top + 2)
        for level in range(self.chain.top, 0, -1):
            fanout = self.chain.fanout[level + 1] if level < self.chain.top else 0
            spare[level] = len(free[level]) - owed[level] + spare[level + 1] * fanout
        return spare

    def suffices(self) -> bool:
        """Is there healthy hardware for everything that tenants own, whoever uses theirs?"""
        tops = [cell for cell in self.full[self.chain.top] if cell.healthy]
        if len(tops) == len(self.full[self.chain.top]):
            return True
        owned = [sum(cell.pinned != "" for cell in cells) for cells in self.full]
        for owner in self.owners.values():
            owned = [more + len(roots) for more, roots in zip(owned, owner.roots, strict=True)]
        free: Levels = [[] for _ in self.full]
        free[self.chain.top] = tops
        return min(self.splittable(free, owned)) >= 0

    def validate(self) -> None:
        """Check the free list against the cells, and safety while all hardware is healthy."""
        for level in range(1, self.chain.top + 1):
            for cell in self.free[level]:
                assert cell.twin is None and not cell.split, f"{cell} is free and bound or split"
                assert cell.parent is None or cell.parent.split, (
                    f"{cell} is free inside a free cell"
                )
            free = sum(not cell.dealt for cell in self.full[level])
            what = f"{self.chain.name}: of {self.chain.types[level]} cells"
            assert self.left[level] == free, f"{what} {self.left[level]} are left, in fact {free}"
            bad = [cell for cell in self.full[level] if not cell.healthy and not cell.dealt]
            assert len(bad) == len(self.bad[level]), (
                f"{what} {len(self.bad[level])} are free and bad, in fact {len(bad)}"
            )
        for cell in (cell for cells in self.full for cell in cells if cell.split):
            assert not all(child in self.free[child.level] for child in cell.children), (
                f"the children of {cell} are all free and not merged"
            )
        for tenant, owner in self.owners.items():
            _check_owner(tenant, owner)
        if all(cell.healthy for cell in self.full[self.chain.top]):
            spare = self.splittable(self.free, self.owed)
            assert min(spare) >= 0, f"{self.chain.name}: tenants are owed more than is left"


@contextmanager
def promising(
    stocks: Mapping[str, Stock], pairs: Iterable[tuple[Physical, Virtual | None]]
) -> Iterator[None]:
    """While these are bound one by one, and others leave for it, none of them is doomed."""
    for leaf, mine in pairs:
        if mine is not None:
            stocks[leaf.chain.name].promise(mine.root, leaf)
    yield
    for stock in stocks.values():
        stock.promised.clear()


def _check_owner(tenant: str, owner: Owner) -> None:
    """What is owed is not bound, and only bad hardware is bound for its own sake."""
    for roots, owed, doomed in zip(owner.roots, owner.owed, owner.doomed, strict=True):
        unbound = sum(root.twin is None for root in roots)
        assert owed == unbound, f"{tenant} is owed {owed} cells, and {unbound} are not bound"
        for cell in doomed:
            assert not cell.healthy, f"{cell} is doomed and healthy"
            assert cell.twin in roots, f"{cell} is doomed and bound to {cell.twin}"


def _is_stranded(leaf: Physical) -> bool:
    mine = leaf.user.own(leaf) if leaf.user is not None else None
    return mine is not None and mine.twin is not leaf


def remove(cells: list[T], cell: T) -> None:
    """Take one out; the last one fills the gap."""
    index = cells.index(cell)
    cells[index] = cells[-1]
    cells.pop()
