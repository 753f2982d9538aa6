"""What is in a trace: counts, sizes, lengths, owners and offered load. One pass, little memory."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from dovetail.model.trace import Trace
from dovetail.traces.moments import written

#: lower edges of the buckets of lengths, in seconds, and what people call them
BUCKETS = {
    0: "under 10 s",
    10: "10 s",
    30: "30 s",
    60: "1 min",
    180: "3 min",
    600: "10 min",
    1800: "30 min",
    3600: "1 h",
    10800: "3 h",
    36000: "10 h",
    86400: "1 day",
    259200: "3 days",
    864000: "10 days",
    2592000: "30 days",
}
EDGES = list(BUCKETS)
QUANTILES = {"p5": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99}


@dataclass
class Summary:
    """The figures of one trace. Times in seconds."""

    trace: str
    format: str
    origin: str | None
    jobs: int = 0
    first_submit: float = 0.0
    last_submit: float = 0.0
    #: devices times length, shares counted as such
    gpu_seconds: float = 0.0
    cpu_jobs: int = 0
    shared_jobs: int = 0
    #: GPUs -> jobs
    sizes: dict[int, int] = field(default_factory=dict)
    #: name of a bucket -> jobs
    durations: dict[str, int] = field(default_factory=dict)
    #: mean, quantiles and maximum
    duration: dict[str, float] = field(default_factory=dict)
    #: tenant -> jobs, most first
    tenants: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)

    @property
    def span(self) -> float:
        """Seconds from the first submission to the last."""
        return self.last_submit - self.first_submit

    def load(self, gpus: int) -> float | None:
        """Offered load of a cluster; None where all jobs come at once."""
        return self.gpu_seconds / (gpus * self.span) if self.span and gpus else None

    def wider_than(self, gpus: int) -> int:
        """Jobs that want more GPUs than there are."""
        return sum(jobs for size, jobs in self.sizes.items() if size > gpus)


def summarise(trace: Trace) -> Summary:
    """Go through a trace once."""
    origin = None if trace.origin is None else written(trace.origin.timestamp())
    summary = Summary(trace.name, trace.format, origin)
    works, sizes, shared = array("d"), Counter[int](), 0
    tenants, outcomes = Counter[str](), Counter[str]()
    submit, milli_seconds = 0.0, 0.0
    for spec, work, _, outcome in trace.jobs:
        if not works:
            summary.first_submit = spec.submit
        submit, request = spec.submit, spec.request
        milli = request.milli_gpus
        works.append(work)
        sizes[request.gpus] += 1
        shared += milli < 1000 * request.gpus
        milli_seconds += milli * work
        tenants[spec.tenant] += 1
        outcomes[outcome] += 1
    summary.jobs, summary.last_submit = len(works), submit
    summary.gpu_seconds, summary.shared_jobs = milli_seconds / 1000, shared
    summary.sizes, summary.cpu_jobs = dict(sorted(sizes.items())), sizes[0]
    summary.tenants, summary.outcomes = dict(tenants.most_common()), dict(outcomes.most_common())
    summary.notices = list(trace.notices)
    _lengths(summary, sorted(works))
    return summary


def _lengths(summary: Summary, works: list[float]) -> None:
    if not works:
        return
    buckets = Counter(bisect_right(EDGES, work) - 1 for work in works)
    names = list(BUCKETS.values())
    inside = range(min(buckets), max(buckets) + 1)
    summary.durations = {names[number]: buckets[number] for number in inside}
    figures: dict[str, Any] = {"mean": sum(works) / len(works)}
    figures |= {name: _quantile(works, level) for name, level in QUANTILES.items()}
    summary.duration = {**figures, "max": works[-1]}


def _quantile(ordered: list[float], level: float) -> float:
    """By linear interpolation."""
    place = level * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
