"""The workloads of Synergy (Mohan et al., OSDI'22), draw for draw as its artifact makes them.

Lengths are Gavel's recipe and are the run time at the GPU-proportional share, cut to whole training
steps. Arrivals are a Poisson process in whole seconds. Models take turns by class (`model_mix`).
Numbers come from Python's own generator in the artifact's order, so with seed 42 `sizes=single` and
`sizes=mix` are its very jobs: the model it draws for each job and then ignores is drawn here too.
`sizes=philly` has the lengths and arrivals of `single`, and GPUs in the shares of the Philly trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, log
from random import Random
from typing import NamedTuple

from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.traces.kinds.model_mix import STEPS, check_split, models

SINGLE = {1: 1.0}
MIX = {1: 0.70, 2: 0.10, 4: 0.15, 8: 0.05}

#: Counted in the published Philly trace (Jeon et al., ATC'19; the CSV form) as the artifact counts:
#: of the jobs longer than 10^1.5 and shorter than 10^4 minutes, those of more than 16 GPUs are
#: dropped and other sizes become 1: 28,809, 300, 1,271, 1,168 and 128 of 31,676 jobs.
PHILLY = {1: 0.90949, 2: 0.00947, 4: 0.04013, 8: 0.03687, 16: 0.00404}

SIZES = {"single": SINGLE, "mix": MIX, "philly": PHILLY}


class Drawn(NamedTuple):
    """One job before it has a model."""

    #: seconds after the job before it
    gap: int
    #: seconds at the GPU-proportional share
    length: float
    gpus: int


@dataclass(frozen=True)
class SynergyLike:
    """Synergy's jobs. It can be iterated more than once and is the same each time."""

    #: jobs an hour
    rate: float
    jobs: int = 1000
    #: shares of image, language and speech models
    split: tuple[float, ...] = (20.0, 70.0, 10.0)
    #: single, philly or mix
    sizes: str = "single"
    #: GPUs of the cluster; no job is wider
    gpus: int | None = None
    seed: int = 42

    def __post_init__(self) -> None:
        for key in ("jobs", "rate", "gpus"):
            value = getattr(self, key)
            if value is not None and not 0 < value < float("inf"):
                raise UserError(f"{key}={value}: it must be more than 0")
        if self.seed < 0:
            raise UserError(f"seed={self.seed}: it must be 0 or more")
        if self.sizes not in SIZES:
            raise UserError(f"sizes={self.sizes}: say single, philly or mix")
        check_split(self.split)

    def __iter__(self) -> Iterator[TraceJob]:
        drawn = self._one_source() if self.sizes == "mix" else self._two_sources()
        clock = 0
        for number, job, model in zip(range(self.jobs), drawn, models(self.split), strict=False):
            clock += job.gap
            request = gang(min(job.gpus, self.gpus or job.gpus))
            work = int(job.length / STEPS[model]) * STEPS[model]
            spec = JobSpec(number, str(number), float(clock), request, "", "", model)
            yield TraceJob(spec, work)

    def _one_source(self) -> Iterator[Drawn]:
        """The artifact without a log: everything about one job, then the next."""
        random = Random(self.seed)
        while True:
            gap, length = self._gap(random), _length(random)
            yield Drawn(gap, length, _pick(random.random(), MIX))
            _draw_a_model(random)

    def _two_sources(self) -> Iterator[Drawn]:
        """The artifact with its list of jobs at hand: lengths were drawn before, from the seed too.

        Its sizes are those of the log, in order; drawn ones need a source of their own.
        """
        arrivals, lengths = Random(self.seed), Random(self.seed)
        sizes, shares = Random(f"sizes {self.seed}"), SIZES[self.sizes]
        while True:
            gap = self._gap(arrivals)
            _draw_a_model(arrivals)
            yield Drawn(gap, _length(lengths), _pick(sizes.random(), shares))

    def _gap(self, random: Random) -> int:
        return ceil(-log(1 - random.random()) / self.rate * 3600)


def _length(random: Random) -> float:
    short = random.random() < 0.8
    return float(60 * 10 ** (random.uniform(1.5, 3) if short else random.uniform(3, 4)))


def _draw_a_model(random: Random) -> None:
    random.randrange(len(STEPS))


def _pick(uniform: float, shares: Mapping[int, float]) -> int:
    """The size at that point of the shares laid end to end."""
    for size, share in shares.items():
        if uniform < share:
            return size
        uniform -= share
    return size
