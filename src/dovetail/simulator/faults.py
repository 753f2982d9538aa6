"""What goes wrong in a simulation: nodes that fail and drain, attempts that break.

Given as text: `trace` (attempts break as the trace recorded), a CSV file of node events
(`time,node,event` with event down, up or drain), or rates
`node_mtbf=S,repair=S,job=P,retries=N` (seconds; P: chance that an attempt breaks; N: how often
every job may be tried again, over what the trace says), drawn from the seed.
Several are joined by `+`: `trace+outages.csv`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, merge
from pathlib import Path
from random import Random

from dovetail.core.registry import nearest
from dovetail.model.cluster import Cluster
from dovetail.model.errors import UserError
from dovetail.model.event import Event, NodeDown, NodeDraining, NodeUp
from dovetail.model.trace import TraceJob

Timed = tuple[float, Event]
KINDS: dict[str, Callable[[int], Event]] = {
    "down": NodeDown,
    "up": NodeUp,
    "drain": NodeDraining,
}
MOST = {"node_mtbf": 1e12, "repair": 1e12, "job": 1.0, "retries": 1000.0}
"""Rates that can be given, and the largest sensible value of each."""


@dataclass(frozen=True)
class Faults:
    """Node events in time order, and how each job's attempts break."""

    nodes: Iterator[Timed]
    breaks: Callable[[TraceJob], tuple[float, ...]] | None
    #: do jobs end the way the trace recorded?
    as_recorded: bool
    #: how often every job may be tried again; None: as the trace says
    retries: int | None = None


def read_faults(text: str | None, cluster: Cluster, seed: int) -> Faults:
    """Parse what the person asked to go wrong; None: nothing does."""
    recorded, rates, listed = False, dict[str, float](), list[Timed]()
    for part in filter(None, (text or "").split("+")):
        if part == "trace":
            recorded = True
        elif "=" in part:
            rates.update(_rates(part))
        else:
            listed.extend(_read_events(Path(part), cluster))
    if "repair" in rates and "node_mtbf" not in rates:
        raise UserError(f"--faults {text}: repair is for nodes that fail; give node_mtbf= too")
    nodes: Iterator[Timed] = iter(sorted(listed, key=lambda timed: timed[0]))
    if "node_mtbf" in rates:
        nodes = merge(nodes, _outages(len(cluster.nodes), rates, seed), key=lambda timed: timed[0])
    retries = int(rates["retries"]) if "retries" in rates else None
    return Faults(nodes, _breaks(recorded, rates.get("job", 0.0), seed), recorded, retries)


def _rates(part: str) -> dict[str, float]:
    rates = {}
    for item in part.split(","):
        key, _, value = item.partition("=")
        if key not in MOST:
            raise UserError(f"--faults {part}: unknown rate {key!r}{nearest(key, list(MOST))}")
        try:
            rates[key] = float(value)
        except ValueError:
            raise UserError(f"--faults {part}: {key}={value} is not a number") from None
        least = 0.0 if key in ("job", "retries") else 1e-6
        if not least <= rates[key] <= MOST[key]:
            raise UserError(f"--faults {part}: {key}={value} makes no sense")
    return rates


def _read_events(path: Path, cluster: Cluster) -> Iterator[Timed]:
    index = {node.name: number for number, node in enumerate(cluster.nodes)}
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not a text file") from None
    for line, row in enumerate(csv.DictReader(lines), 2):
        where = f"{path}:{line}"
        kind, node = row.get("event"), row.get("node")
        time = _seconds(row.get("time"))
        if time is None or kind is None or node is None:
            raise UserError(f"{where}: needs time (seconds, 0 or more), node and event")
        if kind not in KINDS:
            raise UserError(f"{where}: event {kind!r}{nearest(kind, list(KINDS))}")
        if node not in index:
            raise UserError(f"{where}: no node is named {node!r}; names are n0, n1, …")
        yield time, KINDS[kind](index[node])


def _seconds(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < 1e15 else None


def _outages(nodes: int, rates: dict[str, float], seed: int) -> Iterator[Timed]:
    """Each node fails and is repaired after exponential times, from its own generator."""
    draws = [Random(seed * 7_919 + node) for node in range(nodes)]
    up, repair = 1 / rates["node_mtbf"], 1 / rates.get("repair", 3600.0)
    coming = [(draw.expovariate(up), node, True) for node, draw in enumerate(draws)]
    heapify(coming)
    while coming:
        time, node, fails = heappop(coming)
        yield time, NodeDown(node) if fails else NodeUp(node)
        pause = draws[node].expovariate(repair if fails else up)
        heappush(coming, (time + pause, node, not fails))


def _breaks(
    recorded: bool, probability: float, seed: int
) -> Callable[[TraceJob], tuple[float, ...]] | None:
    if not recorded and not probability:
        return None

    def drawn(job: TraceJob) -> tuple[float, ...]:
        breaks = job.breaks if recorded else ()
        draw = Random(seed * 104_729 + job.spec.id)
        more: list[float] = []
        while probability and draw.random() < probability and len(more) < 100:
            more.append(draw.random() * job.work)
        return (*breaks, *more)

    return drawn
