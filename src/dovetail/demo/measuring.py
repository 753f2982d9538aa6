"""Profiles of the demo's jobs, measured on this machine in a few seconds.

The processor time of a step is measured, and is the same on a busy machine. The device is virtual,
so its part of a step is known. Decoding runs ahead, so the slower of the two sets the pace.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from dovetail.demo.kinds import KINDS, Kind
from dovetail.model.errors import UserError
from dovetail.model.profile import Profile, Surface
from dovetail.profiler.measurement import Measurement
from dovetail.profiler.running import Window, measure

WINDOW = Window(seconds=1.6, warmup=0.2)
MEMORY = 0.25
"""GiB: more than any of them needs."""
PARTS = 8
"""Parts of a core that may be granted."""
LEAST = 0.25
"""Cores: with less, starting a program takes longer than what is saved is worth."""
MARGIN = 1.4
"""Of cores, over what keeps the device busy on average: work comes in bursts."""

Tell = Callable[[Kind, Measurement], None]


@dataclass(frozen=True)
class Known:
    """What was found out about one kind of job."""

    kind: Kind
    seen: Measurement

    @property
    def processor(self) -> float:
        """Seconds of one core that a step takes."""
        return self.seen.used / self.seen.speed

    def speed(self, cores: float) -> float:
        """Steps per second to expect with so many cores of one's own."""
        return min(cores / self.processor, 1 / self.kind.device)

    @property
    def disturbed(self) -> float:
        """The part of that speed that neighbours left it when it was measured; 1: all."""
        return min(1.0, self.seen.speed / self.speed(self.seen.cores))

    def profile(self, cores: int, share: tuple[float, float]) -> Profile:
        """Its sensitivity up to so many cores; speed is 1 with this share of them and memory."""
        enough = min(MARGIN * self.processor / self.kind.device, cores)
        levels = {part / PARTS for part in range(1, cores * PARTS + 1)} | {enough}
        rising = tuple(sorted(level for level in levels if level >= LEAST))
        unit = self.speed(share[0])
        rows = tuple((self.speed(each) / unit,) for each in rising)
        source = f"measured on {self.seen.cores} core for {self.seen.seconds:.0f} s"
        surface = Surface(rising, (MEMORY,), rows)
        return Profile(self.kind.name, surface, share, step=1 / unit, source=source)


def explored(tell: Tell) -> list[Known]:
    """Measure one kind after the other; `tell` is told each."""
    found = []
    for kind in KINDS.values():
        seen = measure(command(kind.name), 1, WINDOW)
        if not seen.used:
            raise UserError(f"{kind.name}: its processor time could not be seen")
        tell(kind, seen)
        found.append(Known(kind, seen))
    return found


def command(kind: str, steps: int | None = None) -> list[str]:
    """What runs a job of a kind."""
    words = [sys.executable, "-m", "dovetail.demo.training", kind]
    return words if steps is None else [*words, "--steps", str(steps)]
