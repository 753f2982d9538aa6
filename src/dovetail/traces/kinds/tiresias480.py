"""480 jobs for 60 GPUs, in the manner of the testbed workload of Tiresias (Gu et al., NSDI'19).

The original list was never published. This stand-in has gaps of 30 s in the mean, sizes from 1 to
32 GPUs, and 80 % of its jobs take 120 to 500 s, the others 800 to 3600 s. It is drawn job by job
from Python's own generator, so a seed gives the same jobs wherever the recipe is followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob

SMALL = [1] * 6 + [2] * 2 + [4] * 3 + [8] * 3
LARGE = [16] * 4 + [32]
MODELS = ["vgg19", "vgg16", "vgg11", "alexnet", "resnet152", "resnet101", "resnet50"]
MODELS += ["inception4", "inception3"]


@dataclass(frozen=True)
class Tiresias480:
    """The 480 jobs. It can be iterated more than once and is the same each time."""

    jobs: int = 480
    #: GPUs of the cluster; no job is wider
    gpus: int | None = None
    seed: int = 42

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise UserError(f"jobs={self.jobs}: it must be more than 0")

    def __iter__(self) -> Iterator[TraceJob]:
        random, clock = Random(self.seed), 0.0
        for number in range(self.jobs):
            gpus = random.choice(SMALL if random.random() < 0.76 else LARGE)
            short = random.random() < 0.80
            work = int(random.uniform(120, 500) if short else random.uniform(800, 3600))
            gap, model = random.expovariate(1 / 30), random.choice(MODELS)
            request = gang(min(gpus, self.gpus or gpus))
            spec = JobSpec(number, str(number), float(int(clock)), request, "", "", model)
            yield TraceJob(spec, float(work))
            clock += gap
