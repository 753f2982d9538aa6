"""One point of a curve, as it was seen."""

from __future__ import annotations

from dataclasses import dataclass


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
