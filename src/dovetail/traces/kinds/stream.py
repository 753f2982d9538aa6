"""What generated workloads have in common: chunks of random columns become a stream of jobs.

A kind says how sizes and lengths are drawn, and perhaps the rhythm of the day. Here are the number
of jobs, the seed, and the span: jobs come in a Poisson process between the first, at second 0, and
the last, at the second that makes the load exact. For that the columns are drawn twice, once to add
up the GPU-seconds and once to be used; nothing but the present chunk is ever held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.traces.assembly import assemble

CHUNK = 20_000
"""Jobs drawn at once. Part of what a seed means: another size gives other jobs."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Drawn(NamedTuple):
    """Columns of one chunk."""

    gpus: Ints
    #: seconds
    work: Floats
    tenant: Iterable[str] = repeat("")
    model: Iterable[str] = repeat("")


@dataclass(frozen=True)
class Stream:
    """A generated workload. It can be iterated more than once and is the same each time."""

    jobs: int = 1000
    #: offered GPU-seconds over (GPUs of the cluster x span)
    load: float | None = None
    #: jobs an hour, instead of a load
    rate: float | None = None
    #: GPUs of the cluster; no job is wider
    gpus: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.load is None) == (self.rate is None):
            raise UserError("say either load=… (relative to the cluster) or rate=… (jobs an hour)")
        if self.rate is None and self.gpus is None:
            raise UserError(
                "a load is relative to the cluster; say gpus=… or rate=… (jobs an hour)"
            )
        for key in ("jobs", "load", "rate", "gpus"):
            value = getattr(self, key)
            if value is not None and not 0 < value < float("inf"):
                raise UserError(f"{key}={value}: it must be more than 0")
        if self.seed < 0:
            raise UserError(f"seed={self.seed}: it must be 0 or more")

    def draw(self, random: np.random.Generator, count: int) -> Drawn:
        """Sizes, lengths and owners of the next `count` jobs."""
        raise NotImplementedError

    def times(self, fractions: Floats, span: float) -> Floats:
        """Submit times of jobs that come after these fractions of all arrivals."""
        return fractions * span

    def __iter__(self) -> Iterator[TraceJob]:
        return chain.from_iterable(self._assembled())

    def _assembled(self) -> Iterator[Iterator[TraceJob]]:
        """Chunk after chunk of jobs."""
        span, start = self.span(), 0
        for drawn, fractions in zip(self._drawn(), self._fractions(), strict=True):
            yield _jobs(start, self.times(fractions, span), drawn)
            start += len(fractions)

    def span(self) -> float:
        """Seconds from the first submission to the last."""
        if self.rate is not None:
            return (self.jobs - 1) * 3600 / self.rate
        assert self.gpus is not None and self.load is not None  # __post_init__ has seen to it
        # No dot product: a linear-algebra library would start threads for it.
        offered = sum(float((drawn.gpus * drawn.work).sum()) for drawn in self._drawn())
        return offered / (self.gpus * self.load)

    def _drawn(self) -> Iterator[Drawn]:
        random = np.random.default_rng([self.seed, 0])
        for count in self._chunks():
            drawn = self.draw(random, count)
            yield (
                drawn
                if self.gpus is None
                else drawn._replace(gpus=np.minimum(drawn.gpus, self.gpus))
            )

    def _fractions(self) -> Iterator[Floats]:
        """Arrivals of a Poisson process, as fractions of the way from the first to the last."""
        first = total = 0.0
        for gaps in self._gaps():
            first = first or float(gaps[0])
            total += float(gaps.sum())
        so_far = -first
        for gaps in self._gaps():
            arrivals = so_far + np.cumsum(gaps)
            so_far = float(arrivals[-1])
            yield arrivals / max(total - first, 1e-300)

    def _gaps(self) -> Iterator[Floats]:
        random = np.random.default_rng([self.seed, 1])
        for count in self._chunks():
            yield random.standard_exponential(count)

    def _chunks(self) -> Iterator[int]:
        for start in range(0, self.jobs, CHUNK):
            yield min(CHUNK, self.jobs - start)


def _jobs(start: int, times: Floats, drawn: Drawn) -> Iterator[TraceJob]:
    ids = range(start, start + len(times))
    sizes = drawn.gpus.tolist()
    requests = {size: gang(size) for size in set(sizes)}
    given: dict[str, Iterable[Any]] = {
        "id": ids,
        "name": map(str, ids),
        "submit": times.tolist(),
        "request": map(requests.__getitem__, sizes),
        "tenant": drawn.tenant,
        "model": drawn.model,
    }
    default = JobSpec._field_defaults
    specs = [given[name] if name in given else repeat(default[name]) for name in JobSpec._fields]
    truth = (drawn.work.tolist(), repeat(()), repeat("finished"))
    return assemble(specs, truth)
