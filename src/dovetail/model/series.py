"""What was measured over time: the cluster as a whole, and single jobs, as values.

Moments are wall time in seconds since 1970; CPU is in thousandths of a core, memory in MiB.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """The cluster at one moment. What nobody measures is None."""

    at: float
    gpus: int
    #: GPUs held by jobs; shared ones count by their share
    busy: float
    cpu: int
    cpu_granted: int
    cpu_used: int | None
    memory: int
    memory_granted: int
    memory_used: int | None
    waiting: int
    running: int
    #: mean seconds that those who wait have waited so far
    age: float
    #: mean wait of the jobs that first started since the sample before; None: none did
    wait: float | None


@dataclass(frozen=True)
class Point:
    """A running job at one moment. What nobody measures is None."""

    at: float
    cpu_granted: int
    cpu_used: int | None
    memory_granted: int
    memory_used: int | None
    #: percent of the devices' time; None as well where no real GPU is there to measure
    gpu: float | None
    #: steps done and to do, and steps per second lately; None: it does not tell
    steps: float | None
    total: float | None
    rate: float | None
