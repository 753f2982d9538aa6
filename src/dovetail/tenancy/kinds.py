"""Kinds of tenancy: from a name and what tenants own to who owns what, and both as one text.

The text holds the contracts themselves and no path, so that what decided can be composed again
when the file says something else by now. How each kind shares is the business of its module.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from dovetail.core.codec import from_plain, to_plain
from dovetail.core.protocols import Tenancy
from dovetail.core.registry import nearest
from dovetail.model.cluster import Cluster
from dovetail.model.errors import UserError
from dovetail.tenancy.cells.clusters import VirtualClusters
from dovetail.tenancy.cells.config import layout_for, owned_gpus
from dovetail.tenancy.contracts import Contract, read_contracts
from dovetail.tenancy.shares import Shares
from dovetail.tenancy.whole import Whole

CELLS, PRIVATE, SHARES = "cells", "private", "shares"
MOST_NAMED = 3
KINDS = (CELLS, PRIVATE, SHARES)
"""`private` is for comparing: clusters of their own are not the machines that are there."""


@dataclass(frozen=True)
class Tenants:
    """Who owns what, as it was written."""

    kind: str
    contracts: tuple[Contract, ...]

    def __str__(self) -> str:
        """`cells of vision and speech`."""
        *most, last = [contract.name for contract in self.contracts]
        if len(most) > MOST_NAMED:
            return f"{self.kind} of {len(most) + 1} tenants"
        return f"{self.kind} of {' and '.join([', '.join(most), last] if most else [last])}"

    def written(self) -> str:
        """One text with all of it."""
        return json.dumps(to_plain(self), sort_keys=True)


def read_tenants(text: str | None) -> Tenants | None:
    """What `written` gave; None: everybody shares everything."""
    if text is None:
        return None
    found: Tenants = from_plain(Tenants, json.loads(text))
    return found


def chosen(typed: str, otherwise: str = "") -> Tenants:
    """`cells:tenants.toml`, or a kind alone where another file may list the tenants."""
    kind, _, path = typed.partition(":")
    if kind not in KINDS:
        raise UserError(f"--tenancy {typed}: no such kind{nearest(kind, list(KINDS))}")
    if not path and not otherwise.endswith(".toml"):
        raise UserError(f"--tenancy {kind}: say whose cells, as in {kind}:tenants.toml")
    return Tenants(kind, read_contracts(path or otherwise))


def tenancy_of(tenants: Tenants | None, cluster: Cluster) -> Tenancy:
    """Who owns what of a cluster; errors name the line."""
    if tenants is None:
        return Whole(cluster)
    if tenants.kind == PRIVATE:
        raise UserError("private clusters are for simulations: here tenants share the machines")
    layout = layout_for(cluster, tenants.contracts)
    if tenants.kind == SHARES:
        lines = {contract.name: contract.where for contract in tenants.contracts}
        return Shares(cluster, owned_gpus(layout), lines)
    return VirtualClusters(cluster, layout)
