"""Jobs that Slurm runs on its own: capacity that is taken, and that we leave alone.

Slurm names devices by its own numbers; on our books a device is a place on a node, and which one
does not matter. So what others hold is put on places none of our attempts has, and stays there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from dovetail.executors.slurm.reading import Piece, SlurmJob
from dovetail.executors.slurm.site import Site
from dovetail.model.allocation import NOTHING, Allocation, Part, allocation_of


class Others:
    """What is held by jobs that are not ours."""

    def __init__(self, site: Site) -> None:
        self._site = site
        #: places given to others, by node
        self._places: dict[int, int] = {}
        #: what each foreign job held when that was last told
        self._pieces: dict[int, tuple[Piece, ...]] = {}

    def held(self, foreign: Iterable[SlurmJob], ours: Mapping[int, int]) -> Allocation:
        """What they hold now; `ours` are the places of our own attempts, by node."""
        gpus, cpus, memory = Counter[int](), Counter[int](), Counter[int]()
        for piece in self._now(foreign):
            node = self._site.positions.get(piece.node)
            if node is not None:
                gpus[node] += piece.gpus
                cpus[node] += piece.cpus * 1000
                memory[node] += piece.memory
        parts = []
        for node in sorted(gpus.keys() | cpus.keys()):
            mask = self._settle(node, gpus[node], ours.get(node, 0))
            parts.append(Part(node, mask, cpus[node], memory[node]))
        self._places = {part.node: part.devices for part in parts}
        return allocation_of(tuple(parts)) if parts else NOTHING

    def _now(self, foreign: Iterable[SlurmJob]) -> list[Piece]:
        """While a job ends Slurm no longer says which GPUs it has; it has them still."""
        held = {each.id: each for each in foreign if each.holds}
        for number, job in held.items():
            if "COMPLETING" not in job.states or number not in self._pieces:
                self._pieces[number] = job.pieces
        self._pieces = {number: self._pieces[number] for number in held}
        return [piece for pieces in self._pieces.values() for piece in pieces]

    def _settle(self, node: int, count: int, ours: int) -> int:
        """That many places none of ours has: the same as before where possible, else the last."""
        mask = self._places.get(node, 0) & ~ours
        for place in range(self._site.nodes[node].gpus):
            if mask.bit_count() > count and mask >> place & 1:
                mask ^= 1 << place
        for place in reversed(range(self._site.nodes[node].gpus)):
            if mask.bit_count() < count and not (mask | ours) >> place & 1:
                mask |= 1 << place
        return mask
