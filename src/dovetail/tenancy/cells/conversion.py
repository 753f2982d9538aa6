"""A layout as a cluster file of ours: nodes, racks and what tenants own.

Ours has nodes of equal parts and one level of racks above them, so not every layout can be written
down; what cannot is said. Machines are called n0, n1, … in the order of the hardware, and what was
pinned is pinned under these names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from dovetail.model.errors import UserError
from dovetail.tenancy.cells.building import Estate, Forest
from dovetail.tenancy.cells.cell import Physical
from dovetail.tenancy.cells.config import sizes_of
from dovetail.tenancy.cells.hived import layout_of, read_lined
from dovetail.tenancy.cells.layout import Chain
from dovetail.tenancy.cells.state import Cells


def converted(path: str) -> str:
    """HiveD's configuration file as the text of a cluster file."""
    try:
        config = read_lined(Path(path).read_text(), path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not a text file") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}:{line}: not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise UserError(f"{path}: cells are in too many others") from None
    try:
        # Everything is checked by starting with it.
        layout = layout_of(config)
        forest = Cells(layout).forest
        for tenant in layout.tenants:
            if not any(own.number for own in tenant.cells) and not tenant.pinned:
                raise UserError(f"{tenant.where}{tenant.name} owns nothing; ours own something")
        return "\n".join([*_nodes(forest), *_tenants(forest)])
    except UserError as error:
        # Where a line is known, the file is named already.
        said = str(error)
        raise UserError(said if said.startswith(path) else f"{path}: {said}") from None


def _nodes(forest: Forest) -> list[str]:
    lines: list[str] = []
    for name, levels in forest.physical.items():
        chain = forest.chains[name]
        lines += [
            "[[nodes]]",
            f"count = {len(levels[chain.node])}",
            f"gpus = {chain.leaves[chain.node]}",
            f"type = {json.dumps(_type(forest, chain))}",
        ]
        if chain.top > chain.node:
            lines.append(f"rack = {chain.fanout[chain.node + 1]}")
        lines.append("")
    return lines


def _type(forest: Forest, chain: Chain) -> str:
    """The type of its GPUs, or of its top cells where several have the same."""
    alike = [other for other in forest.chains.values() if other.leaf == chain.leaf]
    return chain.leaf if len(alike) == 1 else chain.name


def _tenants(forest: Forest) -> list[str]:
    lines: list[str] = []
    for estate in forest.estates.values():
        owned = [_own(forest, estate, chain) for chain in forest.chains.values()]
        lines += ["[[tenants]]", f"name = {json.dumps(estate.name)}"]
        if any(owned):
            lines.append(f"own = [{', '.join(filter(None, owned))}]")
        if estate.pinned:
            names = [_place(forest, forest.pinned[name]) for name in estate.pinned]
            lines.append(f"pinned = {json.dumps(names)}  # {', '.join(estate.pinned)}")
        lines.append("")
    return lines


def _own(forest: Forest, estate: Estate, chain: Chain) -> str:
    """What a tenant owns of one chain, as an inline table; empty: nothing."""
    found: dict[str, Any] = {}
    for level, cells in reversed(list(enumerate(estate.roots.get(chain.name, [])))):
        if cells:
            _add(found, estate.name, chain, level, len(cells))
    if not found:
        return ""
    amounts = ", ".join(f"{key} = {value}" for key, value in found.items())
    return f"{{ type = {json.dumps(_type(forest, chain))}, {amounts} }}"


def _add(found: dict[str, Any], tenant: str, chain: Chain, level: int, count: int) -> None:
    size = chain.leaves[level]
    _check(tenant, chain, level)
    if level == chain.node:
        found["nodes"] = count
    elif level > chain.node:
        found["racks"] = count
    else:
        found.setdefault("gpus", []).extend([size] * count)


def _check(tenant: str, chain: Chain, level: int) -> None:
    """Say it where ours have no such cell."""
    kind, size = chain.types[level], chain.leaves[level]
    if level > chain.node + 1:
        raise UserError(f"{tenant} owns {kind}, which is racks of racks; ours have one level")
    if level < chain.node and size not in sizes_of(chain.leaves[chain.node]):
        raise UserError(f"{tenant} owns {kind} of {size} GPUs; our nodes are not divided like that")


def _place(forest: Forest, cell: Physical) -> str:
    """What a piece of hardware is called in our file."""
    chain = cell.chain
    _check(cell.pinned, chain, cell.level)
    if cell.level > chain.node:
        racks = [
            rack
            for other in forest.chains.values()
            if other.top > other.node
            for rack in forest.physical[other.name][other.node + 1]
        ]
        return f"rack{racks.index(cell)}"
    nodes = [
        node
        for name, levels in forest.physical.items()
        for node in levels[forest.chains[name].node]
    ]
    above = cell
    while above.level < chain.node:
        assert above.parent is not None
        above = above.parent
    at = f"n{nodes.index(above)}"
    if above is cell:
        return at
    first = above.devices.index(cell.devices[0])
    return f"{at}:{first}-{first + cell.leaves - 1}"
