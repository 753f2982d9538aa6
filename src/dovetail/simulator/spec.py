"""Clusters from text: `16x8`, `16x8,cpus=24,mem=500`, parts joined by `+`, or a TOML file.

In text, cpus are cores and mem is GiB, both per node. Keys: cpus, mem, type, gpumem (GiB per GPU),
rack (nodes per rack), labels (joined by `/`). A TOML file has a table `[[nodes]]` per kind with
`count`, `gpus` and the same keys, an optional `[costs]` table and `[speed]` factors by GPU type;
its `[[tenants]]` are read by `tenancy.contracts`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dovetail.core.registry import nearest
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.model.errors import UserError
from dovetail.model.node import Node
from dovetail.tenancy.kinds import Tenants

KEYS = ("cpus", "mem", "type", "gpumem", "rack", "labels")
MOST_NODES = 1_000_000
TABLES = ("nodes", "costs", "speed", "tenants")


@dataclass(frozen=True)
class ClusterSpec:
    """A cluster and what is said of it beyond its nodes: costs, speeds, owners."""

    cluster: Cluster
    costs: dict[str, Any] = field(default_factory=dict)
    type_factors: dict[str, float] = field(default_factory=dict)
    #: who owns what, where no setting says so
    tenants: Tenants | None = None


def parse_cluster(text: str) -> Cluster:
    """The cluster behind a spec or a file."""
    return read_spec(text).cluster


def read_spec(text: str) -> ClusterSpec:
    """Parse a spec text, or read the cluster file it names."""
    if text.endswith(".toml"):
        return _read_file(Path(text))
    nodes: list[Node] = []
    for part in text.split("+"):
        nodes.extend(_nodes(*_parse_part(part.strip(), text), nodes))
    return ClusterSpec(Cluster(nodes))


def _parse_part(part: str, text: str) -> tuple[int, int, dict[str, Any], str]:
    shape, *extras = part.split(",")
    found = re.fullmatch(r"(\d+)x(\d+)", shape.strip())
    if not found:
        raise UserError(
            f"cluster {text!r}: {shape!r} is not NODESxGPUS, as in 16x8 or 16x8,cpus=24,mem=500"
        )
    keys: dict[str, Any] = {}
    for extra in extras:
        key, equals, value = extra.partition("=")
        if not equals:
            raise UserError(f"cluster {text!r}: write {extra!r} as key=value")
        keys[key.strip()] = value.strip()
    return int(found[1]), int(found[2]), keys, f"cluster {text!r}"


def _nodes(
    count: int, gpus: int, keys: dict[str, Any], where: str, before: list[Node]
) -> list[Node]:
    for key in keys:
        if key not in KEYS:
            raise UserError(f"{where}: unknown key {key!r}{nearest(key, list(KEYS))}")
    if not 0 < count <= MOST_NODES:
        raise UserError(f"{where}: {count} nodes make no cluster")
    if gpus > 64:
        raise UserError(f"{where}: {gpus} GPUs on a node; 64 is the most")
    cpu = _amount(keys, "cpus", 1000, where)
    memory = _amount(keys, "mem", 1024, where)
    rack = int(_amount(keys, "rack", 1, where) or 0)
    # Racks hold nodes of one kind, so each kind begins a new one.
    first, racks = len(before), len({node.place for node in before if node.place})
    labels = keys.get("labels", ())
    if isinstance(labels, str):
        labels = labels.split("/")
    if not all(isinstance(label, str) for label in _listed(labels, f"{where}: labels")):
        raise UserError(f"{where}: labels must be words")
    return [
        Node(
            name=f"n{first + index}",
            gpus=gpus,
            cpu=cpu,
            memory=memory,
            type=str(keys.get("type", "gpu" if gpus else "cpu")),
            gpu_memory=_amount(keys, "gpumem", 1024, where) or 0,
            place=(f"rack{racks + index // rack}",) if rack else (),
            labels=tuple(labels),
        )
        for index in range(count)
    ]


def _amount(keys: dict[str, Any], key: str, unit: int, where: str) -> int | None:
    if key not in keys:
        return None
    try:
        amount = float(keys[key])
    except (TypeError, ValueError):
        raise UserError(f"{where}: {key}={keys[key]} is not a number") from None
    if not 0 <= amount < 1e12:
        raise UserError(f"{where}: {key}={keys[key]} makes no sense")
    return round(amount * unit)


def _read_file(path: Path) -> ClusterSpec:
    try:
        data = tomllib.loads(path.read_text())
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a TOML file: {error}") from None
    for key in data:
        if key not in TABLES:
            raise UserError(f"{path}: unknown table {key!r}{nearest(key, list(TABLES))}")
    nodes: list[Node] = []
    for table in _listed(data.get("nodes", []), f"{path}: nodes"):
        keys = dict(_table(table, f"{path}: each of nodes"))
        count, gpus = keys.pop("count", 1), keys.pop("gpus", 0)
        if not isinstance(count, int) or not isinstance(gpus, int) or gpus < 0:
            raise UserError(f"{path}: count and gpus must be whole numbers")
        nodes.extend(_nodes(count, gpus, keys, str(path), nodes))
    if not nodes:
        raise UserError(f"{path}: has no [[nodes]] table")
    costs = _costs(_table(data.get("costs", {}), f"{path}: costs"), path)
    speed = _table(data.get("speed", {}), f"{path}: speed")
    factors = {kind: _number(value, f"{path}: speed of {kind}") for kind, value in speed.items()}
    if not all(factors.values()):
        raise UserError(f"{path}: a speed of 0 would let jobs run for ever")
    types = sorted({node.type for node in nodes})
    for kind in factors.keys() - set(types):
        raise UserError(f"{path}: [speed] names GPU type {kind!r}{nearest(kind, types)}")
    return ClusterSpec(Cluster(nodes), costs, factors)


def _costs(table: dict[str, Any], path: Path) -> dict[str, Any]:
    known = [f.name for f in fields(Costs)]
    costs: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise UserError(f"{path}: unknown cost {key!r}{nearest(key, known)}")
        where = f"{path}: cost {key}"
        if key == "by_model":
            models = _table(value, where).items()
            costs[key] = {model: _number(cost, f"{where} of {model}") for model, cost in models}
        else:
            costs[key] = _number(value, where)
    if costs.get("checkpoint_every") == 0:
        raise UserError(f"{path}: checkpoint_every must be more than 0 seconds")
    return costs


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise UserError(f"{where} is {value!r}; it must be a number of at least 0")
    return float(value)


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{where} must be a table, not {value!r}")
    return value


def _listed(value: Any, where: str) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise UserError(f"{where} must be a list, not {value!r}")
    return value
