"""Where in a set of machines a gang goes: packed, without preempting where that is possible.

Works on a tenant's cells and on hardware alike. A machine is a cell of node level, or what a
tenant owns below that. Inside a machine, devices that are close to each other are taken. The order
of machines persists from call to call, so ties fall to those that were preferred before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic

from dovetail.tenancy.cells.cell import (
    FREE,
    OPPORTUNISTIC,
    AnyCell,
    Physical,
    ancestors,
    leaves_of,
)

BAD = "it would have to use a node that is bad or not among the candidates"
FULL = "not enough free devices close together"

Sizes = Mapping[int, int]
"""How many members of each number of devices a gang has."""


class Packing(Generic[AnyCell]):
    """The machines of one chain, or of one pinned cell."""

    __slots__ = ("machines", "spread")

    def __init__(self, levels: Sequence[Sequence[AnyCell]], spread: bool) -> None:
        """`spread`: pack each priority by itself and stay away from higher ones."""
        self.spread = spread
        node = next((cells[0].chain.node for cells in levels if cells), 0)
        self.machines: list[AnyCell] = [
            cell
            for level in range(min(node, len(levels) - 1), 0, -1)
            for cell in levels[level]
            if level == node or cell.parent is None
        ]

    def place(
        self, sizes: Sizes, priority: int, candidates: frozenset[str] | None
    ) -> dict[int, list[list[AnyCell]]] | str:
        """Devices for every member by size, or why there are none."""
        members = sorted(size for size, number in sizes.items() for _ in range(number))
        # First without displacing anybody.
        level = OPPORTUNISTIC
        found = self._machines(members, level, candidates)
        if isinstance(found, str) and priority > OPPORTUNISTIC:
            level = priority
            found = self._machines(members, level, candidates)
        if isinstance(found, str):
            return found
        left: dict[int, list[AnyCell]] = {}
        placed: dict[int, list[list[AnyCell]]] = {}
        for size, machine in zip(members, found, strict=True):
            if id(machine) not in left:
                left[id(machine)] = _available(machine, level)
            chosen = _closest(left[id(machine)], size)
            left[id(machine)] = [leaf for leaf in left[id(machine)] if leaf not in chosen]
            placed.setdefault(size, []).append(chosen)
        return placed

    def _machines(
        self, members: Sequence[int], priority: int, candidates: frozenset[str] | None
    ) -> list[AnyCell] | str:
        """A machine for each member, going through them once."""
        good = self._sort(priority, candidates)
        found: list[AnyCell] = []
        place = picked = 0
        for size in members:
            while place < good and _free(self.machines[place], priority) - picked < size:
                place, picked = place + 1, 0
            if place == good:
                return FULL if good == len(self.machines) else BAD
            found.append(self.machines[place])
            picked += size
        return found

    def _sort(self, priority: int, candidates: frozenset[str] | None) -> int:
        """Bring machines into the order of preference; returns how many may be used."""
        useless = {id(cell): _useless(cell, candidates) for cell in self.machines}
        wanted = _apart if self.spread else _fullest
        # Those that cannot be used keep their order, too: they can be used again one day.
        self.machines.sort(key=lambda cell: (useless[id(cell)], wanted(cell, priority)))
        return sum(not any(flags) for flags in useless.values())


def _useless(machine: AnyCell, candidates: frozenset[str] | None) -> tuple[bool, bool]:
    """Is a machine on bad hardware, and is it on hardware that nobody suggested?"""
    hardware = machine if isinstance(machine, Physical) else machine.twin
    if hardware is None:
        return False, False
    outside = candidates is not None and hardware.nodes[0] not in candidates
    return not hardware.healthy, outside


def _fullest(cell: AnyCell, _: int) -> tuple[int, int]:
    return -cell.taken, 0


def _apart(cell: AnyCell, priority: int) -> tuple[int, int]:
    own = cell.used.get(priority, 0)
    return -own, sum(count for other, count in cell.used.items() if other > priority)


def _free(machine: AnyCell, priority: int) -> int:
    """Devices that are free, or become so by displacing lower priorities."""
    held = sum(count for other, count in machine.used.items() if other >= priority)
    return machine.leaves - held


def _available(machine: AnyCell, priority: int) -> list[AnyCell]:
    """Free devices, then those of lower priorities."""
    leaves = list(leaves_of(machine))
    free = [leaf for leaf in leaves if leaf.priority == FREE]
    return free + [leaf for leaf in leaves if FREE < leaf.priority < priority]


def _closest(available: Sequence[AnyCell], size: int) -> list[AnyCell]:
    """The first devices that share the smallest cell which has enough of them."""
    chain = available[0].chain
    for level in range(chain.least(size), chain.top + 1):
        together: dict[int, list[AnyCell]] = {}
        for leaf in available:
            above = next((c for c in ancestors(leaf) if c.level == level), None)
            together.setdefault(id(above), []).append(leaf)
        for leaves in together.values():
            if len(leaves) >= size:
                return leaves[:size]
    raise AssertionError("a machine was chosen that has not enough devices")
