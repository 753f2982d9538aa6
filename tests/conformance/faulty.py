"""Draws scenarios of the recorded kind from a seed: gangs come and go, nodes break, are repaired.

45 things happen on a small cluster that three tenants share; every eighth is a fault, and no more
than 3 nodes are bad. Who is in the way of a gang leaves at once, and it asks again.
What becomes of each step is written down in the form of the records.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from hived import Json, Replay, recorded

from dovetail.tenancy.cells.state import Cells


@dataclass(frozen=True)
class Shape:
    """A cluster that tenants A, B and C share, and what their gangs ask for."""

    config: Json
    nodes: tuple[str, ...]
    sizes: tuple[int, ...]


def in_twos(*names: str) -> Json:
    """Types of cells, each of two of the one before, the first of two GPUs."""
    return {
        name: {"childCellType": child, "childCellNumber": 2, "isNodeLevel": name == "NODE"}
        for child, name in pairwise(("GPU", *names))
    }


def owned(**numbers: int) -> Json:
    """What a tenant has, by the name of the type; `__` is for the dot."""
    cells = [{"cellType": k.replace("__", "."), "cellNumber": n} for k, n in numbers.items()]
    return {"virtualCells": cells}


RACKS = Shape(
    {
        "physicalCluster": {
            "cellTypes": in_twos("PAIR", "NODE", "RACK"),
            "physicalCells": [
                {
                    "cellType": "RACK",
                    "cellChildren": [{"cellAddress": f"n{r}{n}"} for n in range(2)],
                }
                for r in range(3)
            ],
        },
        "virtualClusters": {
            "A": owned(RACK=1),
            "B": owned(RACK__NODE=2, RACK__NODE__PAIR=1),
            "C": owned(RACK__NODE=1),
        },
    },
    tuple(f"n{r}{n}" for r in range(3) for n in range(2)),
    (1, 2, 4),
)
"""3 racks of 2 nodes of 2 pairs."""

ROWS = Shape(
    {
        "physicalCluster": {
            "cellTypes": in_twos("HALF", "NODE", "RACK", "ROW"),
            "physicalCells": [
                {
                    "cellType": "ROW",
                    "cellChildren": [
                        {"cellChildren": [{"cellAddress": f"n{w}{r}{n}"} for n in range(2)]}
                        for r in range(2)
                    ],
                }
                for w in range(2)
            ],
        },
        "virtualClusters": {
            "A": owned(ROW__RACK=1, ROW__RACK__NODE=1),
            "B": owned(ROW__RACK__NODE=2, ROW__RACK__NODE__HALF=2),
            "C": owned(ROW__RACK=1),
        },
    },
    tuple(f"n{w}{r}{n}" for w in range(2) for r in range(2) for n in range(2)),
    (1, 2, 4),
)
"""2 rows of 2 racks of 2 nodes of 2 halves, all of them owned: what is bad is hard to replace."""


class Play:
    """One scenario, driven by what the cells answer."""

    def __init__(
        self, seed: int, kind: type[Cells], faults: float = 0.12, shape: Shape = RACKS
    ) -> None:
        self.draw, self.faults, self.shape = Random(seed), faults, shape
        self.replay = Replay(shape.config, kind)
        self.live: dict[str, list[str]] = {}
        self.bad: list[str] = []

    def steps(self) -> Iterator[Json]:
        """Each step with what came of it, until 45 things have happened."""
        for number in range(45):
            if self.draw.random() < self.faults:
                yield self.fault()
            elif self.live and self.draw.random() < 0.45:
                yield from self.end(self.draw.choice(list(self.live)))
            else:
                yield from self.arrive(f"g{number}")

    def do(self, **step: object) -> Json:
        result = self.replay.step(step)
        result.pop("someVictims", None)
        return {**step, "result": result, "state": self.replay.state()}

    def fault(self) -> Json:
        if self.bad and (len(self.bad) == 3 or self.draw.random() < 0.5):
            return self.do(
                op="setHealthyNode", node=self.bad.pop(self.draw.randrange(len(self.bad)))
            )
        self.bad.append(
            self.draw.choice([node for node in self.shape.nodes if node not in self.bad])
        )
        return self.do(op="setBadNode", node=self.bad[-1])

    def end(self, name: str) -> Iterator[Json]:
        for pod in self.live.pop(name):
            yield self.do(op="deleteAllocated", pod=pod)

    def arrive(self, name: str) -> Iterator[Json]:
        spec = self.gang(name)
        for number in range(spec["affinityGroup"]["members"][0]["podNumber"]):
            pod = f"{name}-{number}"
            step = self.do(op="schedule", pod=pod, spec=spec, phase="Preempting")
            yield step
            if step["result"]["outcome"] == "preempt":
                for other in sorted({v.split("-")[0] for v in step["result"]["allVictims"]}):
                    yield from self.end(other)
                step = self.do(op="schedule", pod=pod, spec=spec, phase="Preempting")
                yield step
            if step["result"]["outcome"] != "bind":
                return
            self.live.setdefault(name, []).append(pod)

    def gang(self, name: str) -> Json:
        size = self.draw.choice(self.shape.sizes)
        member = {"podNumber": self.draw.choice([1, 1, 1, 2, 2, 3, 4]), "leafCellNumber": size}
        return {
            "virtualCluster": self.draw.choice("ABC"),
            "priority": self.draw.choice([-1, -1, 0, 0, 1, 5]),
            "lazyPreemptionEnable": self.draw.random() < 0.3,
            "leafCellNumber": size,
            "affinityGroup": {"name": name, "members": [member]},
        }


def fingerprint(steps: list[Json]) -> str:
    """Short and the same for the same outcomes, placements and states."""
    told = json.dumps([recorded(json.loads(json.dumps(step))) for step in steps], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:12]
