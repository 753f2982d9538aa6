"""Figures about a stretch of a controller's life, from what ran when and who waited for it.

Knows neither data base nor controller. The number of GPUs is taken to have been the same all along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dovetail.model.review import Review, Spent, Waited, Waits

HOUR = 3600.0
POINTS = 168
"""Of what is drawn over time: the hours of a week."""
LONGEST = 10
USEFUL, FAILED, STOPPED, CANCELLED, IDLE, UNWANTED = (
    "used",
    "failed attempts",
    "stopped for others",
    "cancelled work",
    "idle while jobs waited",
    "idle, nobody waited",
)
ABOUT = {
    USEFUL: "held by jobs that are done or run",
    FAILED: "attempts that failed, tried again or not",
    STOPPED: "work of stopped jobs that cannot resume, and starting the others again",
    CANCELLED: "attempts that their owner gave up",
    IDLE: "GPUs that nobody held while jobs waited that asked for as many or more",
    UNWANTED: "GPUs that nobody held or asked for",
}
SIZES = ((1.0, "up to 1 GPU"), (2.0, "2 GPUs"), (4.0, "3 to 4"), (8.0, "5 to 8"))
LARGER = "more than 8"
SIZE_NAMES = (*(name for _, name in SIZES), LARGER)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Held:
    """GPUs that a job held for a while; seconds of it were lost for a cause, if one is named."""

    job: int
    gpus: float
    begin: float
    end: float
    cause: str = USEFUL
    lost: float = 0.0


@dataclass(frozen=True)
class Asked:
    """A job as it was asked for. One that is held back, or waits for others, wants nothing yet."""

    job: int
    name: str
    user: str
    gpus: float
    submitted: float
    started: float | None
    ended: float | None
    state: str
    wants: bool = True


class Steps:
    """A number of GPUs over time, from the moments at which it changes."""

    def __init__(self, spans: Iterable[tuple[float, float, float]]) -> None:
        ends = [each for begin, end, gpus in spans for each in ((begin, gpus), (end, -gpus))]
        ends.sort()
        self.times: Floats = np.array([at for at, _ in ends] or [0.0])
        self._values: Floats = np.cumsum([by for _, by in ends] or [0.0])

    def at(self, times: Floats) -> Floats:
        """The number at these moments."""
        place = np.searchsorted(self.times, times, side="right") - 1
        return np.where(place >= 0, np.maximum(self._values[place], 0.0), 0.0)


def review(
    jobs: Sequence[Asked],
    runs: Sequence[Held],
    since: float,
    until: float,
    gpus: int,
    policy: str,
) -> Review:
    """All figures. Why a job waited is told as far as it can be afterwards."""
    busy = Steps((max(run.begin, since), min(run.end, until), run.gpus) for run in runs)
    wanted = Steps(_waiting(jobs, runs, since, until))
    edges = np.linspace(since, until, POINTS + 1)
    moments = np.unique(np.clip(np.concatenate([busy.times, wanted.times, edges]), since, until))
    widths, held = np.diff(moments), busy.at(moments[:-1])
    idle = np.maximum(gpus - held, 0.0)
    missed = np.minimum(idle, wanted.at(moments[:-1]))
    lost = float((missed * widths).sum()) / HOUR
    bins = np.clip(np.searchsorted(edges, moments[:-1], side="right") - 1, 0, POINTS - 1)
    states = [job.state for job in jobs]
    begun = (wanted.at(moments[:-1]), held)
    drawn = [
        np.bincount(bins, each * widths, POINTS)
        / np.maximum(np.bincount(bins, widths, POINTS), 1e-9)
        for each in begun
    ]
    return Review(
        since,
        until,
        policy,
        gpus,
        sum(job.submitted >= since for job in jobs),
        states.count("done"),
        states.count("failed"),
        states.count("cancelled"),
        (until - since) / POINTS,
        tuple(drawn[1].round(3).tolist()),
        tuple(drawn[0].round(3).tolist()),
        _spent(runs, since, until, lost, float((idle * widths).sum()) / HOUR - lost),
        _grouped(jobs, runs, since, until, lambda job: job.user),
        _by_size(_grouped(jobs, runs, since, until, lambda job: size_name(job.gpus))),
        _longest(jobs, busy, since, until, gpus),
    )


def _waiting(
    jobs: Sequence[Asked], runs: Sequence[Held], since: float, until: float
) -> Iterable[tuple[float, float, float]]:
    """Spans in which jobs waited: from submission to end, but for when they held something."""
    by_job: dict[int, list[Held]] = {}
    for run in runs:
        by_job.setdefault(run.job, []).append(run)
    for job in jobs:
        if not job.wants or not job.gpus:
            continue
        begin = job.submitted
        for run in sorted(by_job.get(job.job, []), key=lambda run: run.begin):
            yield max(begin, since), max(run.begin, begin, since), job.gpus
            begin = run.end
        end = until if job.ended is None else job.ended
        yield max(begin, since), max(end, begin, since), job.gpus


def _hours(run: Held, since: float, until: float) -> tuple[float, float]:
    """GPU-hours inside the time, and those of them that were lost."""
    span = max(0.0, min(run.end, until) - max(run.begin, since))
    return run.gpus * span / HOUR, run.gpus * min(run.lost, span) / HOUR


def _spent(
    runs: Sequence[Held], since: float, until: float, missed: float, unwanted: float
) -> tuple[Spent, ...]:
    hours = dict.fromkeys(ABOUT, 0.0)
    for run in runs:
        whole, lost = _hours(run, since, until)
        hours[USEFUL] += whole - lost
        hours[run.cause] += lost
    hours[IDLE], hours[UNWANTED] = missed, max(0.0, unwanted)
    return tuple(
        Spent(cause, hours[cause], cause not in (USEFUL, UNWANTED), about)
        for cause, about in ABOUT.items()
    )


def _grouped(
    jobs: Sequence[Asked],
    runs: Sequence[Held],
    since: float,
    until: float,
    name: Callable[[Asked], str],
) -> tuple[Waits, ...]:
    """Waits by name, who had most first."""
    names = {job.job: name(job) for job in jobs}
    members: dict[str, list[Asked]] = {}
    for job in jobs:
        members.setdefault(names[job.job], []).append(job)
    hours = {each: [0.0, 0.0] for each in members}
    for run in runs:
        if run.job in names:
            for place, value in enumerate(_hours(run, since, until)):
                hours[names[run.job]][place] += value
    found = []
    for each, (whole, lost) in hours.items():
        mine = members[each]
        began = [
            job.started - job.submitted
            for job in mine
            if job.started is not None and since <= job.started <= until
        ]
        waiting = sum(job.started is None and job.ended is None for job in mine)
        mean, median, high = _figures(began)
        found.append(Waits(each, len(mine), waiting, mean, median, high, whole, lost))
    return tuple(sorted(found, key=lambda group: (-group.gpu_hours, group.name)))


def _figures(waits: list[float]) -> tuple[float | None, float | None, float | None]:
    """Mean, median and what nine out of ten do not exceed."""
    if not waits:
        return None, None, None
    return float(np.mean(waits)), float(np.median(waits)), float(np.percentile(waits, 90))


def _by_size(groups: tuple[Waits, ...]) -> tuple[Waits, ...]:
    """The smallest first."""
    return tuple(sorted(groups, key=lambda each: SIZE_NAMES.index(each.name)))


def size_name(gpus: float) -> str:
    """The class of jobs that ask for so many GPUs: one of `SIZE_NAMES`."""
    return next((name for most, name in SIZES if gpus <= most), LARGER)


def _longest(
    jobs: Sequence[Asked],
    busy: Steps,
    since: float,
    until: float,
    gpus: int,
) -> tuple[Waited, ...]:
    def wait(job: Asked) -> float:
        end = job.started if job.started is not None else job.ended
        return (until if end is None else end) - job.submitted

    waited = [job for job in jobs if job.wants and (job.started is None or job.started >= since)]
    waited.sort(key=lambda job: (-wait(job), job.job))
    return tuple(
        Waited(
            job.job,
            job.name,
            job.user,
            job.gpus,
            wait(job),
            job.started is None and job.ended is None,
            _taken(job, wait(job), busy, since, gpus),
        )
        for job in waited[:LONGEST]
        if wait(job) > 0
    )


def _taken(job: Asked, wait: float, busy: Steps, since: float, gpus: int) -> str:
    """What can be told afterwards: for how much of its wait there was no room for it."""
    begin, end = max(job.submitted, since), job.submitted + wait
    moments = np.unique(np.clip(np.append(busy.times, (begin, end)), begin, end))
    widths = np.diff(moments)
    if not len(widths):
        return ""
    full = busy.at(moments[:-1]) + job.gpus > gpus
    share = float((full * widths).sum() / widths.sum())
    few = "no GPU was" if job.gpus <= 1 else f"fewer than {job.gpus:g} GPUs were"
    return f"{few} free for {share:.0%} of that time"
