"""The machines: which nodes there are, and what of them is free. Cheap to copy.

`free` holds one byte per node, the number of wholly free devices there: an index over the device
masks that makes the search for a node a C-speed `find` and a what-if copy a `memcpy`. CPU and
memory are parallel arrays, looked at only for candidates, and only where the cluster states them.
A closed node (down or draining) keeps its true masks but shows zero free devices.

The cluster does not know jobs: it takes and releases allocations and refuses to over-commit.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from dovetail.model.allocation import Allocation, Part
from dovetail.model.errors import OverCommitted, UserError
from dovetail.model.node import Capabilities, Node, Pool
from dovetail.model.request import WHOLE


class Cluster:
    """Nodes and what of them is free. Mutated by `take`, `release`, `close` and `open` alone."""

    __slots__ = (
        "closed",
        "cpu",
        "free",
        "idle",
        "levels",
        "limited",
        "limits_cpu",
        "limits_memory",
        "masks",
        "memory",
        "most",
        "nodes",
        "pools",
        "shared",
        "upwards",
        "whole",
    )

    def __init__(
        self, nodes: Iterable[Node], capabilities: dict[str, Capabilities] | None = None
    ) -> None:
        self.nodes: Sequence[Node] = _in_order(nodes)
        self.limits_cpu = _stated([node.cpu for node in self.nodes], "cpus")
        self.limits_memory = _stated([node.memory for node in self.nodes], "mem")
        self.limited = self.limits_cpu or self.limits_memory
        self.pools = tuple(_pools(self.nodes, capabilities or {}))
        #: runs of nodes that share a place, innermost level (rack) first
        self.levels = tuple(_levels(self.nodes))
        #: most devices on any node: the highest level worth searching for
        self.most = max((node.gpus for node in self.nodes), default=0)
        if self.most > 64:
            raise UserError("a node has more than 64 GPUs; split it into several nodes")
        self.free = bytearray(node.gpus for node in self.nodes)
        self.masks = _masks([(1 << node.gpus) - 1 for node in self.nodes], self.most)
        self.cpu = array("q", [node.cpu or 0 for node in self.nodes])
        self.memory = array("q", [node.memory or 0 for node in self.nodes])
        #: what is free, by node, while nobody holds anything; never changed
        self.whole = (self.free[:], self.masks[:], self.cpu[:], self.memory[:])
        #: for each number of devices the numbers that are enough, made once for all searches
        self.upwards = [range(level, self.most + 1) for level in range(self.most + 1)]
        #: wholly free devices on open nodes
        self.idle = sum(self.free)
        #: (node, device) -> free thousandths and free MiB of a device that shares occupy
        self.shared: dict[tuple[int, int], tuple[int, int]] = {}
        #: nodes that take nothing new, and why
        self.closed: dict[int, str] = {}

    def copy(self) -> Self:
        """An independent copy of what is free; the nodes themselves are shared."""
        twin = object.__new__(type(self))
        twin.nodes = self.nodes
        twin.whole = self.whole
        twin.pools = self.pools
        twin.levels = self.levels
        twin.most = self.most
        twin.upwards = self.upwards
        twin.limited = self.limited
        twin.limits_cpu = self.limits_cpu
        twin.limits_memory = self.limits_memory
        twin.free = self.free[:]
        twin.masks = self.masks[:]
        twin.cpu = self.cpu[:] if self.limits_cpu else self.cpu
        twin.memory = self.memory[:] if self.limits_memory else self.memory
        twin.idle = self.idle
        twin.shared = dict(self.shared) if self.shared else {}
        twin.closed = dict(self.closed) if self.closed else {}
        return twin

    def emptied(self) -> Self:
        """The same nodes with nothing on them and all of them open."""
        twin = self.copy()
        free, masks, cpu, memory = self.whole
        twin.free, twin.masks, twin.cpu, twin.memory = free[:], masks[:], cpu[:], memory[:]
        twin.idle, twin.shared, twin.closed = sum(free), {}, {}
        return twin

    # ---- searching: what placements are made of -------------------------------------------

    def first(self, gpus: int, start: int, stop: int) -> int:
        """The first node with at least `gpus` free devices; -1: none."""
        found = -1
        for level in range(max(gpus, 1), self.most + 1):
            node = self.free.find(level, start, stop)
            if node >= 0:
                found = stop = node
        return found

    def sufficient(self, gpus: int, start: int, stop: int) -> Iterator[int]:
        """Nodes with at least `gpus` free devices, tightest first, then by index."""
        find = self.free.find
        for level in range(gpus, self.most + 1):
            node = find(level, start, stop)
            while node >= 0:
                yield node
                node = find(level, node + 1, stop)

    def idle_in(self, start: int, stop: int) -> int:
        """Wholly free devices on the nodes of a range."""
        if start == 0 and stop == len(self.free):
            return self.idle
        return sum(self.free[start:stop])

    def has(self, node: int, cpu: int, memory: int) -> bool:
        """Has the node that much CPU and memory left?"""
        return (not cpu or not self.limits_cpu or self.cpu[node] >= cpu) and (
            not memory or not self.limits_memory or self.memory[node] >= memory
        )

    def devices(self, node: int, count: int) -> int:
        """The mask of the lowest `count` free devices of a node."""
        mask = self.masks[node]
        for _ in range(mask.bit_count() - count):
            mask ^= 1 << mask.bit_length() - 1
        return mask

    # ---- changing ---------------------------------------------------------------------------

    def take(self, allocation: Allocation, closed_too: bool = False) -> None:
        """Occupy all parts, or raise `OverCommitted` and change nothing.

        Closed nodes take nothing new; `closed_too` is for what is there already in fact.
        """
        masks, free, parts = self.masks, self.free, allocation[0]
        limited, done = self.limited, 0
        if not limited and not self.closed:
            # Mostly whole devices are all there is, and that they are free is all to see to.
            for part in parts:
                node, devices = part[0], part[1]
                mask = masks[node]
                if mask & devices != devices or part[4] != WHOLE:
                    break
                masks[node] = mask ^ devices
                count = devices.bit_count()
                free[node] -= count
                self.idle -= count
                done += 1
            else:
                return
            self.release(allocation._replace(parts=parts[:done]))
        for done, part in enumerate(parts):
            node, devices, share = part[0], part[1], part[4]
            mask = masks[node]
            if limited and not self.has(node, part.cpu, part.memory):
                self._refuse(allocation, done)
            if node in self.closed:
                if not closed_too or not self._take_closed(part):
                    self._refuse(allocation, done)
            elif share == WHOLE and mask & devices == devices:
                masks[node] = mask ^ devices
                count = devices.bit_count()
                free[node] -= count
                self.idle -= count
            elif share == WHOLE or not self._take_shares(part):
                self._refuse(allocation, done)
            if limited:
                self.cpu[node] -= part.cpu if self.limits_cpu else 0
                self.memory[node] -= part.memory if self.limits_memory else 0

    def _take_closed(self, part: Part) -> bool:
        if part.share < WHOLE:
            return self._take_shares(part)
        if self.masks[part.node] & part.devices != part.devices:
            return False
        self.masks[part.node] ^= part.devices
        return True

    def _refuse(self, allocation: Allocation, done: int) -> None:
        """Undo the parts taken so far and complain about the next."""
        self.release(allocation._replace(parts=allocation.parts[:done]))
        part = allocation.parts[done]
        name = self.nodes[part.node].name
        raise OverCommitted(f"{name} cannot give {part}: it has {self.room(part.node)}")

    def release(self, allocation: Allocation) -> None:
        """Give back all parts."""
        masks, free, closed, limited, gained = self.masks, self.free, self.closed, self.limited, 0
        for part in allocation[0]:
            node, devices = part[0], part[1]
            if part[4] == WHOLE and not (closed and node in closed):
                masks[node] |= devices
                count = devices.bit_count()
                free[node] += count
                gained += count
            else:
                self._release_slowly(part)
            if limited:
                self.cpu[node] += part.cpu if self.limits_cpu else 0
                self.memory[node] += part.memory if self.limits_memory else 0
        self.idle += gained

    def _release_slowly(self, part: Part) -> None:
        """Shares, and whole devices of a closed node."""
        if part.share < WHOLE:
            self._release_shares(part)
        else:
            self.masks[part.node] |= part.devices
            self._show(part.node)

    def _show(self, node: int) -> None:
        """Bring the byte index of one node up to date with its mask."""
        free = 0 if node in self.closed else self.masks[node].bit_count()
        self.idle += free - self.free[node]
        self.free[node] = free

    def _take_shares(self, part: Part) -> bool:
        wanted = list(_bits(part.devices))
        for device in wanted:
            share, memory = self.share_of(part.node, device)
            if share < part.share or memory < part.gpu_memory:
                return False
        for device in wanted:
            share, memory = self.share_of(part.node, device)
            self.masks[part.node] &= ~(1 << device)
            self.shared[part.node, device] = (share - part.share, memory - part.gpu_memory)
        self._show(part.node)
        return True

    def _release_shares(self, part: Part) -> None:
        for device in _bits(part.devices):
            share, memory = self.shared.pop((part.node, device))
            if share + part.share == WHOLE:
                self.masks[part.node] |= 1 << device
            else:
                self.shared[part.node, device] = (share + part.share, memory + part.gpu_memory)
        self._show(part.node)

    def share_of(self, node: int, device: int) -> tuple[int, int]:
        """Free thousandths and free MiB of one device."""
        if self.masks[node] >> device & 1:
            return WHOLE, self.nodes[node].gpu_memory
        return self.shared.get((node, device), (0, 0))

    def close(self, node: int, reason: str) -> None:
        """Take nothing new on the node; what is there stays accounted."""
        self.closed[node] = reason
        self._show(node)

    def open(self, node: int) -> None:
        """Take work on the node again."""
        self.closed.pop(node, None)
        self._show(node)

    # ---- telling ----------------------------------------------------------------------------

    def capabilities(self, node: int) -> Capabilities:
        """What the executor of the node's pool can do."""
        for pool in self.pools:
            if pool.start <= node < pool.stop:
                return pool.capabilities
        raise IndexError(node)

    def room(self, node: int) -> str:
        """What is free on a node, in words."""
        text = f"{self.free[node]} of {self.nodes[node].gpus} GPUs"
        if self.limits_cpu:
            text += f", {self.cpu[node] / 1000:g} cores"
        if self.limits_memory:
            text += f", {self.memory[node]} MiB"
        return f"{text} ({self.closed[node]})" if node in self.closed else text

    @property
    def gpus(self) -> int:
        """All devices, used or not."""
        return sum(node.gpus for node in self.nodes)

    def validate(self) -> None:
        """Check that the indexes agree with the masks and nothing exceeds what was bought."""
        for index, node in enumerate(self.nodes):
            shown = 0 if index in self.closed else self.masks[index].bit_count()
            assert self.free[index] == shown, f"{node.name}: index says {self.free[index]}"
            assert self.masks[index] < 1 << node.gpus, f"{node.name}: devices it does not have"
            assert not self.limits_cpu or self.cpu[index] <= (node.cpu or 0), node.name
            assert not self.limits_memory or self.memory[index] <= (node.memory or 0)
        for (index, device), (share, memory) in self.shared.items():
            assert not self.masks[index] >> device & 1, "a shared device cannot be wholly free"
            assert 0 <= share < WHOLE and memory >= 0, (index, device, share, memory)
        assert self.idle == sum(self.free)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _in_order(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Pools and racks become slices: nodes sorted by type and place, otherwise as given."""
    listed = list(nodes)
    rank: dict[str, int] = {}
    for node in listed:
        rank.setdefault(node.type, len(rank))
    places: dict[tuple[str, ...], int] = {}
    for node in listed:
        for depth in range(1, len(node.place) + 1):
            places.setdefault(node.place[:depth], len(places))

    def key(node: Node) -> tuple[int, ...]:
        depths = range(1, len(node.place) + 1)
        return rank[node.type], *(places[node.place[:depth]] for depth in depths)

    ordered = sorted(listed, key=key)
    names = {node.name for node in ordered}
    if len(names) < len(ordered):
        raise UserError("two nodes of the cluster have the same name")
    return tuple(ordered)


def _pools(nodes: Sequence[Node], capabilities: dict[str, Capabilities]) -> Iterator[Pool]:
    start = 0
    for index in range(1, len(nodes) + 1):
        if index == len(nodes) or nodes[index].type != nodes[start].type:
            kind = nodes[start].type
            yield Pool(kind, start, index, capabilities.get(kind, Capabilities()))
            start = index


def _levels(nodes: Sequence[Node]) -> Iterator[tuple[tuple[int, int], ...]]:
    for depth in range(max((len(node.place) for node in nodes), default=0), 0, -1):
        shared = [(node.type, node.place[:depth]) for node in nodes]
        starts = [i for i in range(len(nodes)) if i == 0 or shared[i] != shared[i - 1]]
        yield tuple(zip(starts, [*starts[1:], len(nodes)], strict=True))


def _stated(amounts: list[int | None], name: str) -> bool:
    """A resource is limited when every node states it; some nodes stating it is an error."""
    silent = sum(amount is None for amount in amounts)
    if 0 < silent < len(amounts):
        raise UserError(f"give {name}= for every part of the cluster or for none")
    return silent == 0 and bool(amounts)


def _masks(masks: list[int], gpus: int) -> bytearray | array[int]:
    """One mask a node, as narrow as possible; bytes where they do, which are changed fastest."""
    if gpus <= 8:
        return bytearray(masks)
    return array("H" if gpus <= 16 else "L" if gpus <= 32 else "Q", masks)
