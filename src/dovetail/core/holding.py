"""What others occupy in fact, whether or not it was ours to give.

Nobody asks us before they use a machine, so what they hold may be in use by our jobs too. Devices
are then theirs once our jobs let go of them. CPU and memory are drawn at once, below zero where
jobs hold them: planners see that nothing is left, and those that can give back do.
"""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.model.allocation import Allocation, Part, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.request import WHOLE


def occupy(cluster: Cluster, allocation: Allocation) -> None:
    """Take devices, which must be free, and draw amounts, which need not be."""
    bare = tuple(part._replace(cpu=0, memory=0) for part in allocation.parts)
    cluster.take(allocation._replace(parts=bare), closed_too=True)
    for part in allocation.parts:
        if cluster.limits_cpu:
            cluster.cpu[part.node] -= part.cpu
        if cluster.limits_memory:
            cluster.memory[part.node] -= part.memory


def retake(cluster: Cluster, old: Allocation, new: Allocation) -> None:
    """Take other amounts on the same devices: only what grows must be there.

    A job that gives back less than others have drawn is still within its rights.
    """
    grown, rest = [], []
    for before, after in zip(sorted(old.parts), sorted(new.parts), strict=True):
        cpu = after.cpu if after.cpu > before.cpu else 0
        memory = after.memory if after.memory > before.memory else 0
        grown.append(after._replace(cpu=cpu, memory=memory))
        rest.append(Part(after.node, 0, after.cpu - cpu, after.memory - memory))
    cluster.take(new._replace(parts=tuple(grown)), closed_too=True)
    occupy(cluster, allocation_of(tuple(rest)))


def split(
    cluster: Cluster, wanted: Allocation, others: Iterable[Allocation]
) -> tuple[Allocation, Allocation]:
    """What of a holding can be taken now, and the devices for which others must let go first.

    Together with what `others` hold, it never draws more than a node has.
    """
    drawn: dict[int, tuple[int, int]] = {}
    for part in (part for held in others for part in held.parts):
        _draw(drawn, part)
    now, later = [], []
    for part in wanted.parts:
        node, (cpu, memory) = cluster.nodes[part.node], drawn.get(part.node, (0, 0))
        devices = part.devices & _free(cluster, part)
        taken = part._replace(
            devices=devices,
            cpu=min(part.cpu, max(0, (node.cpu or 0) - cpu)) if cluster.limits_cpu else part.cpu,
            memory=min(part.memory, max(0, (node.memory or 0) - memory))
            if cluster.limits_memory
            else part.memory,
        )
        _draw(drawn, taken)
        now.append(taken)
        if part.devices != devices:
            later.append(part._replace(devices=part.devices & ~devices, cpu=0, memory=0))
    return allocation_of(tuple(now)), allocation_of(tuple(later))


def _draw(drawn: dict[int, tuple[int, int]], part: Part) -> None:
    cpu, memory = drawn.get(part.node, (0, 0))
    drawn[part.node] = (cpu + part.cpu, memory + part.memory)


def _free(cluster: Cluster, part: Part) -> int:
    """The devices of a part's node that can give what it takes of each."""
    if part.share == WHOLE:
        return int(cluster.masks[part.node])
    mask = 0
    for device in range(cluster.nodes[part.node].gpus):
        share, memory = cluster.share_of(part.node, device)
        if share >= part.share and memory >= part.gpu_memory:
            mask |= 1 << device
    return mask
