"""Pinned cells in our words: which hardware `n3`, `n4:0-3` or `rack1` is, marked in its tree.

A tenant that pins hardware has exactly that, and nobody else can be given it. Names are those of
the cluster: a node, GPUs of one from a first to a last, or a rack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dovetail.core.registry import nearest
from dovetail.model.errors import UserError
from dovetail.tenancy.cells.layout import Chain, PhysicalSpec
from dovetail.tenancy.contracts import Contract

PIN = re.compile(r"(?P<name>[^:]+)(?::(?P<first>\d+)(?:-(?P<last>\d+))?)?")


@dataclass
class Kind:
    """Nodes that are alike, and the cell types they are divided into."""

    #: what tenants call it
    name: str
    #: names of the types from the top down, with how many GPUs each has
    path: list[str]
    sizes: list[int]
    #: machines, and racks of them where there are racks
    tops: list[PhysicalSpec]
    racks: bool

    def words(self) -> dict[str, tuple[str, str]]:
        """What its cells are called, one and several, by type."""
        found = {}
        for depth, (kind, size) in enumerate(zip(self.path, self.sizes, strict=True)):
            one, more = f"cell of {size} GPUs", f"cells of {size} GPUs"
            if depth == self.racks:
                one, more = "node", "nodes"
            elif depth < self.racks:
                one, more = "rack", "racks"
            elif size == 1:
                one, more = "single GPU", "single GPUs"
            found[kind] = (f"{one} of {self.name}", f"{more} of {self.name}")
        return found


class Pin(NamedTuple):
    """Hardware that one tenant has: a rack or node, and of a node these GPUs."""

    tenant: str
    name: str
    place: str
    first: int
    size: int


def pins_of(contracts: Sequence[Contract], kinds: Sequence[Kind]) -> list[Pin]:
    """What tenants pin, or a sentence about what is no cell or pinned twice."""
    found: list[Pin] = []
    nodes = {place: names for kind in kinds for place, names in _nodes(kind).items()}
    for contract in contracts:
        for own in contract.own:
            for text in own.pinned:
                pin = _pin(contract.name, text, kinds, own.at("pinned"))
                for other in found:
                    if _overlap(pin, other, nodes):
                        where = f"{own.at('pinned')}{contract.name} pins {text}"
                        raise UserError(f"{where}; {other.tenant} has {other.name} already")
                found.append(pin)
    return found


def _nodes(kind: Kind) -> dict[str, list[str]]:
    """The machines of each rack and machine."""
    tops = {top.address: [c.address for c in top.children] or [top.address] for top in kind.tops}
    return tops | {node: [node] for nodes in tops.values() for node in nodes}


def _pin(tenant: str, text: str, kinds: Sequence[Kind], where: str) -> Pin:
    given = PIN.fullmatch(text)
    said = f"{where}{tenant} pins {text!r}"
    if given is None:
        raise UserError(f"{said}, which is no node, GPUs of one (n4:0-3) or rack")
    for kind in kinds:
        if given["name"] in _nodes(kind):
            return _pin_of(kind, tenant, text, given, said)
    names = [name for kind in kinds for name in _nodes(kind)]
    raise UserError(f"{said}, and no node is called so{nearest(given['name'], names)}")


def _pin_of(kind: Kind, tenant: str, text: str, given: re.Match[str], said: str) -> Pin:
    racks = [top.address for top in kind.tops] if kind.racks else []
    if given["first"] is None:
        size = kind.sizes[0] if given["name"] in racks else kind.sizes[int(kind.racks)]
        return Pin(tenant, text, given["name"], 0, size)
    first = int(given["first"])
    size = int(given["last"] or first) - first + 1
    inside = kind.sizes[int(kind.racks) :]
    if given["name"] in racks or size not in inside or first % size or first + size > inside[0]:
        sizes = ", ".join(map(str, inside))
        raise UserError(
            f"{said}, which is no cell; cells of {kind.name} have {sizes} GPUs and begin at "
            f"multiples of that"
        )
    return Pin(tenant, text, given["name"], first, size)


def _overlap(one: Pin, other: Pin, nodes: Mapping[str, list[str]]) -> bool:
    if len(nodes[one.place]) == len(nodes[other.place]) == 1:
        apart = one.first + one.size <= other.first or other.first + other.size <= one.first
        return one.place == other.place and not apart
    return not set(nodes[one.place]).isdisjoint(nodes[other.place])


def pinned_tops(kind: Kind, pins: Sequence[Pin]) -> Iterator[PhysicalSpec]:
    """The hardware of a kind, with what is pinned marked."""
    for top in kind.tops:
        own = [pin for pin in pins if pin.place == top.address]
        if not kind.racks:
            yield _marked(top, kind.sizes, 0, own)
            continue
        children = tuple(
            _marked(node, kind.sizes[1:], 0, [pin for pin in pins if pin.place == node.address])
            for node in top.children
        )
        yield replace(top, children=children, pinned=own[0].name if own else "")


def _marked(
    spec: PhysicalSpec, sizes: Sequence[int], first: int, pins: Sequence[Pin]
) -> PhysicalSpec:
    """A machine or a part of one; divided where something in it is pinned."""
    for pin in pins:
        if (pin.first, pin.size) == (first, sizes[0]):
            return replace(spec, pinned=pin.name)
    inside = [pin for pin in pins if first <= pin.first < first + sizes[0]]
    if not inside:
        return spec
    children = tuple(
        _marked(PhysicalSpec(), sizes[1:], at, inside)
        for at in range(first, first + sizes[0], sizes[1])
    )
    return replace(spec, children=children)


def sizes_in(spec: PhysicalSpec, chains: Mapping[str, Chain]) -> Iterator[tuple[str, int]]:
    """The pinned cells in a top cell, with how many GPUs each has."""
    chain = chains[spec.type]
    return _sizes(spec, chain, chain.top)


def _sizes(cell: PhysicalSpec, chain: Chain, level: int) -> Iterator[tuple[str, int]]:
    if cell.pinned:
        yield cell.pinned, chain.leaves[level]
    for child in cell.children:
        yield from _sizes(child, chain, level - 1)
