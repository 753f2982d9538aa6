"""The stocks of a forest at the beginning: everything free, and what tenants own adding up."""

from __future__ import annotations

from typing import Any

from dovetail.model.errors import UserError
from dovetail.tenancy.cells.building import Forest
from dovetail.tenancy.cells.layout import Layout
from dovetail.tenancy.cells.stock import Owner, Stock


def open_stocks(forest: Forest, layout: Layout, kind: type[Stock] = Stock) -> dict[str, Stock]:
    """A stock for each chain, or a sentence about who owns more than there is."""
    stocks = {name: _stock(forest, name, kind) for name in forest.chains}
    for stock in stocks.values():
        chain, left = stock.chain, len(stock.full[stock.chain.top])
        #: who owns larger cells, with how many
        larger: list[str] = []
        for level in range(chain.top, 0, -1):
            left -= _demand(stock, level, left, layout, larger)
            left *= chain.fanout[level]
    return stocks


def _stock(forest: Forest, chain: str, kind: type[Stock]) -> Stock:
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
    return kind(forest.chains[chain], forest.physical[chain], owners)


def _demand(stock: Stock, level: int, left: int, layout: Layout, larger: list[str]) -> int:
    """What tenants own of a level; complains about the first who asks for too much."""
    kind, given, asked = stock.chain.types[level], list[str](), 0
    for tenant, owner in stock.owners.items():
        wanted = owner.owed[level]
        if wanted > left - asked:
            rest = f"{left - asked} {'is' if left - asked == 1 else 'are'} left"
            others = f" after {', '.join(larger + given)}" if larger + given else ""
            where = _where(layout, tenant, stock.chain.name, kind)
            said = layout.counted(wanted, kind)
            raise UserError(f"{where}{tenant} asks for {said}; {rest}{others}")
        asked += wanted
        given += [tenant] * bool(wanted)
    larger += [f"{name} ({layout.counted(stock.owners[name].owed[level], kind)})" for name in given]
    return asked


def _where(layout: Layout, name: str, chain: str, kind: str) -> str:
    """The line on which a tenant asks for cells of a type."""
    tenant = next(tenant for tenant in layout.tenants if tenant.name == name)
    lines = (own.where for own in tenant.cells if (own.path[0], own.kind) == (chain, kind))
    return next(lines, tenant.where)


def check_pins(stocks: dict[str, Stock], layout: Layout) -> None:
    """Numbers may add up while pinned cells lie so that larger ones of others are broken up."""
    for stock in stocks.values():
        spare = stock.splittable(stock.free, stock.owed)
        for level in range(stock.chain.top, 0, -1):
            if spare[level] < 0:
                short = layout.counted(-spare[level], stock.chain.types[level])
                pinned = next(tenant for tenant in layout.tenants if tenant.pinned)
                raise UserError(
                    f"{pinned.where}with what is pinned ({', '.join(_pinned(layout))}), others "
                    f"miss {short}; pin cells that are close to each other"
                )


def _pinned(layout: Layout) -> list[str]:
    return [name for tenant in layout.tenants for name in tenant.pinned]
