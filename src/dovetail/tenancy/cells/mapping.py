"""From cells of a tenant to hardware: which physical cells a virtual placement is bound to.

Nothing is changed here: the answer is a binding of devices. A cell of the contract gets hardware
by buddy allocation, from the smallest free cell that is large enough; where bad or unwanted nodes
are in the way, other free cells are tried, and then larger ones as far as that is safe for
everybody. What is inside a bound cell follows its shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dovetail.tenancy.cells.building import Levels
from dovetail.tenancy.cells.cell import OPPORTUNISTIC, Physical, Virtual
from dovetail.tenancy.cells.stock import Stock, remove

Bindings = dict[Virtual, Physical]
Candidates = frozenset[str] | None
Only = frozenset[Physical] | None


@dataclass
class Branch:
    """An unbound virtual cell, and what in it must be bound."""

    cell: Virtual
    below: list[Branch] = field(default_factory=list)


def for_gang(leaves: Iterable[Virtual], stock: Stock, candidates: Candidates) -> Bindings | None:
    """Hardware for a gang, where HiveD would have it; None: only on bad or unwanted nodes.

    Where that takes what others are owed, nobody has to leave for it: a gang that finds room there
    runs as if lent it.
    """
    leaves = list(leaves)
    mapping = Mapping(stock, candidates)
    found = mapping.map(leaves)
    if found is None or mapping.is_safe() or not any(leaf.user for leaf in found.values()):
        return found
    return Sparing(stock, candidates).map(leaves)


def hardware_for(
    stocks: dict[str, Stock],
    leaves: Iterable[Virtual],
    candidates: Candidates = None,
    only: Only = None,
) -> Bindings | None:
    """Hardware for devices of several chains that leaves to others what they are owed.

    `only`: on these devices and no others.
    """
    by_chain: dict[str, list[Virtual]] = {}
    for leaf in leaves:
        by_chain.setdefault(leaf.chain.name, []).append(leaf)
    found: Bindings = {}
    for chain, listed in by_chain.items():
        bindings = Sparing(stocks[chain], candidates, only).map(listed)
        if bindings is None:
            return None
        found.update(bindings)
    return found


class Mapping:
    """One search, on copies of what is free and owed.

    Where hardware is bad it looks as HiveD does: larger cells are dealt out in parts, as many of a
    size as everybody can spare. That does not count what of other sizes goes with them: see
    `is_safe`.
    """

    def __init__(self, stock: Stock, candidates: Candidates, only: Only = None) -> None:
        self.stock = stock
        self.candidates = candidates
        self.only = only
        self.free: Levels = [list(cells) for cells in stock.free]
        self.owed = list(stock.owed)
        self.bindings: Bindings = {}
        #: what the cells of the contract get
        self.taken: list[Physical] = []
        #: were larger cells looked at because others are bad?
        self.relaxed = False

    def map(self, leaves: Iterable[Virtual]) -> Bindings | None:
        """Bind everything, or nothing."""
        roots, inner = self._branches(leaves)
        for branch in roots:
            if self._buddy(branch, self._lowest(branch.cell.level)):
                self.owed[branch.cell.level] -= 1
            elif not self._relax(branch):
                return None
        for branches in inner.values():
            above = branches[0].cell.parent
            assert above is not None and above.twin is not None
            if self._fit(branches, above.twin.children) is None:
                return None
        return self.bindings

    def _branches(
        self, leaves: Iterable[Virtual]
    ) -> tuple[list[Branch], dict[Virtual, list[Branch]]]:
        """Unbound cells as trees: those of the contract, and those inside a bound cell."""
        known: dict[Virtual, Branch] = {}
        roots: list[Branch] = []
        inner: dict[Virtual, list[Branch]] = {}
        for leaf in leaves:
            if leaf.twin is not None:
                self.bindings[leaf] = leaf.twin
                continue
            branch: Branch | None = None
            cell: Virtual | None = leaf
            while cell is not None and cell.twin is None and cell not in known:
                branch = known[cell] = Branch(cell, [] if branch is None else [branch])
                cell = cell.parent
            assert branch is not None
            if cell is None:
                roots.append(branch)
            elif cell in known:
                known[cell].below.append(branch)
            else:
                inner.setdefault(cell, []).append(branch)
        return roots, inner

    def _lowest(self, level: int) -> int:
        """The lowest level from this one on that has a free cell."""
        return next((up for up in range(level, len(self.free)) if self.free[up]), 0)

    def _buddy(self, branch: Branch, level: int) -> bool:
        """Take a cell of that level, or split one there; go back and try others if need be."""
        if not level:
            return False
        if level == branch.cell.level:
            return self._pick(branch, self.free[level])
        for cell in self._usable(self.free[level]):
            self.free[level - 1].extend(cell.children)
            if self._buddy(branch, level - 1):
                remove(self.free[level], cell)
                return True
            self.free[level - 1].clear()
        return False

    def _pick(self, branch: Branch, cells: Sequence[Physical]) -> bool:
        picked = self._fit([branch], cells)
        if picked is None:
            return False
        self.taken += picked
        self._drop(picked[0])
        return True

    def _drop(self, cell: Physical) -> None:
        remove(self.free[cell.level], cell)

    def _relax(self, branch: Branch) -> bool:
        """Deal out larger cells, as many as everybody can spare, and look among their parts."""
        level, self.relaxed = branch.cell.level, True
        spare = self.stock.splittable(self.free, self.owed)
        for up in range(level + 1, len(self.free)):
            parts = _parts(self.free[up], spare[up], level)
            self.free[level] = parts + self.free[level]
            if parts and self._pick(branch, self.free[level]):
                return True
        return False

    def is_safe(self) -> bool:
        """Does this take nothing that others are owed? What is short already is no reason."""
        if not self.relaxed:
            return True
        free, owed = [list(cells) for cells in self.stock.free], list(self.stock.owed)
        before = self.stock.splittable(free, owed)
        for cell in self.taken:
            _cut_out(free, cell)
            owed[cell.level] -= 1
        after = self.stock.splittable(free, owed)
        return all(now >= min(then, 0) for now, then in zip(after, before, strict=True))

    def _usable(self, cells: Iterable[Physical]) -> list[Physical]:
        """Those that can be bound, fewest lent devices first."""
        usable = [cell for cell in cells if cell.usable(self.candidates)]
        usable.sort(key=lambda cell: cell.used.get(OPPORTUNISTIC, 0))
        return usable

    def _fit(self, branches: Sequence[Branch], cells: Iterable[Physical]) -> list[Physical] | None:
        """Different hardware for each branch, with room for all that is below it."""
        usable = self._usable(cells)
        if len(usable) < len(branches):
            return None
        return self._assign(branches, usable, 0, [])

    def _assign(
        self,
        branches: Sequence[Branch],
        usable: Sequence[Physical],
        index: int,
        picked: list[Physical],
    ) -> list[Physical] | None:
        if index == len(branches):
            return picked
        branch = branches[index]
        for cell in usable:
            if cell in picked:
                continue
            if cell.level == 1:
                if self.only is not None and cell not in self.only:
                    continue
                self.bindings[branch.cell] = cell
            elif self._fit(branch.below, cell.children) is None:
                continue
            found = self._assign(branches, usable, index + 1, [*picked, cell])
            if found is not None:
                return found
        return None


class Sparing(Mapping):
    """The same, but takes no size that others are owed, and keeps together what it splits."""

    def _drop(self, cell: Physical) -> None:
        _cut_out(self.free, cell)

    def _relax(self, branch: Branch) -> bool:
        """Look among parts of larger cells, as far up as everybody can spare one."""
        level = branch.cell.level
        spare = self.stock.splittable(self.free, self.owed)
        cells = list(self.free[level])
        for up in range(level + 1, len(self.free)):
            # Whoever takes a part of it takes one of every size in between from all others.
            if spare[up] < 1:
                return False
            cells = _parts(list(self.free[up]), len(self.free[up]), level) + cells
            if self._pick(branch, cells):
                self.owed[level] -= 1
                return True
        return False


def _parts(cells: list[Physical], number: int, level: int) -> list[Physical]:
    """Take so many cells away, in parts of a level."""
    found = []
    for _ in range(min(len(cells), number)):
        found.append(cells[0])
        remove(cells, cells[0])
    while found and found[0].level > level:
        found = [child for cell in found for child in cell.children]
    return found


def _cut_out(free: Levels, cell: Physical) -> None:
    """Take a cell out of the free ones; the rest of what it is in stays as large as it can."""
    while cell not in free[cell.level]:
        above = cell.parent
        assert above is not None
        free[cell.level].extend(above.children)
        remove(free[cell.level], cell)
        cell = above
    remove(free[cell.level], cell)
