"""Discretised 2D-Gittins (Tiresias): what finished jobs looked like says whom to serve next.

For attained service a and quantum D, among past jobs with service S > a: P is the fraction that
ends within D more, E the mean service they would consume of it, min(S - a, D). The index P / E is
served largest first. D is the upper limit of the job's queue (infinite for the last). Queues are
those of 2D-LAS. The published simulator divides by total instead of remaining service and
times demotions by one GPU; neither is inherited.

Past jobs are learned from those that finish here, or read from `samples`, a file with one number
of GPU-seconds per line. With fewer than 20 samples all indices are equal and the order is 2D-LAS.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

from dovetail.core.ordering import Ordering
from dovetail.core.view import View
from dovetail.model.errors import UserError
from dovetail.model.job import Job
from dovetail.orderings.attained import check_thresholds, next_drop, queue_of

ENOUGH = 20
MOST = 10_000
"""Samples kept; beyond it every second one is dropped, which keeps the shape."""


def index(samples: list[float], sums: list[float], attained: float, quantum: float) -> float:
    """The Gittins index from sorted samples and their running sums (sums[0] = 0)."""
    older = bisect_right(samples, attained)
    within = bisect_right(samples, attained + quantum)
    left = len(samples) - older
    if not left:
        return 0.0
    consumed = sums[within] - sums[older] - (within - older) * attained
    consumed += (len(samples) - within) * quantum if within < len(samples) else 0.0
    return (within - older) / consumed if consumed else float("inf")


@dataclass(frozen=True)
class Gittins(Ordering):
    """Largest Gittins index first inside the queues of 2D-LAS; preemptive."""

    preempt: bool = True
    #: seconds between re-rankings of running jobs
    round: float = 300.0
    #: GPU-seconds at which a job drops to the next queue
    thresholds: tuple[float, ...] = (3250.0, 7200.0)
    #: file with one GPU-time sample per line; empty: learn from jobs that finish
    samples: str = ""
    _past: list[float] = field(default_factory=list, init=False, repr=False, compare=False)
    _sums: list[float] = field(default_factory=list, init=False, repr=False, compare=False)
    # Learned since the last re-ranking: keys of one round are read from one set of samples.
    _news: list[float] = field(default_factory=list, init=False, repr=False, compare=False)
    _round: list[int] = field(default_factory=list, init=False, repr=False, compare=False)

    rekeys: ClassVar[str] = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_thresholds(self.thresholds, "gittins")
        if self.samples:
            self._past.extend(sorted(_read(self.samples)))

    @property
    def pause(self) -> float | None:
        """Indices of running jobs change as they run."""
        return self.round

    def key(self, job: Job, view: View) -> tuple[float, ...]:
        """(queue, index turned round)."""
        self._take_in_news(int(view.now // self.round))
        service = job.service(view.now)
        queue = queue_of(service, self.thresholds)
        return queue, -self._index(service, queue)

    def _take_in_news(self, number: int) -> None:
        """Make what was learned in earlier rounds count."""
        if self._round == [number]:
            return
        self._round[:] = [number]
        if self._news:
            self._past[:] = sorted(self._past + self._news)
            if len(self._past) > MOST:
                self._past[:] = self._past[::2]
            self._news.clear()
            self._sums.clear()

    def _index(self, service: float, queue: int) -> float:
        if len(self._past) < ENOUGH:
            return 0.0
        if not self._sums:
            self._sums.extend(accumulate(self._past, initial=0.0))
        limits = (*self.thresholds, float("inf"))
        return index(self._past, self._sums, service, limits[queue])

    def turn(self, job: Job, view: View) -> float | None:
        """When a running job reaches the end of its queue."""
        if job.virtual is None:
            return None
        service = job.service(view.now)
        return next_drop(service, job.spec.request.gpus, view.now, self.thresholds)

    def left(self, job: Job, view: View, done: bool) -> None:
        """Learn the service of a job that is done."""
        if done and not self.samples:
            self._news.append(job.service(view.now))

    def snapshot(self) -> Any:
        """The samples learned so far."""
        return [list(self._past), list(self._news), list(self._round)]

    def restore(self, state: Any) -> None:
        """Take the samples back."""
        self._past[:], self._news[:], self._round[:] = state
        self._sums.clear()


def _read(path: str) -> list[float]:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not a text file") from None
    headed = bool(lines) and lines[0].strip().isalpha()
    numbered = list(enumerate(lines, 1))[headed:]
    return [_sample(text, f"{path}:{line}") for line, text in numbered if text.strip()]


def _sample(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UserError(f"{where}: {text.strip()!r} is not a number of GPU-seconds, 0 or more")
    return value
