"""Learns from jobs that ended: the same group, else the same user and size, else everybody.

Keeps running moments of the logarithm of lengths per key, so a prediction is a dictionary look-up
and its spread comes for free. Says nothing before the first job ends: then `default` is believed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

from dovetail.model.job import JobSpec

ENOUGH = 3
"""Jobs a key must have seen before it is believed over the next, coarser one."""


@dataclass
class History:
    """Log-normal moments by recurrence group, by user and size, by user, and overall."""

    default: float = 3600.0
    _seen: dict[str, tuple[int, float, float]] = field(default_factory=dict, init=False)

    def expect(self, spec: JobSpec) -> float:
        """The median of the finest key that has seen enough."""
        return math.exp(self._moments(spec)[0])

    def quantiles(self, spec: JobSpec, levels: Sequence[float]) -> list[float]:
        """Log-normal quantiles of the same key."""
        mean, deviation = self._moments(spec)
        normal = NormalDist(mean, max(deviation, 1e-6))
        return [math.exp(normal.inv_cdf(level)) for level in levels]

    def _moments(self, spec: JobSpec) -> tuple[float, float]:
        for key in _keys(spec):
            count, total, squares = self._seen.get(key, (0, 0.0, 0.0))
            if count >= ENOUGH or (count and key == "all"):
                mean = total / count
                return mean, math.sqrt(max(0.0, squares / count - mean * mean))
        return math.log(self.default), 2.0

    def learn(self, spec: JobSpec, work: float) -> None:
        """Add a finished job under all its keys."""
        value = math.log(max(work, 1e-3))
        for key in _keys(spec):
            count, total, squares = self._seen.get(key, (0, 0.0, 0.0))
            self._seen[key] = (count + 1, total + value, squares + value * value)

    def snapshot(self) -> Any:
        """All moments."""
        return {key: list(moments) for key, moments in self._seen.items()}

    def restore(self, state: Any) -> None:
        """Take the moments back."""
        self._seen = {key: (n, total, squares) for key, (n, total, squares) in state.items()}


def _keys(spec: JobSpec) -> list[str]:
    """Finest first. Owner is the user where known, else the tenant."""
    owner = spec.user or spec.tenant
    keys = [f"user/{owner}/{spec.request.milli_gpus}", f"user/{owner}", "all"]
    return [f"group/{spec.group}", *keys] if spec.group else keys
