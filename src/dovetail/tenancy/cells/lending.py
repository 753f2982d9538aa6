"""The hardware as those see it who live on what owners leave idle.

Of each machine it lacks the devices that owners use, with the share of CPU and memory that goes
with them, or what owners really hold there if that is more; and what others than us use. Knows no
cells, only numbers by machine, and of jobs only who must live there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dovetail.model.allocation import Part, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.job import JobSpec


def has_gpus_throughout(spec: JobSpec) -> bool:
    """Has everything that a job may ask for GPUs? What has none goes with no cell."""
    groups = (group for way in spec.request.alternatives for group in way.groups)
    return all(group.each.gpus for group in groups)


@dataclass
class Claim:
    """What of one machine cannot be lent."""

    #: devices that owners use
    devices: int = 0
    #: what owners hold there
    cpu: int = 0
    memory: int = 0
    #: what others than us use
    foreign_cpu: int = 0
    foreign_memory: int = 0
    #: what the view lacks because of all this
    shown_cpu: int = 0
    shown_memory: int = 0


class Lending:
    """What is nobody's for now."""

    def __init__(self, cluster: Cluster) -> None:
        self.view = cluster.emptied()
        self._claims: dict[int, Claim] = {}

    def take(self, node: int, devices: int) -> None:
        """Owners use devices of a machine."""
        self.view.take(allocation_of((Part(node, devices),)), closed_too=True)
        self._claim(node).devices += devices.bit_count()
        self._show(node)

    def give_back(self, node: int, devices: int) -> None:
        """They use them no longer."""
        self.view.release(allocation_of((Part(node, devices),)))
        self._claim(node).devices -= devices.bit_count()
        self._show(node)

    def hold(self, parts: Iterable[Part], sign: int) -> None:
        """Owners hold (1) amounts, or no longer (-1)."""
        for part in parts:
            claim = self._claim(part.node)
            claim.cpu += sign * part.cpu
            claim.memory += sign * part.memory
            self._show(part.node)

    def draw(self, part: Part, sign: int) -> None:
        """Others than us use (1) amounts, or no longer (-1)."""
        claim = self._claim(part.node)
        claim.foreign_cpu += sign * part.cpu
        claim.foreign_memory += sign * part.memory
        self._show(part.node)

    def overdrawn(self, node: int) -> bool:
        """Is more in use on a machine than it has?"""
        view = self.view
        return (view.limits_cpu and view.cpu[node] < 0) or (
            view.limits_memory and view.memory[node] < 0
        )

    def lacking(self, parts: Iterable[Part]) -> set[int]:
        """Machines that could not give an owner this, even if nothing of them was lent."""
        wanted: dict[int, tuple[int, int]] = {}
        for part in parts:
            cpu, memory = wanted.get(part.node, (0, 0))
            wanted[part.node] = cpu + part.cpu, memory + part.memory
        return {node for node, amounts in wanted.items() if self._lacks(node, *amounts)}

    def _lacks(self, node: int, cpu: int, memory: int) -> bool:
        machine, claim = self.view.nodes[node], self._claims.get(node)
        if claim is not None:
            cpu += claim.cpu + claim.foreign_cpu
            memory += claim.memory + claim.foreign_memory
        return (machine.cpu is not None and cpu > machine.cpu) or (
            machine.memory is not None and memory > machine.memory
        )

    def _claim(self, node: int) -> Claim:
        claim = self._claims.get(node)
        if claim is None:
            claim = self._claims[node] = Claim()
        return claim

    def _show(self, node: int) -> None:
        """Bring the view of one machine up to date."""
        view, claim = self.view, self._claims[node]
        machine = view.nodes[node]
        if machine.cpu is not None:
            share = machine.cpu // machine.gpus * claim.devices if claim.devices else 0
            shown = max(share, claim.cpu) + claim.foreign_cpu
            view.cpu[node] += claim.shown_cpu - shown
            claim.shown_cpu = shown
        if machine.memory is not None:
            share = machine.memory // machine.gpus * claim.devices if claim.devices else 0
            shown = max(share, claim.memory) + claim.foreign_memory
            view.memory[node] += claim.shown_memory - shown
            claim.shown_memory = shown
