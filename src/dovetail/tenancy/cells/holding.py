"""Devices taken and released: bindings, priorities and sums follow, and so does the stock.

Below the commands: a device is taken for a gang on a cell of its tenant's, or lent. Knows how a
gang that runs already is fitted into a configuration, and who must step back for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dovetail.tenancy.cells.building import Forest, VirtualLevels
from dovetail.tenancy.cells.cell import (
    FREE,
    LOWEST,
    OPPORTUNISTIC,
    Physical,
    Virtual,
    ancestors,
    bind,
    go_together,
    hide,
    leaves_of,
    prioritise,
    unbind,
    use,
)
from dovetail.tenancy.cells.commands import Placed
from dovetail.tenancy.cells.groups import Gang, Group, GroupState, VirtualPlaces
from dovetail.tenancy.cells.stock import Stock, promising


class Demotion(NamedTuple):
    """What a gang had before it was demoted."""

    group: Group
    virtual: VirtualPlaces | None
    #: devices it was lent in exchange for its tenant's
    stranded: set[Physical]


class Holding:
    """Who holds which devices."""

    def __init__(self, forest: Forest, stocks: dict[str, Stock]) -> None:
        self.forest = forest
        self.stocks = stocks
        #: devices by machine and index, of each chain
        self._devices = {
            chain: {(leaf.nodes[0], leaf.devices[0]): leaf for leaf in levels[1]}
            for chain, levels in forest.physical.items()
        }

    # ---- one device --------------------------------------------------------------------------

    def take(self, leaf: Physical, mine: Virtual | None, group: Group) -> bool:
        """Use a device, as this one of the tenant's or lent; False: others are owed too much."""
        priority = OPPORTUNISTIC if mine is None else group.gang.priority
        prioritise(leaf, priority)
        use(leaf, priority, 1)
        if mine is None:
            return True
        _charge(mine, group)
        fresh = mine.root.twin is None
        if leaf.twin is None:
            # It may be bound already, because it is bad.
            self._bind(leaf, mine)
        if fresh:
            assert mine.root.twin is not None
            return self.stocks[leaf.chain.name].take(mine.root.twin, group.gang.tenant)
        return True

    def _bind(self, leaf: Physical, mine: Virtual) -> None:
        """Bind two devices; bad hardware that is shown where they go is shown elsewhere."""
        shown = _in_the_way(leaf, mine)
        if shown is not None:
            hide(shown)
        bind(leaf, mine)
        if shown is not None:
            self.stocks[leaf.chain.name].show(shown)

    def release(self, leaf: Physical, mine: Virtual | None, group: Group) -> None:
        """A gang uses a device no longer."""
        use(leaf, leaf.priority, -1)
        prioritise(leaf, FREE)
        if mine is None:
            return
        _discharge(mine)
        root = mine.root.twin
        if mine.twin is not leaf or root is None:
            return
        if leaf.healthy:
            # Bad hardware stays bound, so that its tenant sees it.
            unbind(leaf)
        stock = self.stocks[leaf.chain.name]
        unused = root.priority < LOWEST and not root.pinned
        if unused and not stock.is_doomed(root, group.gang.tenant):
            stock.give_back(root, group.gang.tenant)

    def give_way(self, leaf: Physical) -> None:
        """Somebody reserves a device in use; its user stays there and has it no longer."""
        user = leaf.user
        assert user is not None
        mine = user.own(leaf)
        self.release(leaf, mine if mine is not None and mine.twin is leaf else None, user)
        user.state = GroupState.BEING_PREEMPTED

    def take_back(self, leaf: Physical) -> None:
        """A device that was reserved is its user's again."""
        user = leaf.user
        assert user is not None
        mine = user.own(leaf)
        stranded = mine is not None and mine.charged is user
        self.take(leaf, None if stranded else mine, user)

    # ---- gangs -------------------------------------------------------------------------------

    def dissolve(self, group: Group) -> None:
        """A gang is gone; what others have reserved stays theirs."""
        for leaf, mine in group.leaves():
            leaf.user = None
            if leaf.claimant is None:
                self.release(leaf, mine, group)
            elif mine is not None and mine.charged is group:
                _discharge(mine)

    def demote(self, group: Group, by: str) -> Demotion:
        """A gang runs on where it is, as if its devices were lent to it."""
        stranded = set()
        for leaf, mine in group.leaves():
            if mine is None or mine.charged is not group:
                continue
            if mine.twin is leaf:
                self.release(leaf, mine, group)
                self.take(leaf, None, group)
            else:
                stranded.add(leaf)
                _discharge(mine)
        demotion = Demotion(group, group.virtual, stranded)
        group.virtual, group.lazily_preempted_by = None, by
        return demotion

    def promote(self, demotion: Demotion) -> None:
        """Undo `demote`, unless what it had was given to others: then it runs on as if lent."""
        group, by = demotion.group, demotion.group.lazily_preempted_by
        group.virtual, group.lazily_preempted_by = demotion.virtual, None
        own = [(leaf, mine) for leaf, mine in group.leaves() if mine and leaf.claimant is None]
        back = [(leaf, mine) for leaf, mine in own if leaf not in demotion.stranded]
        if not all(go_together(leaf, mine) for leaf, mine in back):
            group.virtual, group.lazily_preempted_by = None, by
            return
        with promising(self.stocks, back):
            for leaf, mine in own:
                if leaf in demotion.stranded:
                    _charge(mine, group)
                else:
                    self.release(leaf, None, group)
                    self.take(leaf, mine, group)

    def make_way(self, leaves: Iterable[Virtual], by: str) -> list[Demotion]:
        """Demote everybody on a tenant's devices who agreed to it, or is elsewhere anyway."""
        demoted = []
        for leaf in leaves:
            user = leaf.charged
            if user is None or (leaf.twin is not None and leaf.twin.claimant is not None):
                continue
            elsewhere = leaf.twin is None or leaf.twin.user is not user
            if user.gang.lazy or elsewhere:
                demoted.append(self.demote(user, by))
        return demoted

    # ---- taking over who runs already --------------------------------------------------------

    def adopt(self, gang: Gang, placed: Placed) -> Group:
        """A gang runs there: give it cells of its tenant's, or let it be lent what it uses."""
        lent = all(not name for rows in placed.rows.values() for row in rows for name in row.types)
        group = Group(gang, GroupState.ALLOCATED, {}, None if lent else {})
        group.rows, group.chain = placed.rows, placed.chain
        demoted = False
        for size, rows in placed.rows.items():
            group.places[size] = [[None] * size for _ in rows]
            if group.virtual is not None:
                group.virtual[size] = [[None] * size for _ in rows]
            for index in range(len(rows)):
                for number in range(size):
                    demoted |= not self._adopt_device(group, size, index, number, demoted)
        if demoted:
            self.demote(group, gang.name)
        return group

    def _adopt_device(
        self, group: Group, size: int, index: int, number: int, demoted: bool
    ) -> bool:
        """Returns whether the gang can stay on what its tenant owns."""
        row = group.rows[size][index]
        leaf = self._device(group.chain, row.node, row.devices[number])
        if leaf is None:
            # No longer part of the cluster: it runs on there, unseen.
            return True
        group.places[size][index][number] = leaf
        mine = None
        if group.virtual is not None and not demoted:
            mine = self.counterpart(leaf, group.gang, row.types[number])
            group.virtual[size][index][number] = mine
        safe = self.take(leaf, mine, group)
        leaf.user = group
        return safe and (group.virtual is None or demoted or mine is not None)

    def _device(self, chain: str, node: str, device: int) -> Physical | None:
        known = self._devices.get(chain, {}).get((node, device))
        if known is not None:
            return known
        others = (devices.get((node, device)) for devices in self._devices.values())
        return next((leaf for leaf in others if leaf is not None), None)

    def _vacate(self, root: Virtual, by: str) -> None:
        for leaf in leaves_of(root):
            if leaf.charged is not None:
                self.demote(leaf.charged, by)

    def counterpart(self, leaf: Physical, gang: Gang, kind: str) -> Virtual | None:
        """The tenant's device that goes with this one, in a cell of that type."""
        level = leaf.chain.level(kind)
        estate = self.forest.estates.get(gang.tenant)
        if level is None or estate is None:
            return None
        levels = estate.roots.get(leaf.chain.name)
        if gang.pinned:
            levels = estate.pinned.get(gang.pinned)
        return None if levels is None else self._descend(leaf, levels, level, gang)

    def _descend(
        self, leaf: Physical, levels: VirtualLevels, level: int, gang: Gang
    ) -> Virtual | None:
        """Walk from the bound or chosen cell of the contract down to the device."""
        cell, depth = leaf, 0
        while cell.twin is None and cell.level < level and cell.parent is not None:
            cell, depth = cell.parent, depth + 1
        mine = cell.twin
        if mine is not None and mine.root not in levels[mine.root.level]:
            # Somebody else's by now.
            return None
        if mine is None and cell.level == level and not cell.dealt:
            mine = lowest(levels[level], gang.priority)
            if mine is not None and mine.priority > FREE:
                # The tenant owns fewer cells than before: who was there steps back.
                self._vacate(mine, gang.name)
        for _ in range(depth):
            mine = None if mine is None else _idle(mine.children)
        return mine if mine is None or mine.priority == FREE else None

    # ---- checking ----------------------------------------------------------------------------

    def validate(self, groups: dict[str, Group]) -> None:
        """Check that devices, groups and sums agree."""
        self._check_groups(groups)
        for levels in self.forest.physical.values():
            for cells in levels:
                for cell in cells:
                    _check_sums(cell)
                    assert cell.twin is None or cell.twin.twin is cell, f"{cell} is half bound"
        for estate in self.forest.estates.values():
            trees: list[VirtualLevels] = [*estate.full.values(), *estate.pinned.values()]
            for virtual in (cell for tree in trees for cells in tree for cell in cells):
                _check_sums(virtual)
                _check_shape(virtual)

    def _check_groups(self, groups: dict[str, Group]) -> None:
        seen: dict[Physical, str] = {}
        charged: set[Virtual] = set()
        for name, group in groups.items():
            for leaf, mine in group.leaves():
                holder = leaf.claimant if group.state is GroupState.PREEMPTING else leaf.user
                assert holder is group, f"{leaf} does not know {name}"
                if leaf.claimant in (None, group):
                    assert leaf not in seen, f"{leaf} is of {name} and {seen[leaf]}"
                    seen[leaf] = name
                    bound = mine is not None and mine.twin is leaf and mine.charged is group
                    assert bound or leaf.priority == OPPORTUNISTIC, f"{leaf} is of nobody's"
                if mine is not None and mine.charged is group:
                    assert mine.tenant == group.gang.tenant, f"{mine} of {name}"
                    charged.add(mine)
        for levels in self.forest.physical.values():
            for leaf in levels[1]:
                assert (leaf.priority == FREE) == (leaf not in seen), f"{leaf} of nobody"
        for estate in self.forest.estates.values():
            for tree in [*estate.full.values(), *estate.pinned.values()]:
                for cell in tree[1]:
                    assert (cell.priority == FREE) == (cell not in charged), f"{cell} of nobody"
                    assert (cell.priority == FREE) == (cell.charged is None), f"{cell} of nobody"


def _check_sums(cell: Physical | Virtual) -> None:
    if cell.level > 1:
        inside = sum(child.taken for child in cell.children)
        assert cell.taken == inside, f"{cell} counts {cell.taken} devices in use, inside {inside}"
        highest = max(child.priority for child in cell.children)
        assert cell.priority == highest, f"{cell} is at priority {cell.priority}, not {highest}"
    taken = sum(cell.used.values())
    assert 0 <= cell.taken <= cell.leaves and cell.taken == taken, (
        f"{cell} counts {cell.taken} of {cell.leaves} devices in use, by priority {taken}"
    )


def _check_shape(cell: Virtual) -> None:
    """What is inside a bound cell is bound inside its hardware."""
    if cell.twin is None:
        return
    assert cell.twin.level == cell.level, f"{cell} is bound to {cell.twin}"
    if cell.parent is not None:
        assert cell.parent.twin is cell.twin.parent, f"{cell} is bound out of its place"


def _in_the_way(leaf: Physical, mine: Virtual) -> Physical | None:
    """Hardware that was bound to a cell around the tenant's device after it was chosen.

    With the first device of a cell that is bad in part, the bad part is bound at once, and that can
    be to what the gang's next device is in.
    """
    found = None
    for own, above in zip(ancestors(mine), ancestors(leaf), strict=False):
        if above.twin is not None:
            break
        found = own.twin or found
    return found


def _charge(mine: Virtual, group: Group) -> None:
    """Put a device on the account of a gang's tenant."""
    mine.charged = group
    prioritise(mine, group.gang.priority)
    use(mine, group.gang.priority, 1)


def _discharge(mine: Virtual) -> None:
    use(mine, mine.priority, -1)
    prioritise(mine, FREE)
    mine.charged = None


def lowest(cells: Iterable[Virtual], priority: int) -> Virtual | None:
    """A free cell, or that of the lowest priority below the given one."""
    used = [cell for cell in cells if FREE < cell.priority < priority]
    return _idle(cells) or min(used, key=lambda cell: cell.priority, default=None)


def _idle(cells: Iterable[Virtual]) -> Virtual | None:
    """A cell that nobody uses and that is not bound because it is bad."""
    return next((cell for cell in cells if cell.priority == FREE and cell.twin is None), None)
