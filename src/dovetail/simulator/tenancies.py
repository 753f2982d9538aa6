"""From `--tenancy` and `--partition-by` to who owns what.

`cells` gives tenants virtual clusters made of cells and lends what is idle; `private` gives each a
cluster of its own of the same shape, the baseline that cells must not be worse than; `shares`
gives them numbers of GPUs. All three take what tenants own from one file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from dovetail.core.protocols import Tenancy
from dovetail.model.cluster import Cluster
from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec
from dovetail.model.node import Node
from dovetail.tenancy.cells.clusters import VirtualClusters
from dovetail.tenancy.cells.config import layout_for
from dovetail.tenancy.contracts import read_contracts, rows_in
from dovetail.tenancy.kinds import PRIVATE, Tenants, chosen, tenancy_of
from dovetail.tenancy.partitions import Partitions, dealt

COLUMNS: dict[str, Callable[[JobSpec], str]] = {
    "vc": lambda spec: spec.tenant,
    "cluster": lambda spec: spec.tenant,
    "tenant": lambda spec: spec.tenant,
    "user": lambda spec: spec.user,
    "group": lambda spec: spec.group,
}


class Settings(Protocol):
    """What of a replay's settings is read here."""

    @property
    def cluster(self) -> str:
        """The cluster as it was typed."""

    @property
    def tenancy(self) -> str | None:
        """`KIND` or `KIND:FILE`."""

    @property
    def partition_by(self) -> str | None:
        """`COLUMN=FILE`."""


def tenancy_for(
    settings: Settings, cluster: Cluster, owners: Tenants | None = None
) -> tuple[Tenancy, Cluster]:
    """Who owns what, and the cluster it is about: private ones are clusters of their own.

    `owners`: the tenants, where the settings say nothing.
    """
    if settings.tenancy is None:
        if settings.partition_by is None:
            return tenancy_of(owners, cluster), cluster
        return _partitions(settings.partition_by, cluster), cluster
    if settings.partition_by is not None:
        raise UserError("--tenancy and --partition-by both say who owns what: give one of them")
    tenants = chosen(settings.tenancy, settings.cluster)
    if tenants.kind == PRIVATE:
        return _private(VirtualClusters(cluster, layout_for(cluster, tenants.contracts)), cluster)
    return tenancy_of(tenants, cluster), cluster


def private_twin(settings: Settings) -> str | None:
    """The same tenants on clusters of their own; None: nothing is shared, or groups are nested."""
    kind, _, path = (settings.tenancy or "private").partition(":")
    if kind == "private":
        return None
    names = [contract.name for contract in read_contracts(path or settings.cluster)]
    nested = any(name.startswith(f"{other}/") for name in names for other in names)
    return None if nested else f"private:{path or settings.cluster}"


def _private(cells: VirtualClusters, cluster: Cluster) -> tuple[Tenancy, Cluster]:
    """As if every tenant had bought its own."""
    nodes: list[Node] = []
    for domain in range(len(cells.domains) - 1):
        nodes += cells.view(domain).nodes
    everything = Cluster(nodes, {pool.type: pool.capabilities for pool in cluster.pools})
    number = {node.name: index for index, node in enumerate(everything.nodes)}
    members = {
        name: [number[node.name] for node in cells.view(domain).nodes]
        for domain, name in enumerate(cells.domains[:-1])
    }

    def owner(spec: JobSpec) -> str:
        home = cells.domain(spec)
        return cells.domains[home] if isinstance(home, int) else spec.tenant

    return Partitions(everything, members, owner), everything


def _partitions(text: str, cluster: Cluster) -> Tenancy:
    column, equals, path = text.partition("=")
    if not equals or column not in COLUMNS:
        names = ", ".join(COLUMNS)
        raise UserError(f"--partition-by {text}: write COLUMN=FILE; columns are {names}")
    return Partitions(cluster, dealt(_sizes(path), cluster), COLUMNS[column])


def _sizes(path: str) -> dict[str, int]:
    """Node counts per partition: two columns with a header, name and number."""
    sizes: dict[str, int] = {}
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not a text file") from None
    for name, nodes, where in rows_in(text, path):
        if name in sizes:
            raise UserError(f"{where}partition {name!r} is listed twice")
        sizes[name] = nodes
    if not sizes:
        raise UserError(f"{path}: lists no partitions (a header, then NAME,NODES lines)")
    return sizes
