"""HiveD's configuration as a layout: the same cell types, cells and virtual clusters.

Takes the tree that its YAML file holds. Devices, chains and pinned cells keep their names, so
that placements can be compared. Where the tree knows its lines, errors name them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from dovetail.model.errors import UserError
from dovetail.tenancy.cells.layout import CellType, Layout, Owned, PhysicalSpec, TenantSpec


class Lined(dict[Any, Any]):
    """A table that knows on which line of which file it begins."""

    where = ""


def read_lined(text: str, path: str) -> Any:
    """What a YAML text holds; its tables know their lines."""

    class Loader(yaml.SafeLoader):
        """One for each file, because loaders share what they construct."""

    def table(loader: yaml.SafeLoader, node: yaml.MappingNode) -> Lined:
        found = Lined(loader.construct_mapping(node, deep=True))
        found.where = f"{path}:{node.start_mark.line + 1}: "
        return found

    Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, table)
    return yaml.load(text, Loader)


def layout_of(config: Any) -> Layout:
    """The layout that a HiveD configuration describes, or what is missing in it."""
    cluster = _get(config, "physicalCluster", dict)
    kinds, owners = _get(cluster, "cellTypes", dict), _get(config, "virtualClusters", dict)
    types = {
        str(name): _type(str(name), _table(kind, str(name), _where(kinds)))
        for name, kind in kinds.items()
    }
    cells = _get(cluster, "physicalCells", list)
    physical = tuple(_physical(spec, _where(cluster)) for spec in cells)
    tenants = tuple(
        _tenant(str(name), _table({} if spec is None else spec, str(name), _where(owners)))
        for name, spec in owners.items()
    )
    return Layout(types, physical, tenants)


def _type(name: str, kind: Mapping[str, Any]) -> CellType:
    child, number = _get(kind, "childCellType", str), _get(kind, "childCellNumber", int)
    return CellType(name, child, number, bool(kind.get("isNodeLevel")), _where(kind))


def _physical(spec: Any, above: str) -> PhysicalSpec:
    """One cell; `above` is where that begins which it is in."""
    table = _table(spec, "a physical cell", above)
    address = table.get("cellAddress")
    return PhysicalSpec(
        str(table.get("cellType", "")),
        "" if address is None else str(address),
        tuple(_physical(child, _where(table)) for child in _list(table, "cellChildren")),
        str(table.get("pinnedCellId") or ""),
        _where(table),
    )


def _tenant(name: str, spec: Mapping[str, Any]) -> TenantSpec:
    cells = tuple(
        Owned(
            tuple(_get(cell, "cellType", str).split(".")),
            _get(cell, "cellNumber", int),
            _where(cell),
        )
        for cell in _tables(spec, "virtualCells")
    )
    pinned = tuple(_get(cell, "pinnedCellId", str) for cell in _tables(spec, "pinnedCells"))
    return TenantSpec(name, cells, pinned, _where(spec))


def _where(table: Any) -> str:
    return table.where if isinstance(table, Lined) else ""


def _table(value: Any, name: str, above: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(f"{above}{name} must be a table, not {value!r}")
    return value


def _list(table: Mapping[str, Any], key: str) -> list[Any]:
    """What a table lists under a key; nothing, if it says nothing."""
    return [] if table.get(key) is None else list(_get(table, key, list))


def _tables(table: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    return [_table(each, f"each of {key}", _where(table)) for each in _list(table, key)]


def _get(table: Any, key: str, kind: type) -> Any:
    """What a table has under a key, which must be of a certain kind."""
    if not isinstance(table, Mapping) or key not in table:
        raise UserError(f"{_where(table)}{key} is missing")
    value = table[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        words = {dict: "a table", list: "a list", int: "a whole number", str: "a name"}
        raise UserError(f"{_where(table)}{key} is {value!r}; it must be {words[kind]}")
    return value
