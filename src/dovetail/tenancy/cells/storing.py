"""The state of cells as plain values and back: what is bound, free, owed, bad and in use.

History matters here: which hardware a cell is bound to, and in which order free cells are listed,
follow from everything that came before and not from who holds what. Only for cells whose users
are single devices, as a tenancy's are.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import chain
from typing import Any

from dovetail.tenancy.cells.building import Levels
from dovetail.tenancy.cells.cell import LOWEST, AnyCell, Physical, ancestors, join
from dovetail.tenancy.cells.groups import Group
from dovetail.tenancy.cells.state import Cells, single
from dovetail.tenancy.cells.stock import Stock


def snapshot(cells: Cells) -> dict[str, Any]:
    """Everything needed to answer as these cells would."""
    return {
        "bad": sorted(cells.bad_nodes),
        "stocks": {name: _stock(stock) for name, stock in cells.stocks.items()},
        "users": [_user(group) for group in cells.groups.values()],
    }


def _stock(stock: Stock) -> dict[str, Any]:
    def listed(levels: Levels) -> list[list[int]]:
        return [[cell.number for cell in cells] for cells in levels]

    return {
        "free": listed(stock.free),
        "bad": listed(stock.bad),
        "split": listed([[cell for cell in cells if cell.split] for cells in stock.full]),
        "bound": [
            [
                (cell.number, twin.tenant, twin.address)
                for cell in cells
                if (twin := cell.twin) is not None
            ]
            for cells in stock.full
        ],
        "left": list(stock.left),
        "owed": {name: list(owner.owed) for name, owner in stock.owners.items()},
        "doomed": {name: listed(owner.doomed) for name, owner in stock.owners.items()},
    }


def _used(cells: Cells) -> list[Physical]:
    return [group.device for group in cells.groups.values()]


def _user(group: Group) -> tuple[Any, ...]:
    """A device in use: where, at which priority, and whose it is if it is not lent."""
    leaf, mine = group.device, group.mine
    where = (leaf.nodes[0], leaf.devices[0], leaf.priority)
    return where if mine is None else (*where, mine.tenant, mine.address)


def restore(cells: Cells, state: dict[str, Any]) -> None:
    """Fill new cells from a snapshot."""
    cells.bad_nodes = set(state["bad"])
    for leaf in (leaf for node in state["bad"] for leaf in cells.by_node.get(node, ())):
        for cell in ancestors(leaf):
            cell.healthy = False
    for name, stock in cells.stocks.items():
        _restore_stock(cells, stock, state["stocks"][name])
    for node, index, priority, *whose in state["users"]:
        leaf = cells.devices[node, index]
        mine = cells.owned[whose[0], whose[1]] if whose else None
        group = single(leaf, mine)
        leaf.user = cells.groups[group.gang.name] = group
        _take(leaf, priority)
        if mine is not None:
            mine.charged = group
            _take(mine, LOWEST)
            if mine.twin is not leaf:
                cells.stocks[leaf.chain.name].stranded.add(leaf)
    for levels in cells.forest.physical.values():
        _sum_up(levels)
    for estate in cells.forest.estates.values():
        for owned in [*estate.full.values(), *estate.pinned.values()]:
            _sum_up(owned)


def _take(leaf: AnyCell, priority: int) -> None:
    """Count a device as used, and nothing that it is part of yet."""
    leaf.priority, leaf.used, leaf.taken = priority, {priority: 1}, 1


def _sum_up(levels: Sequence[Sequence[AnyCell]]) -> None:
    """Give cells the sums of their parts, from devices upwards."""
    for cell in chain.from_iterable(levels[2:]):
        used: dict[int, int] = {}
        for child in cell.children:
            for priority, count in child.used.items():
                used[priority] = used.get(priority, 0) + count
        if used:
            cell.used, cell.taken, cell.priority = used, sum(used.values()), max(used)


def nobodys(cells: Cells, used: Container[Physical]) -> list[Physical]:
    """Devices in use that are not among these."""
    return [leaf for leaf in _used(cells) if leaf not in used]


def _restore_stock(cells: Cells, stock: Stock, state: dict[str, Any]) -> None:
    def listed(levels: list[list[int]]) -> Levels:
        return [[stock.full[level][n] for n in each] for level, each in enumerate(levels)]

    for level, split in enumerate(listed(state["split"])):
        for cell in stock.full[level]:
            cell.split = False
        for cell in split:
            cell.split = True
    for level, bound in enumerate(state["bound"]):
        for number, tenant, address in bound:
            join(stock.full[level][number], cells.owned[tenant, address])
    stock.free, stock.bad = listed(state["free"]), listed(state["bad"])
    stock.left = list(state["left"])
    for name, owner in stock.owners.items():
        owner.owed, owner.doomed = list(state["owed"][name]), listed(state["doomed"][name])
    stock.owed = stock.sum_owed()
