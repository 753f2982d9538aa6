"""The steps placements share: how many units a node can take, and filling nodes in an order.

Also the two cases that are no placement's business: a share of one device and a job without GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dovetail.core.protocols import Ask
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.request import WHOLE

_new = tuple.__new__
"""Makes a named tuple in half the time of calling its class; for the hot path only."""


def part(cluster: Cluster, node: int, units: int, ask: Ask) -> Part:
    """The lowest free devices of a node for that many units."""
    count = units * ask.gpus
    mask = cluster.masks[node]
    devices = mask & -mask if count == 1 else cluster.devices(node, count)
    return _new(Part, (node, devices, units * ask.cpu, units * ask.memory, WHOLE, 0))


ENOUGH = 1 << 16
"""Parts an ask remembers before it forgets them all."""


def alone(cluster: Cluster, node: int, ask: Ask) -> tuple[Part, ...]:
    """All units on one node, on its lowest free devices."""
    count = ask.units * ask.gpus
    mask = cluster.masks[node]
    key = (node, mask & -mask if count == 1 else cluster.devices(node, count))
    parts = ask.made.get(key)
    if parts is None:
        if len(ask.made) >= ENOUGH:
            ask.made.clear()
        parts = ask.made[key] = (part(cluster, node, ask.units, ask),)
    return parts


def room(cluster: Cluster, node: int, ask: Ask) -> int:
    """How many units the node can take, by devices, CPU and memory."""
    units = cluster.free[node] // ask.gpus
    if cluster.limits_cpu and ask.cpu:
        units = min(units, cluster.cpu[node] // ask.cpu)
    if cluster.limits_memory and ask.memory:
        units = min(units, cluster.memory[node] // ask.memory)
    # Others may have drawn more than there was.
    return units if units > 0 else 0


def tightest(cluster: Cluster, ask: Ask, units: int) -> int:
    """The node with the fewest free devices that takes all units; -1: none."""
    gpus = units * ask.gpus
    if not (cluster.limited and (ask.cpu or ask.memory)):
        free = cluster.free
        for level in cluster.upwards[gpus] if gpus <= cluster.most else ():
            if level in free:
                node = free.find(level, ask.start, ask.stop)
                if node >= 0:
                    return node
        return -1
    for node in cluster.sufficient(gpus, ask.start, ask.stop):
        if cluster.has(node, units * ask.cpu, units * ask.memory):
            return node
    return -1


def earliest(cluster: Cluster, ask: Ask, units: int) -> int:
    """The first node that takes all units; -1: none."""
    gpus = units * ask.gpus
    node = cluster.first(gpus, ask.start, ask.stop)
    while node >= 0 and not cluster.has(node, units * ask.cpu, units * ask.memory):
        node = cluster.first(gpus, node + 1, ask.stop)
    return node


def fill(cluster: Cluster, ask: Ask, nodes: Iterable[int]) -> tuple[Part, ...] | None:
    """Units on the nodes in the given order, as many on each as fit; None: not enough room."""
    parts = []
    left = ask.units
    for node in nodes:
        units = min(left, room(cluster, node, ask))
        if units:
            parts.append(part(cluster, node, units, ask))
            left -= units
            if not left:
                return tuple(parts)
    return None


def by_index(cluster: Cluster, ask: Ask) -> Iterable[int]:
    """Nodes with any free device, lowest index first."""
    node = cluster.first(ask.gpus, ask.start, ask.stop)
    while node >= 0:
        yield node
        node = cluster.first(ask.gpus, node + 1, ask.stop)


def by_room(cluster: Cluster, start: int, stop: int) -> Iterable[int]:
    """Nodes with any free device, the emptiest first, then by index."""
    find = cluster.free.find
    for level in range(cluster.most, 0, -1):
        node = find(level, start, stop)
        while node >= 0:
            yield node
            node = find(level, node + 1, stop)


def on_fewest_nodes(cluster: Cluster, ask: Ask) -> tuple[Part, ...] | None:
    """All units on as few nodes as free devices allow; the rest on the tightest node left."""
    parts: list[Part] = []
    left, free, masks, cpu, memory = ask.units, cluster.free, cluster.masks, ask.cpu, ask.memory
    by_device = ask.gpus == 1 and not (cluster.limited and (cpu or memory))
    for node in by_room(cluster, ask.start, ask.stop):
        units = free[node] if by_device else room(cluster, node, ask)
        if units >= left:
            last = tightest(cluster, ask, left)
            used = {taken[0] for taken in parts}
            parts.append(part(cluster, node if last in used or last < 0 else last, left, ask))
            return tuple(parts)
        if by_device:
            # As many units as free devices: all of them, without counting them off.
            parts.append(_new(Part, (node, masks[node], units * cpu, units * memory, WHOLE, 0)))
            left -= units
        elif units:
            parts.append(part(cluster, node, units, ask))
            left -= units
    return None


def share_of_device(cluster: Cluster, ask: Ask) -> tuple[Part, ...] | None:
    """One share per unit: the fullest device that still has room, else a fresh device."""
    twin = cluster if ask.units == 1 else cluster.copy()
    parts = []
    for _ in range(ask.units):
        found = _device_for(twin, ask)
        if found is None:
            return None
        node, device = found
        piece = Part(node, 1 << device, ask.cpu, ask.memory, ask.share, ask.gpu_memory)
        if twin is not cluster:
            twin.take(allocation_of((piece,)))
        parts.append(piece)
    return tuple(parts)


def _device_for(cluster: Cluster, ask: Ask) -> tuple[int, int] | None:
    fitting = [
        (share, key)
        for key, (share, memory) in cluster.shared.items()
        if share >= ask.share
        and memory >= ask.gpu_memory
        and ask.start <= key[0] < ask.stop
        and key[0] not in cluster.closed
        and cluster.has(key[0], ask.cpu, ask.memory)
    ]
    if fitting:
        return min(fitting)[1]
    node = tightest(cluster, replace(ask, gpus=1), 1)
    if node < 0 or cluster.nodes[node].gpu_memory < ask.gpu_memory:
        return None
    mask = cluster.masks[node]
    return node, (mask & -mask).bit_length() - 1


def without_gpus(cluster: Cluster, ask: Ask) -> tuple[Part, ...] | None:
    """Units of CPU and memory alone, on the first nodes that have them, GPU-less nodes first."""
    nodes = range(ask.start, ask.stop)
    parts: dict[int, int] = {}
    left = ask.units
    for node in sorted(nodes, key=lambda index: cluster.nodes[index].gpus):
        while left and node not in cluster.closed:
            units = parts.get(node, 0) + 1
            if not cluster.has(node, units * ask.cpu, units * ask.memory):
                break
            parts[node] = units
            left -= 1
    if left:
        return None
    return tuple(Part(node, 0, n * ask.cpu, n * ask.memory) for node, n in parts.items())
