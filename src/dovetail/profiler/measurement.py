"""One point of a curve, as it was seen."""

from __future__ import annotations

from dataclasses import dataclass

IDLE = 0.9
"""Cores that are busy for more than this share of the time are not partly idle."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was seen on so many cores."""

    cores: int
    #: steps per second
    speed: float
    #: standard error of the speed, as a share of it
    noise: float = 0.0
    #: the most memory seen, in GiB
    memory: float = 0.0
    #: what it took, start and warm-up included
    seconds: float = 0.0
    #: steps in one pass over the data; 0: not said
    epoch: int = 0
    #: the part of the cores that other programs used meanwhile
    others: float = 0.0
    #: cores' worth of processor time it took; 0: not known
    used: float = 0.0

    @property
    def content(self) -> bool:
        """Did it leave a part of its cores idle? Where others were on them, that is not known."""
        return 0 < self.used < (IDLE - self.others) * self.cores
