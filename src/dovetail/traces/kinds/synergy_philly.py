"""The part of the real Philly trace that Synergy replays on 512 GPUs (Mohan et al., OSDI'22).

Submissions and lengths are the log's own. Kept are the jobs of 1, 2, 4, 8 or 16 GPUs submitted
between two hours of the log, the first `jobs` of them, and the first of these comes at second 0.
Models, which the log does not tell, take turns by class (`model_mix`).

Hours count from the first submission in the file. The paper's 2400 to 3000 are hours of the
published JSON log, which begins on 2017-08-07; the CSV form begins 28 days later, so the same days
are about `from=1728,to=2328` there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from dovetail.model.errors import UserError
from dovetail.model.trace import TraceJob
from dovetail.traces.kinds.model_mix import check_split, models
from dovetail.traces.loader import load

SIZES = (1, 2, 4, 8, 16)
LIST = "1, 2, 4, 8 or 16 GPUs"


@dataclass(frozen=True)
class SynergyPhilly:
    """A cut of a recorded trace, with models."""

    #: path of the log
    trace: str
    split: tuple[float, ...] = (20.0, 70.0, 10.0)
    #: how many there are at most; once the log was read, how many there are
    jobs: int = 8000
    #: hours of the log, both included
    from_: float = 2400.0
    to: float = 3000.0
    #: what was left out
    notices: list[str] = field(default_factory=list, init=False, repr=False, compare=False)
    _kept: list[TraceJob] = field(default_factory=list, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise UserError(f"jobs={self.jobs}: it must be more than 0")
        if not 0 <= self.from_ <= self.to < float("inf"):
            raise UserError(f"from={self.from_:g}, to={self.to:g}: hours, the first one earlier")
        check_split(self.split)
        self._cut()
        object.__setattr__(self, "jobs", len(self._kept))

    def _cut(self) -> None:
        hours = (str(self.from_ * 3600), str(self.to * 3600))
        found = load(self.trace, start=hours[0], stop=hours[1])
        others = 0
        for job in found.jobs:
            if len(self._kept) == self.jobs:
                break
            if job.spec.request.milli_gpus in {size * 1000 for size in SIZES}:
                self._kept.append(job)
            else:
                others += 1
        if not self._kept:
            raise UserError(f"{self.trace} has no job of {LIST} between these hours")
        if others:
            self.notices.append(f"{others:,} jobs of other sizes than {LIST} were left out")
        if len(self._kept) < self.jobs:
            told = f"{len(self._kept):,} jobs between these hours, fewer than {self.jobs:,}"
            self.notices.append(f"{self.trace} has {told}")

    def __iter__(self) -> Iterator[TraceJob]:
        zero = self._kept[0].spec.submit
        named = zip(self._kept, islice(models(self.split), self.jobs), strict=True)
        for number, (job, model) in enumerate(named):
            spec = job.spec._replace(id=number, submit=job.spec.submit - zero, model=model)
            yield job._replace(spec=spec)
