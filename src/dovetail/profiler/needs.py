"""What a job needs, read off its profile: the share that comes near its best, what less costs.

Near means within 5 %: closer differences drown in the noise of measuring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

from dovetail.model.profile import Profile

NEAR = 0.95


@dataclass(frozen=True, slots=True)
class Needs:
    """The smallest share per GPU that comes near the best speed, and what the reference loses."""

    #: whole cores
    cores: float
    #: GiB
    memory: float
    #: the part of the best speed lost by having only the reference's cores, all else plenty
    lost_to_cores: float
    #: the same for its memory
    lost_to_memory: float
    #: is the curve still rising where measuring ended?
    open_ended: bool

    @classmethod
    def of(cls, profile: Profile) -> Needs:
        """What this profile says."""
        surface = profile.surface
        best, most, plenty = surface.best, surface.cores[-1], surface.memory[-1]
        near = NEAR * best
        reached = _reached(surface.cores, lambda cores: surface.at(cores, plenty), near)
        cores = min(float(ceil(reached - 1e-9)), most) if reached > surface.cores[0] else reached
        memory = _reached(surface.memory, lambda gib: surface.at(cores, gib), near)
        return cls(
            cores,
            memory,
            1 - surface.at(profile.reference[0], plenty) / best,
            1 - surface.at(most, profile.reference[1]) / best,
            len(surface.cores) > 1 and cores >= most,
        )


def _reached(levels: Sequence[float], speed: Callable[[float], float], wanted: float) -> float:
    """Where on the lines between the levels a speed is first reached."""
    if speed(levels[0]) >= wanted:
        return levels[0]
    for low, high in pairwise(levels):
        slow, fast = speed(low), speed(high)
        if fast >= wanted:
            return low + (high - low) * (wanted - slow) / (fast - slow)
    return levels[-1]
