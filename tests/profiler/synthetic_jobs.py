"""Jobs whose true speed is known everywhere, and the noise of measuring them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from dovetail.profiler.bisection import Bisection
from dovetail.profiler.caching import Dataset
from dovetail.profiler.measurement import Measurement
from dovetail.profiler.sensitivity import Findings, Task, compose
from dovetail.profiler.session import explore

MOST = 24
WORKING = 10.0
SHARES = [step / 10 for step in range(11)]


@dataclass(frozen=True)
class Job:
    """Steps per second over cores with all data in memory, and the data."""

    name: str
    computed: Callable[[int], float]
    dataset: Dataset | None = None

    def truth(self, cores: int, cached: float) -> float:
        """By the definition of the model, written down a second time."""
        if self.dataset is None:
            return self.computed(cores)
        step = self.dataset.size * 2**30 / self.dataset.epoch
        memory = min(self.dataset.memory * cores, self.dataset.memory_limit)
        fetch = step * (cached / memory + (1 - cached) / self.dataset.storage)
        return 1 / max(1 / self.computed(cores), fetch)


def data(storage: float) -> Dataset:
    """100 GiB in 5,000 steps: 21 MB a step, 47 steps a second at 1 GB/s."""
    return Dataset(100.0, 5000, storage * 1e6)


JOBS = [
    Job("flat", lambda c: 8.0),
    Job("linear to the end", lambda c: 1.5 * c),
    Job("linear to a plateau at 4", lambda c: 3.0 * min(c, 4)),
    Job("linear to a plateau at 9.5", lambda c: 2.0 * min(c, 9.5)),
    Job("Amdahl, a tenth serial", lambda c: 5 / (0.1 + 0.9 / c)),
    Job("Amdahl, a hundredth serial", lambda c: 2 / (0.01 + 0.99 / c)),
    Job("a soft knee", lambda c: 3 * (c**-4 + 7**-4) ** -0.25),
    Job("bound by storage", lambda c: 4.0 * min(c, 6), data(100)),
    Job("bound by storage where the cache is small", lambda c: 3.0 * min(c, 9), data(300)),
    Job("Amdahl over a disk", lambda c: 5 / (0.1 + 0.9 / c), data(400)),
    Job("never bound by storage", lambda c: 1.0 * min(c, 8), data(2000)),
]


def profiled(job: Job, noise: float, seed: int, most: int = MOST, points: int = 8) -> Findings:
    """What profiling finds out, each measurement off by a random amount."""
    chance = random.Random(seed)

    def measure(cores: int) -> Measurement:
        seen = job.computed(cores) * (1 + chance.gauss(0, noise))
        return Measurement(cores, seen, noise, WORKING, 60.0)

    found, _ = explore(Bisection(1, most, points=points), measure)
    task = Task(job.name, 1, (3.0, 62.5), None, most)
    return compose(task, found, job.dataset)


def errors(job: Job, findings: Findings, most: int = MOST) -> list[float]:
    """Predicted against true speed, relative, at every point of the full grid."""
    profile = findings.profile
    size = 0.0 if job.dataset is None else job.dataset.size
    return [
        abs(
            profile.rate(cores, WORKING + share * size) / profile.step / job.truth(cores, share) - 1
        )
        for cores in range(1, most + 1)
        for share in (SHARES if size else [1.0])
    ]


def median_error(job: Job, findings: Findings, most: int = MOST) -> float:
    return median(errors(job, findings, most))
