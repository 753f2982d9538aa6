"""The state of all cells: who owns, uses and awaits what. One mutating door, `apply`.

No clock, no chance, no I/O: the same commands in the same order give the same answers. It places
gangs inside what their tenants own and binds that to hardware; in which order gangs ask is not
its business. `validate` checks everything that must hold between two commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import lru_cache
from itertools import chain
from typing import Any

from dovetail.model.errors import UserError
from dovetail.tenancy.cells.building import build
from dovetail.tenancy.cells.cell import HIGHEST, LOWEST, OPPORTUNISTIC, Physical, Virtual, bind
from dovetail.tenancy.cells.commands import (
    Answer,
    Ask,
    Break,
    Command,
    Done,
    Go,
    Leave,
    Lend,
    Occupy,
    Placed,
    Preempt,
    Repair,
    Sit,
    Vacate,
    Wait,
    Withdraw,
)
from dovetail.tenancy.cells.finding import Finder, Found
from dovetail.tenancy.cells.groups import (
    NOWHERE,
    Gang,
    Group,
    GroupState,
    claimants,
    row_of,
    users,
)
from dovetail.tenancy.cells.holding import Holding
from dovetail.tenancy.cells.layout import Layout
from dovetail.tenancy.cells.opening import check_pins, open_stocks
from dovetail.tenancy.cells.stock import Stock, promising

ALLOCATED = GroupState.ALLOCATED
"""At hand: looking a member up in its class is slow, and there are very many devices."""
ONE = {1: 1}
"""The sizes of a gang that is one device."""
MANY = 65536
"""Devices whose gangs are remembered."""


class Cells:
    """Virtual clusters on hardware."""

    #: who keeps the books
    stock_kind: type[Stock] = Stock
    holding_kind: type[Holding] = Holding
    #: who looks for hardware
    finder_kind: type[Finder] = Finder

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.forest = build(layout)
        self.groups: dict[str, Group] = {}
        self.bad_nodes: set[str] = set()
        self.stocks = open_stocks(self.forest, layout, self.stock_kind)
        self.holding = self.holding_kind(self.forest, self.stocks)
        self.by_node = self._list_by_node()
        #: devices by node and index, and all that tenants own by their addresses
        self.devices = {
            (node, leaf.devices[0]): leaf
            for node, leaves in self.by_node.items()
            for leaf in leaves
        }
        self.owned = {
            (estate.name, cell.address): cell
            for estate in self.forest.estates.values()
            for levels in [*estate.full.values(), *estate.pinned.values()]
            for cells in levels
            for cell in cells
        }
        self.finder = self.finder_kind(self.forest, self.stocks, self.holding)
        self._pin()

    def _list_by_node(self) -> dict[str, list[Physical]]:
        found: dict[str, list[Physical]] = {}
        for levels in self.forest.physical.values():
            for leaf in levels[1]:
                found.setdefault(leaf.nodes[0], []).append(leaf)
        return found

    def _pin(self) -> None:
        for estate in self.forest.estates.values():
            for name, levels in estate.pinned.items():
                cell = self.forest.pinned[name]
                self.stocks[cell.chain.name].take(cell, estate.name)
                bind(cell, levels[-1][0])
        check_pins(self.stocks, self.layout)

    # ---- the door ----------------------------------------------------------------------------

    def apply(self, command: Command) -> Answer:
        """Take in one command and answer it. A wrong request raises `UserError`."""
        handler: Callable[[Cells, Any], Answer] = _HANDLERS[type(command)]
        return handler(self, command)

    def _ask(self, ask: Ask) -> Answer:
        self._check_gang(ask)
        group = self.groups.get(ask.gang.name)
        if group is not None and group.state is not GroupState.PREEMPTING:
            return self._next_seat(group, ask)
        if group is not None:
            if not (ask.preempt and self._misplaced(group, ask)):
                group.asking.add(ask.member)
                return self._answer(Found(group.places, group.virtual), group, ask, 0)
            self._cancel(group)
        return self._ask_anew(ask)

    def _check_gang(self, ask: Ask) -> None:
        gang = ask.gang
        if not OPPORTUNISTIC <= gang.priority <= HIGHEST:
            raise UserError(f"{gang.name}: priority {gang.priority} is not -1 to {HIGHEST}")
        if ask.size not in gang.sizes:
            raise UserError(f"{gang.name} has no member with {ask.size} devices")

    def _next_seat(self, group: Group, ask: Ask) -> Answer:
        seats = group.seats.get(ask.size, [])
        if None not in seats:
            number = f"{len(seats)} members with {ask.size} devices"
            raise UserError(f"{ask.gang.name} has {number}, and all of them are here")
        return self._go(Found(group.places, group.virtual), group, ask, seats.index(None))

    def _misplaced(self, group: Group, ask: Ask) -> bool:
        """Does a gang that preempts wait for nodes that are bad or unwanted by now?"""
        wanted = None if group.gang.anywhere else ask.candidates
        return any(
            not leaf.healthy or (wanted is not None and leaf.nodes[0] not in wanted)
            for leaf, _ in group.leaves()
        )

    def _ask_anew(self, ask: Ask) -> Answer:
        found = self.finder.find(ask.gang, ask.candidates)
        if isinstance(found, Wait):
            return found
        if ask.preempt:
            group = Group(ask.gang, GroupState.PREEMPTING, found.places, found.virtual)
            with self.promised(group.leaves()):
                for rival in claimants(found.places):
                    self._cancel(rival)
                if users(found.places):
                    self._reserve(group, ask.member)
        return self._answer(found, self.groups.get(ask.gang.name), ask, 0)

    def _answer(self, found: Found, group: Group | None, ask: Ask, index: int) -> Answer:
        victims = [member for user in users(found.places) for member in user.members]
        if victims:
            return Preempt(tuple(victims))
        return self._go(found, group, ask, index)

    def _go(self, found: Found, group: Group | None, ask: Ask, index: int) -> Go:
        rows = {
            size: tuple(
                row_of(member, found.virtual[size][number] if found.virtual else None)
                or (group.rows[size][number] if group else NOWHERE)
                for number, member in enumerate(found.places[size])
            )
            for size in sorted(found.places)
        }
        first = found.places[ask.size][index][0]
        chain = first.chain.name if first is not None else group.chain if group else ""
        return Go(rows[ask.size][index], Placed(chain, rows))

    # ---- reserving, taking, leaving ----------------------------------------------------------

    def _reserve(self, group: Group, member: str) -> None:
        """Take devices at once, so that no equal or lower gang can, and wait for the victims."""
        for leaf, mine in group.leaves():
            if leaf.user is not None:
                self.holding.give_way(leaf)
            self.holding.take(leaf, mine, group)
            leaf.claimant = group
        group.asking.add(member)
        self.groups[group.gang.name] = group

    def _cancel(self, group: Group) -> None:
        """Give reserved devices back to those who are still there."""
        for leaf, mine in group.leaves():
            self.holding.release(leaf, mine, group)
            leaf.claimant = None
            if leaf.user is not None:
                self.holding.take_back(leaf)
        del self.groups[group.gang.name]

    def _sit(self, sit: Sit) -> Answer:
        group = self.groups.get(sit.gang.name)
        if group is None:
            group = self.groups[sit.gang.name] = self.holding.adopt(sit.gang, sit.placed)
        elif group.state is GroupState.PREEMPTING:
            group.rows, group.chain = sit.placed.rows, sit.placed.chain
            self._settle(group)
        rows = sit.placed.rows[sit.size]
        group.seats[sit.size][rows.index(sit.row)] = sit.member
        return Done()

    def _settle(self, group: Group) -> None:
        for leaf, _ in group.leaves():
            leaf.claimant, leaf.user = None, group
        group.state = GroupState.ALLOCATED
        group.asking.clear()

    def _leave(self, leave: Leave) -> Answer:
        group = self.groups[leave.group]
        for seats in group.seats.values():
            if leave.member in seats:
                seats[seats.index(leave.member)] = None
        if not group.members:
            self.holding.dissolve(group)
            del self.groups[leave.group]
        return Done()

    def _withdraw(self, withdraw: Withdraw) -> Answer:
        group = self.groups.get(withdraw.group)
        if group is not None and group.state is GroupState.PREEMPTING:
            group.asking.discard(withdraw.member)
            if not group.asking:
                self._cancel(group)
        return Done()

    # ---- devices one by one ------------------------------------------------------------------

    def _occupy(self, occupy: Occupy) -> Answer:
        pairs = [
            (self.devices[node, index], self.owned[occupy.tenant, mine])
            for mine, node, index in occupy.devices
        ]
        with self.promised(pairs):
            safe = [self._take(leaf, mine) for leaf, mine in pairs]
        return Done(all(safe))

    def promised(
        self, pairs: Iterable[tuple[Physical, Virtual | None]]
    ) -> AbstractContextManager[None]:
        """While these are bound one by one, and others leave for it, none of them is doomed."""
        return promising(self.stocks, pairs if self.bad_nodes else ())

    def _lend(self, lend: Lend) -> Answer:
        for place in lend.devices:
            self._take(self.devices[place], None)
        return Done()

    def _take(self, leaf: Physical, mine: Virtual | None) -> bool:
        group = single(leaf, mine)
        leaf.user = self.groups[group.gang.name] = group
        return self.holding.take(leaf, mine, group)

    def _vacate(self, vacate: Vacate) -> Answer:
        for place in vacate.devices:
            group = self.devices[place].user
            assert group is not None, f"nobody is on {place}"
            self.holding.dissolve(group)
            del self.groups[group.gang.name]
        return Done()

    # ---- health ------------------------------------------------------------------------------

    def _break(self, event: Break) -> Answer:
        if event.node not in self.bad_nodes:
            self.bad_nodes.add(event.node)
            for leaf in self.by_node.get(event.node, ()):
                self.stocks[leaf.chain.name].fall_ill(leaf)
        return Done()

    def _repair(self, event: Repair) -> Answer:
        if event.node in self.bad_nodes:
            self.bad_nodes.discard(event.node)
            for leaf in self.by_node.get(event.node, ()):
                self.stocks[leaf.chain.name].recover(leaf)
        return Done()

    # ---- telling -----------------------------------------------------------------------------

    def stranded(self) -> set[Physical]:
        """Devices that owners use, though their cells are no longer bound there."""
        return {leaf for stock in self.stocks.values() for leaf in stock.still_stranded()}

    def sitting(self) -> Iterator[Sit]:
        """Who sits where, as commands: what another configuration is told to take over."""
        for group in self.groups.values():
            if group.state is GroupState.PREEMPTING:
                continue
            placed = Placed(group.chain, group.rows)
            for size, seats in group.seats.items():
                for row, member in zip(group.rows[size], seats, strict=True):
                    if member is not None:
                        yield Sit(member, group.gang, size, row, placed)

    def take_over(self, other: Cells) -> None:
        """Everybody who runs in another configuration runs in this one, on the same hardware.

        Who lost their cells are lent theirs.
        """
        for sit in other.sitting():
            self.apply(sit)
        for node in sorted(other.bad_nodes):
            self.apply(Break(node))

    def dissolve(self) -> None:
        """Take all trees apart."""
        for levels in self.forest.physical.values():
            for cell in chain.from_iterable(levels):
                cell.parent = cell.twin = cell.user = cell.claimant = None
                cell.children = []
        for owned in self.owned.values():
            owned.parent = owned.twin = owned.charged = None
            owned.children = []
            del owned.root

    def validate(self) -> None:
        """Check everything that must hold between two commands."""
        for stock in self.stocks.values():
            stock.validate()
        self.holding.validate(self.groups)


def single(leaf: Physical, mine: Virtual | None) -> Group:
    """Who uses one device: its owner, or somebody it is lent to."""
    if mine is None:
        gang = _alone(f"lent {leaf.address}", "", OPPORTUNISTIC)
        return Group(gang, ALLOCATED, {1: [[leaf]]}, None)
    gang = _alone(f"{mine.tenant}: {mine.address}", mine.tenant, LOWEST)
    return Group(gang, ALLOCATED, {1: [[leaf]]}, {1: [[mine]]})


@lru_cache(MANY)
def _alone(name: str, tenant: str, priority: int) -> Gang:
    """A gang of one device: the same again whenever that is taken, here and in forks."""
    return Gang(name, tenant, priority, ONE)


_HANDLERS: dict[type, Callable[[Cells, Any], Answer]] = {
    Ask: Cells._ask,
    Sit: Cells._sit,
    Leave: Cells._leave,
    Withdraw: Cells._withdraw,
    Break: Cells._break,
    Repair: Cells._repair,
    Occupy: Cells._occupy,
    Lend: Cells._lend,
    Vacate: Cells._vacate,
}
