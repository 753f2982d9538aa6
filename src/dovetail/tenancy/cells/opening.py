"""The stocks of a forest at the beginning: everything free, and what tenants own adding up."""

from __future__ import annotations

from typing import Any

from dovetail.model.errors import UserError
from dovetail.tenancy.cells.building import Forest
from dovetail.tenancy.cells.layout import Layout
from dovetail.tenancy.cells.stock import Owner, Stock


def open_stocks(forest: Forest, layout: Layout) -> dict[str, Stock]:
    """A stock for each chain, or a sentence about who owns more than there is."""
    stocks = {name: _stock(forest, name) for name in forest.chains}
    places = {tenant.name: tenant.where for tenant in layout.tenants}
    for stock in stocks.values():
        chain, left = stock.chain, len(stock.full[stock.chain.top])
        for level in range(chain.top, 0, -1):
            left -= _demand(stock, level, left, places)
            left *= chain.fanout[level]
    return stocks


def _stock(forest: Forest, chain: str) -> Stock:
    owners: dict[str, Owner] = {}
    for name, estate in forest.estates.items():
        empty: list[list[Any]] = [[] for _ in forest.chains[chain].types]
        roots = estate.roots.get(chain, empty)
        owed = [len(cells) for cells in roots]
        for levels in estate.pinned.values():
            root = levels[-1][0]
            if root.chain.name == chain:
                owed[root.level] += 1
        if any(owed):
            owners[name] = Owner(owed, [[] for _ in owed], roots)
    return Stock(forest.chains[chain], forest.physical[chain], owners)


def _demand(stock: Stock, level: int, available: int, places: dict[str, str]) -> int:
    """What tenants own of a level; complains about the first who asks for too much."""
    kind, given = stock.chain.types[level], list[str]()
    asked = 0
    for tenant, owner in stock.owners.items():
        wanted = owner.owed[level]
        left = available - asked
        if wanted > left:
            verb = "is" if left == 1 else "are"
            after = f" after {', '.join(given)}" if given else ""
            above = f" beside larger cells of {stock.chain.name}" * (level < stock.chain.top)
            raise UserError(
                f"{places[tenant]}{tenant} asks for {wanted} of {kind}{above}; "
                f"{left} {verb} left{after}"
            )
        asked += wanted
        given += [tenant] * bool(wanted)
    return asked
