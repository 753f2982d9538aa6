"""A queueing textbook's workload: Poisson arrivals, one distribution of lengths, independent sizes.

`mean` is the mean length in seconds and `cv` its coefficient of variation: 1 draws exponential
lengths, 0 equal ones, anything else log-normal ones. `sizes` is `1`, or `1|2|4` for equal shares,
or `1:70|2:10|4:15|8:5` with weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from dovetail.model.errors import UserError
from dovetail.traces.kinds.stream import Drawn, Floats, Stream


@dataclass(frozen=True)
class Poisson(Stream):
    """M/G jobs."""

    #: seconds
    mean: float = 3600.0
    cv: float = 1.0
    sizes: str = "1"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (0 < self.mean < float("inf") and 0 <= self.cv < float("inf")):
            raise UserError(f"mean={self.mean:g}, cv={self.cv:g}: they must be 0 or more")
        self._mix()

    def draw(self, random: np.random.Generator, count: int) -> Drawn:
        """Size and length do not depend on each other."""
        sizes, weights = self._mix()
        gpus = random.choice(np.array(sizes, dtype=np.int64), count, p=weights)
        return Drawn(gpus, self._lengths(random, count))

    def _lengths(self, random: np.random.Generator, count: int) -> Floats:
        if self.cv == 1:
            return random.exponential(self.mean, count)
        spread = log(1 + self.cv**2)
        return random.lognormal(log(self.mean) - spread / 2, sqrt(spread), count)

    def _mix(self) -> tuple[list[int], list[float]]:
        try:
            parts = [part.partition(":") for part in self.sizes.split("|")]
            sizes = [int(size) for size, _, _ in parts]
            weights = [float(weight or 1) for _, _, weight in parts]
        except ValueError:
            sizes, weights = [], []
        if not sizes or min(sizes) < 1 or min(weights) < 0 or not sum(weights) > 0:
            raise UserError(f"sizes={self.sizes}: write 1, or 1|2|4, or 1:70|2:10|4:15|8:5")
        return sizes, [weight / sum(weights) for weight in weights]
