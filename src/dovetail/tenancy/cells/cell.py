"""A cell: devices that are close to each other, as a tree. Hardware and what tenants own alike.

Cells keep sums about themselves (who uses how many of their devices at which priority) and point
to their counterpart while they are bound. They do not know why anything is bound or free.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, TypeVar

from dovetail.tenancy.cells.layout import Chain

if TYPE_CHECKING:
    from dovetail.tenancy.cells.groups import Group

FREE, OPPORTUNISTIC, LOWEST, HIGHEST = -2, -1, 0, 1000
"""Priorities: of a cell nobody uses, of borrowed cells, and the range of guaranteed ones."""

T = TypeVar("T")


class LeafState(StrEnum):
    """What becomes of one device."""

    FREE = "Free"
    USED = "Used"
    #: promised to a group that preempts; the victim is still there
    RESERVING = "Reserving"
    #: promised, and the victim is gone
    RESERVED = "Reserved"


class Cell(Generic[T]):
    """A node of a tree of cells; `T` is the kind of its relatives."""

    __slots__ = (
        "address",
        "chain",
        "children",
        "leaves",
        "level",
        "parent",
        "priority",
        "taken",
        "used",
    )

    def __init__(self, chain: Chain, level: int, address: str) -> None:
        self.chain = chain
        self.level = level
        self.address = address
        self.parent: T | None = None
        self.children: list[T] = []
        self.leaves = chain.leaves[level]
        #: the highest of its users
        self.priority = FREE
        #: devices in use by priority, and in all
        self.used: dict[int, int] = {}
        self.taken = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address}>"


class Physical(Cell["Physical"]):
    """A piece of hardware."""

    __slots__ = (
        *("claimant", "devices", "healthy", "nodes", "number", "pinned", "split", "twin", "user"),
    )

    def __init__(self, chain: Chain, level: int, address: str, pinned: str) -> None:
        super().__init__(chain, level, address)
        self.pinned = pinned
        #: its place among the cells of its level
        self.number = 0
        self.healthy = True
        #: are its children dealt out one by one?
        self.split = False
        #: the virtual cell it is bound to
        self.twin: Virtual | None = None
        #: of a device: who runs on it, and who has it reserved
        self.user: Group | None = None
        self.claimant: Group | None = None
        #: names of its machines, and below them the indices of its devices
        self.nodes: tuple[str, ...] = ()
        self.devices: tuple[int, ...] = ()

    @property
    def state(self) -> LeafState:
        """Of a device: who uses and who awaits it, in one word."""
        if self.claimant is None:
            return LeafState.FREE if self.user is None else LeafState.USED
        return LeafState.RESERVED if self.user is None else LeafState.RESERVING

    @property
    def dealt(self) -> bool:
        """Is it, or something it is part of, bound or split?"""
        cell = self
        while cell.twin is None and not cell.split:
            if cell.parent is None or cell.parent.split:
                return False
            cell = cell.parent
        return True

    def usable(self, candidates: frozenset[str] | None) -> bool:
        """May it be bound for new work, or something in it?"""
        if self.twin is not None or (len(self.nodes) == 1 and not self.healthy):
            return False
        return candidates is None or any(node in candidates for node in self.nodes)


class Virtual(Cell["Virtual"]):
    """A cell as its tenant sees it."""

    __slots__ = ("charged", "root", "tenant", "twin")

    def __init__(self, chain: Chain, level: int, address: str, tenant: str) -> None:
        super().__init__(chain, level, address)
        self.tenant = tenant
        #: the cell of the tenant's contract that this one is in
        self.root = self
        self.twin: Physical | None = None
        #: of a device: who has it on the tenant's account, mostly but not always on its twin
        self.charged: Group | None = None


AnyCell = TypeVar("AnyCell", Physical, Virtual)


def ancestors(cell: AnyCell) -> Iterator[AnyCell]:
    """The cell and everything it is part of, upwards."""
    found: AnyCell | None = cell
    while found is not None:
        yield found
        found = found.parent


def leaves_of(cell: AnyCell) -> Iterator[AnyCell]:
    """The devices of a cell, in order."""
    if cell.level == 1:
        yield cell
    for child in cell.children:
        yield from leaves_of(child)


def places_of(leaves: Iterable[Physical]) -> tuple[tuple[str, int], ...]:
    """Machine and index of each device: how commands name them."""
    return tuple([(leaf.nodes[0], leaf.devices[0]) for leaf in leaves])


def use(leaf: AnyCell, priority: int, by: int) -> None:
    """Count a device as used (1), or no longer (-1), in everything it is part of."""
    cell: AnyCell | None = leaf
    # No generator: this is done for every device that changes hands.
    while cell is not None:
        used = cell.used
        left = used.get(priority, 0) + by
        if left:
            used[priority] = left
        else:
            del used[priority]
        cell.taken += by
        cell = cell.parent


def prioritise(leaf: AnyCell, priority: int) -> None:
    """Give a device a priority; what it is part of has the highest of its children's."""
    leaf.priority = highest = priority
    cell = leaf.parent
    while cell is not None:
        if highest < cell.priority:
            highest = max([child.priority for child in cell.children])
        if highest == cell.priority:
            break
        cell.priority = highest
        cell = cell.parent


def join(physical: Physical, virtual: Virtual) -> None:
    """Bind these two, and only them."""
    physical.twin, virtual.twin = virtual, physical


def part(physical: Physical) -> Virtual:
    """Take these two apart, and only them."""
    virtual = physical.twin
    assert virtual is not None
    physical.twin = virtual.twin = None
    return virtual


def bind(physical: Physical, virtual: Virtual) -> None:
    """Bind two devices and, upwards, everything of the tenant's that is not bound yet."""
    above: Physical | None = physical
    for cell in ancestors(virtual):
        if cell.twin is not None:
            break
        assert above is not None
        join(above, cell)
        above = above.parent


def go_together(physical: Physical, virtual: Virtual) -> bool:
    """Can two devices be bound, with all they are part of up to what is bound already?"""
    above = physical
    for above, cell in zip(ancestors(physical), ancestors(virtual), strict=False):
        if above.twin is not None or cell.twin is not None:
            return above.twin is cell
    return not above.dealt


def unbind(physical: Physical) -> None:
    """Take two devices apart and, upwards, everything of the tenant's that binds nothing else."""
    cell = physical
    while not cell.pinned:
        virtual = part(cell)
        above = virtual.parent
        if above is None or any(child.twin is not None for child in above.children):
            return
        assert above.twin is not None
        cell = above.twin


def hide(cell: Physical) -> None:
    """Take a cell and everything in it from the tenant's."""
    if cell.twin is not None:
        part(cell)
    for child in cell.children:
        hide(child)


def reprioritise(leaf: Physical, priority: int) -> None:
    """Who uses a device runs on there as if it was lent, or is no longer lent it."""
    use(leaf, leaf.priority, -1)
    use(leaf, priority, 1)
    prioritise(leaf, priority)


def strand(cell: Physical) -> None:
    """Take everything in use in a bound cell from its tenant's, and lend it to who is there.

    Their tenant is still charged: it has no more than it owns, only elsewhere.
    """
    for child in cell.children:
        if child.twin is not None and child.priority >= LOWEST:
            part(child)
        strand(child)
    if cell.level == 1 and cell.priority >= LOWEST:
        reprioritise(cell, OPPORTUNISTIC)


def unbound(cells: list[Virtual]) -> Virtual:
    """The first of a tenant's cells that is not bound."""
    return next(cell for cell in cells if cell.twin is None)
