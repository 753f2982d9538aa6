"""Where. A placement is pure: `place(cluster, ask)` gives parts, or None for "does not fit"."""

from __future__ import annotations

from dovetail.core.protocols import Placement
from dovetail.core.registry import Registry
from dovetail.placements.consolidated import Consolidated
from dovetail.placements.fits import BestFit, Count, FirstFit, Random, WorstFit
from dovetail.placements.topology import Topology

BUILTIN: dict[str, type[Placement]] = {
    "count": Count,
    "best-fit": BestFit,
    "worst-fit": WorstFit,
    "first-fit": FirstFit,
    "consolidated": Consolidated,
    "random": Random,
    "topology": Topology,
}

PLACEMENTS: Registry[Placement] = Registry(
    "placement", BUILTIN, "dovetail.placements", ("place", "relaxed")
)
