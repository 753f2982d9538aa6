"""HiveD's configuration as a layout: the same cell types, cells and virtual clusters.

Takes the tree that its YAML file holds. Devices, chains and pinned cells keep their names, so
that placements can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.tenancy.cells.layout import CellType, Layout, Owned, PhysicalSpec, TenantSpec


def layout_of(config: Mapping[str, Any]) -> Layout:
    """The layout that a HiveD configuration describes."""
    cluster = config["physicalCluster"]
    types = {
        name: CellType(
            name, kind["childCellType"], kind["childCellNumber"], kind.get("isNodeLevel", False)
        )
        for name, kind in cluster["cellTypes"].items()
    }
    physical = tuple(_physical(spec) for spec in cluster["physicalCells"])
    tenants = tuple(_tenant(name, spec) for name, spec in config["virtualClusters"].items())
    return Layout(types, physical, tenants)


def _physical(spec: Mapping[str, Any]) -> PhysicalSpec:
    return PhysicalSpec(
        spec.get("cellType", ""),
        spec.get("cellAddress", ""),
        tuple(_physical(child) for child in spec.get("cellChildren", ())),
        spec.get("pinnedCellId", ""),
    )


def _tenant(name: str, spec: Mapping[str, Any]) -> TenantSpec:
    cells = tuple(
        Owned(tuple(cell["cellType"].split(".")), cell["cellNumber"])
        for cell in spec.get("virtualCells") or ()
    )
    pinned = tuple(cell["pinnedCellId"] for cell in spec.get("pinnedCells") or ())
    return TenantSpec(name, cells, pinned)
