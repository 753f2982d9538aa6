"""Made-up workloads by name: `KIND,key=value,…`.

Jobs are made while they are used, so a million of them take no more memory than a thousand. The
same text gives the same jobs. A made-up job is never wider than the cluster, where its size is
known. One kind is a cut of a recorded trace with models that were made up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import takewhile
from math import inf
from typing import Any, Protocol

from dovetail.core.registry import Registry, construct, nearest, split
from dovetail.model.errors import UserError
from dovetail.model.trace import Trace, TraceJob
from dovetail.traces.kinds.gavel import GavelLike
from dovetail.traces.kinds.philly import PhillyLike
from dovetail.traces.kinds.poisson import Poisson
from dovetail.traces.kinds.synergy import SynergyLike
from dovetail.traces.kinds.synergy_philly import SynergyPhilly
from dovetail.traces.kinds.tiresias480 import Tiresias480
from dovetail.traces.moments import bound


class Generator(Protocol):
    """Jobs in order of submission, numbered from 0, the same on each iteration.

    A dataclass: its fields are the keys. A field `gpus` left out is the size of the cluster. It may
    have `notices`, a list of what the person should know.
    """

    @property
    def jobs(self) -> int:
        """How many jobs there will be."""

    def __iter__(self) -> Iterator[TraceJob]:
        """The jobs."""


KINDS: dict[str, Callable[..., Generator]] = {
    "philly": PhillyLike,
    "gavel": GavelLike,
    "poisson": Poisson,
    "tiresias480": Tiresias480,
    "synergy": SynergyLike,
    "synergy-philly": SynergyPhilly,
}

GENERATORS: Registry[Generator] = Registry("kind of generated trace", KINDS, "dovetail.generators")


def generate(
    text: str,
    cluster_gpus: int | None = None,
    start: str | None = None,
    stop: str | None = None,
) -> Trace:
    """The trace of `KIND,key=value,…`; `start` and `stop` are seconds, both included."""
    made = _construct(text, cluster_gpus)
    trace = Trace(f"generate:{text}", "generate", made, made.jobs)
    trace.notices += getattr(made, "notices", ())
    if start is not None or stop is not None:
        low = 0.0 if start is None else bound(start, "--from", 0.0)
        high = inf if stop is None else bound(stop, "--to", 0.0)
        trace.jobs, trace.count = _Between(made, low, high), None
    return trace


def _construct(text: str, cluster_gpus: int | None) -> Generator:
    name, given = split(text.replace(",", ":", 1))
    if not GENERATORS.knows(name):
        offer = nearest(name, GENERATORS.names())
        raise UserError(f"generate:{text}: unknown kind {name!r}{offer}")
    kind: Any = GENERATORS.find(name)
    if cluster_gpus is not None and "gpus" in {field.name for field in fields(kind)}:
        given.setdefault("gpus", str(cluster_gpus))
    try:
        made: Generator = construct(kind, name, given)
    except UserError as error:
        raise UserError(f"generate:{text}: {error}") from None
    return made


@dataclass(frozen=True)
class _Between:
    """The jobs of an interval, numbered again from 0."""

    jobs: Generator
    low: float
    high: float

    def __iter__(self) -> Iterator[TraceJob]:
        early = takewhile(lambda job: job.spec.submit <= self.high, self.jobs)
        kept = (job for job in early if job.spec.submit >= self.low)
        for number, job in enumerate(kept):
            yield job._replace(spec=job.spec._replace(id=number))
