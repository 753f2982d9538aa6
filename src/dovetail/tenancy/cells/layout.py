"""What a cluster of cells is made of: types, hardware and who owns what, as plain values.

Types form chains: a rack of nodes of sockets of GPUs. Level 1 is one device. All cells of one type
inside a chain are interchangeable. Nothing here changes while jobs run, and nothing is checked
that needs more than one entry at a time; `building` does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dovetail.model.errors import UserError

MOST = 1_000_000
"""Devices in one cell."""


@dataclass(frozen=True, slots=True)
class CellType:
    """A cell made of equal cells of the type below."""

    name: str
    child: str
    children: int
    #: is one such cell one machine?
    node: bool = False
    #: where it was written, for errors: `cluster.toml:12`
    where: str = ""


@dataclass(frozen=True, slots=True)
class PhysicalSpec:
    """Hardware: a top cell, or a part of one. What is not stated is counted up."""

    type: str = ""
    address: str = ""
    children: tuple[PhysicalSpec, ...] = ()
    #: the name under which a tenant has exactly this cell
    pinned: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True)
class Owned:
    """Cells of one type that a tenant owns: a path from the top type down, and how many."""

    path: tuple[str, ...]
    number: int
    where: str = ""

    @property
    def kind(self) -> str:
        """The type of the cells."""
        return self.path[-1]


@dataclass(frozen=True, slots=True)
class TenantSpec:
    """A virtual cluster: the cells it consists of."""

    name: str
    cells: tuple[Owned, ...] = ()
    pinned: tuple[str, ...] = ()
    where: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """The whole configuration."""

    types: Mapping[str, CellType]
    physical: tuple[PhysicalSpec, ...]
    tenants: tuple[TenantSpec, ...]
    #: by type: what one cell of it is called, and several
    words: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def counted(self, number: int, kind: str) -> str:
        """So many cells of a type, in words."""
        one, more = self.words.get(kind, (f"cell of type {kind}", f"cells of type {kind}"))
        return f"{number} {one if number == 1 else more}"


@dataclass(frozen=True)
class Chain:
    """A top type with all types below it. Lists go by level; index 0 is not used."""

    name: str
    types: tuple[str, ...]
    #: children of a cell of that level
    fanout: tuple[int, ...]
    #: devices in a cell of that level
    leaves: tuple[int, ...]
    #: the level whose cells are machines
    node: int
    levels: dict[str, int] = field(default_factory=dict)

    @cached_property
    def top(self) -> int:
        """The highest level."""
        return len(self.types) - 1

    @property
    def leaf(self) -> str:
        """The type of one device."""
        return self.types[1]

    def level(self, name: str) -> int | None:
        """The level of a type, or None: not in this chain."""
        return self.levels.get(name)

    def least(self, devices: int) -> int:
        """The lowest level whose cells hold that many devices."""
        return next(level for level in range(1, self.top + 1) if self.leaves[level] >= devices)


def chain_of(top: str, types: Mapping[str, CellType]) -> Chain:
    """The chain below a top type; a type nobody describes is one device."""
    names, fanout, node = [top], list[int](), 0
    while names[-1] in types:
        kind = types[names[-1]]
        if kind.child in names:
            raise UserError(f"{kind.where}cell type {kind.name!r} contains itself")
        if kind.children < 1:
            raise UserError(f"{kind.where}cell type {kind.name!r} needs at least one child")
        names.append(kind.child)
        fanout.append(kind.children)
    names.append("")
    names.reverse()
    fanout = [0, 0, *reversed(fanout)]
    leaves = [0, 1]
    for level in range(2, len(names)):
        leaves.append(leaves[-1] * fanout[level])
    if leaves[-1] > MOST:
        raise UserError(
            f"{types[top].where}a cell of type {top!r} has {leaves[-1]} devices; {MOST} is most"
        )
    for level in range(len(names) - 1, 0, -1):
        if names[level] in types and types[names[level]].node:
            node = level
    if not node:
        where = types[top].where if top in types else ""
        raise UserError(
            f"{where}cell type {top!r} is smaller than a node; list whole nodes as hardware"
        )
    levels = {name: level for level, name in enumerate(names) if level}
    return Chain(top, tuple(names), tuple(fanout), tuple(leaves), node, levels)
