"""A layout as a cluster file of ours: nodes, racks and what tenants own.

Ours has nodes of equal parts and one level of racks above them, so not every layout can be written
down; what cannot is said. Machines lose their names, and pinned cells become cells of their type.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dovetail.model.errors import UserError
from dovetail.tenancy.cells.building import Estate, Forest, build
from dovetail.tenancy.cells.config import sizes_of
from dovetail.tenancy.cells.hived import layout_of
from dovetail.tenancy.cells.layout import Chain
from dovetail.tenancy.cells.opening import open_stocks


def converted(path: str) -> str:
    """HiveD's configuration file as the text of a cluster file."""
    import yaml  # noqa: PLC0415 (only this command reads one)

    try:
        config = yaml.safe_load(Path(path).read_text())
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a YAML file: {error}") from None
    try:
        layout = layout_of(config)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: not a configuration of HiveD: {error!r} is missing") from None
    forest = build(layout)
    open_stocks(forest, layout)
    return "\n".join([*_nodes(forest), *_tenants(forest)])


def _nodes(forest: Forest) -> list[str]:
    lines: list[str] = []
    for name, levels in forest.physical.items():
        chain = forest.chains[name]
        lines += [
            "[[nodes]]",
            f"count = {len(levels[chain.node])}",
            f"gpus = {chain.leaves[chain.node]}",
            f'type = "{_type(forest, chain)}"',
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
        lines += ["[[tenants]]", f'name = "{estate.name}"']
        lines += [f"# {name} was pinned to a certain cell" for name in estate.pinned]
        lines.append(f"own = [{', '.join(filter(None, owned))}]")
        lines.append("")
    return lines


def _own(forest: Forest, estate: Estate, chain: Chain) -> str:
    """What a tenant owns of one chain, as an inline table; empty: nothing."""
    counts = [len(cells) for cells in estate.roots.get(chain.name, [[]] * len(chain.types))]
    for levels in estate.pinned.values():
        if levels[-1][0].chain is chain:
            counts[levels[-1][0].level] += 1
    if not any(counts):
        return ""
    found: dict[str, Any] = {}
    for level in range(chain.top, 0, -1):
        if counts[level]:
            _add(found, estate.name, chain, level, counts[level])
    amounts = ", ".join(f"{key} = {value}" for key, value in found.items())
    return f'{{ type = "{_type(forest, chain)}", {amounts} }}'


def _add(found: dict[str, Any], tenant: str, chain: Chain, level: int, count: int) -> None:
    kind, size = chain.types[level], chain.leaves[level]
    if level == chain.node:
        found["nodes"] = count
    elif level == chain.node + 1:
        found["racks"] = count
    elif level > chain.node:
        raise UserError(f"{tenant} owns {kind}, which is racks of racks; ours have one level")
    elif size in sizes_of(chain.leaves[chain.node]):
        found.setdefault("gpus", []).extend([size] * count)
    else:
        raise UserError(f"{tenant} owns {kind} of {size} GPUs; our nodes are not divided like that")
