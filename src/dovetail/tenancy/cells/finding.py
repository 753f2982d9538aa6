"""Finds a gang a place: among what its tenant owns and then on hardware, or on what is idle.

Chains are tried in a fixed order. Nothing is taken here, but members of the tenant who agreed to
it are pushed among the opportunistic ones, and back if no place comes of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dovetail.core.registry import nearest
from dovetail.model.errors import UserError
from dovetail.tenancy.cells.building import Estate, Forest
from dovetail.tenancy.cells.cell import LOWEST, Virtual
from dovetail.tenancy.cells.commands import Wait
from dovetail.tenancy.cells.groups import Gang, Places, VirtualPlaces
from dovetail.tenancy.cells.holding import Holding
from dovetail.tenancy.cells.mapping import Bindings, Candidates, for_gang
from dovetail.tenancy.cells.packing import Packing
from dovetail.tenancy.cells.stock import Stock


@dataclass
class Found:
    """Devices for a gang, and its tenant's; None: they are lent."""

    places: Places
    virtual: VirtualPlaces | None


class Finder:
    """Where gangs could go."""

    def __init__(self, forest: Forest, stocks: dict[str, Stock], holding: Holding) -> None:
        self.forest = forest
        self.stocks = stocks
        self.holding = holding
        #: chains in the order in which they are tried, by type of device
        self._order: dict[str, list[str]] = {}
        for name in sorted(forest.chains, reverse=True):
            self._order.setdefault(forest.chains[name].leaf, []).append(name)
        self._lent = {name: Packing(levels, True) for name, levels in forest.physical.items()}
        self._owned: dict[tuple[str, str], Packing[Any]] = {}
        for estate in forest.estates.values():
            for name, levels in [*estate.full.items(), *estate.pinned.items()]:
                self._owned[estate.name, name] = Packing(levels, False)

    def find(self, gang: Gang, suggested: Candidates) -> Found | Wait:
        """A place, or why there is none now. A wrong request raises `UserError`."""
        estate = self._estate(gang)
        candidates = None if gang.anywhere else suggested
        if gang.pinned:
            chain = self.forest.pinned[gang.pinned].chain.name
            return self._find_owned(gang, gang.pinned, chain, candidates)
        answer: Found | Wait = Wait(f"{gang.tenant} owns no cells")
        for chain in self._chains(gang, estate):
            if gang.priority < LOWEST:
                answer = self._find_lent(gang, chain, candidates)
            else:
                answer = self._find_owned(gang, chain, chain, candidates)
            if isinstance(answer, Found):
                break
        return answer

    def _estate(self, gang: Gang) -> Estate:
        if gang.tenant not in self.forest.estates:
            hint = nearest(gang.tenant, list(self.forest.estates))
            raise UserError(f"{gang.name}: no tenant is called {gang.tenant!r}{hint}")
        estate = self.forest.estates[gang.tenant]
        if gang.pinned and gang.pinned not in estate.pinned:
            hint = nearest(gang.pinned, list(estate.pinned))
            who = f"{gang.name}: {gang.tenant}"
            raise UserError(f"{who} has no cell pinned as {gang.pinned!r}{hint}")
        if gang.pinned and gang.priority < LOWEST:
            raise UserError(f"{gang.name}: pinned cells are not lent; give a priority from 0 on")
        return estate

    def _chains(self, gang: Gang, estate: Estate) -> list[str]:
        """The chains a gang can be in, in order."""
        if gang.leaf and gang.leaf not in self._order:
            hint = nearest(gang.leaf, list(self._order))
            raise UserError(f"{gang.name}: there are no devices of type {gang.leaf!r}{hint}")
        kinds = [gang.leaf] if gang.leaf else sorted(self._order)
        chains = [chain for kind in kinds for chain in self._order[kind]]
        if gang.priority < LOWEST:
            return chains
        own = [chain for chain in chains if chain in estate.full]
        if gang.leaf and not own:
            raise UserError(f"{gang.name}: {gang.tenant} owns no cells of type {gang.leaf!r}")
        return own

    def _find_lent(self, gang: Gang, chain: str, candidates: Candidates) -> Found | Wait:
        found = self._lent[chain].place(gang.sizes, gang.priority, candidates)
        if isinstance(found, str):
            return Wait(f"{found}, in the whole cluster")
        return Found({size: [list(member) for member in found[size]] for size in found}, None)

    def _find_owned(self, gang: Gang, key: str, chain: str, candidates: Candidates) -> Found | Wait:
        found = self._owned[gang.tenant, key].place(gang.sizes, gang.priority, candidates)
        if isinstance(found, str):
            return Wait(f"{found}, among the cells of {gang.tenant}")
        leaves = [leaf for size in sorted(found) for member in found[size] for leaf in member]
        demoted = self.holding.make_way(leaves, gang.name)
        bindings = self._hardware(leaves, self.stocks[chain], candidates)
        if bindings is None:
            for demotion in reversed(demoted):
                self.holding.promote(demotion)
            return Wait("its cells would have to be on a node that is bad or not a candidate")
        places: Places = {
            size: [[bindings[leaf] for leaf in member] for member in found[size]] for size in found
        }
        return Found(places, found)

    def _hardware(
        self, leaves: list[Virtual], stock: Stock, candidates: Candidates
    ) -> Bindings | None:
        """What a gang's devices are bound to."""
        return for_gang(leaves, stock, candidates)
