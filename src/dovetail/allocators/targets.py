"""What each claim should get if all nodes were one: the yardstick for where claims go.

Steps up the curves are taken in order of worth per resource until the pool is full, as in filling a
node. Claims of one curve and size are one class, so ten thousand jobs cost no more than a few dozen
classes. Nothing is granted here; nodes are only compared by what is aimed at on them.
"""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.allocators.filling import Filling
from dovetail.core.claims import Curve, Point

Classes = Mapping[tuple[int, int], tuple[Curve, int]]
"""(identity of a curve, GPUs) -> the curve, and how many claims there are of that class."""


class Targets:
    """The point each class of claims is aimed at."""

    def __init__(self, classes: Classes, cpu: int, memory: int, filling: Filling) -> None:
        self._points: dict[tuple[int, int], Point] = {}
        self._fill(classes, cpu, memory, filling)

    def of(self, curve: Curve, gpus: int) -> Point:
        """The amounts per GPU aimed at; the floor for classes never heard of."""
        return self._points.get((id(curve), gpus)) or curve.points[0]

    def _fill(self, classes: Classes, cpu: int, memory: int, filling: Filling) -> None:
        steps = []
        for key, (curve, count) in classes.items():
            floor = self._points[key] = curve.points[0]
            cpu -= count * key[1] * floor.cpu
            memory -= count * key[1] * floor.memory
            if len(curve.points) > 1:
                known = filling.facts(curve)
                for rung, (gain, to) in enumerate(known.ladders[0]):
                    steps.append((-gain / key[1], known.digest, key[1], rung, key, to))
        steps.sort(key=lambda step: step[:4])
        stuck = set()
        for *_, key, to in steps:
            if key in stuck:
                continue
            curve, count = classes[key]
            old, new, gpus = self._points[key], curve.points[to], key[1]
            more_cpu = count * gpus * (new.cpu - old.cpu)
            more_memory = count * gpus * (new.memory - old.memory)
            if more_cpu <= cpu and more_memory <= memory:
                cpu, memory = cpu - more_cpu, memory - more_memory
                self._points[key] = new
            else:
                # Part of the class could climb; the mean of what they get is what is aimed at.
                share = min(
                    cpu / more_cpu if more_cpu > 0 else 1.0,
                    memory / more_memory if more_memory > 0 else 1.0,
                )
                self._points[key] = Point(
                    old.cpu + int(share * (new.cpu - old.cpu)),
                    old.memory + int(share * (new.memory - old.memory)),
                    old.rate + share * (new.rate - old.rate),
                )
                cpu -= int(share * more_cpu)
                memory -= int(share * more_memory)
                stuck.add(key)
