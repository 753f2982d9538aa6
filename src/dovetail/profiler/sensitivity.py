"""Measurements put together: a profile, what it cost against the full grid, how wrong it may be.

Pure; measuring is done in `running`, choosing the points in `bisection`, the memory axis in
`caching`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from statistics import mean, median

from dovetail.model.errors import UserError
from dovetail.model.profile import Profile, Surface
from dovetail.profiler.caching import Dataset, surface
from dovetail.profiler.curve import drop, expected_error, smoothed
from dovetail.profiler.measurement import Measurement

GRID_COLUMNS = 11
"""Memory sizes of the full grid: 0, 10, … 100 % of the dataset."""
MARGIN = 1.2
"""More than a job used, for what it is to have: work comes in bursts."""
NOTICED = 0.05
"""Smaller oddities are not worth a notice."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds spent on measuring, and what measuring everything would have taken."""

    points: int
    seconds: float
    grid_points: int

    @property
    def grid_seconds(self) -> float:
        """What the full grid would have taken at the same time per point."""
        return self.seconds / self.points * self.grid_points

    @property
    def share(self) -> float:
        """Spent over that of the grid."""
        return self.points / self.grid_points


@dataclass(frozen=True, slots=True)
class Findings:
    """A profile and what is to be said about it."""

    profile: Profile
    measured: tuple[Measurement, ...]
    gpus: int
    cost: Cost
    #: relative, to expect of a speed read off the profile along the cores
    error: float
    #: relative, the noise of one measurement
    noise: float
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """What is profiled, as far as measuring does not tell."""

    name: str
    #: over which the job runs; cores and memory of a profile are per GPU
    gpus: int = 1
    #: cores and GiB per GPU at which speed counts as 1
    reference: tuple[float, float] = (3.0, 62.5)
    #: GiB the job needs besides its data; `None`: what was seen
    working: float | None = None
    #: core counts from the least to the most asked for
    counts: int = 1


def compose(
    task: Task, measured: Sequence[Measurement], dataset: Dataset | None = None
) -> Findings:
    """What a few measurements along the cores say about all of the surface."""
    if not measured:
        raise UserError(f"{task.name}: nothing was measured")
    raw = {each.cores: each.speed for each in measured}
    working = task.working or max(each.memory for each in measured)
    absolute = surface(smoothed(raw), dataset, max(working, 0.001), task.gpus)
    absolute = _below(absolute, min(measured, key=lambda each: each.cores), task.gpus)
    unit = absolute.at(*task.reference)
    noise = median(each.noise for each in measured)
    profile = Profile(
        task.name,
        absolute.scaled(1 / unit),
        task.reference,
        step=1 / unit,
        source=_source(measured, task.gpus),
    )
    return Findings(
        profile,
        tuple(sorted(measured, key=lambda each: each.cores)),
        task.gpus,
        _cost(task, measured, dataset),
        expected_error(raw, noise),
        noise,
        tuple(_notices(raw, measured)),
    )


def _below(absolute: Surface, least: Measurement, gpus: int) -> Surface:
    """With a level below the fewest cores tried, where a part of those was all it used."""
    enough = ceil(least.used * MARGIN * 100) / 100
    if not least.content or enough >= least.cores:
        return absolute
    cores, rows = (enough / gpus, *absolute.cores), (absolute.speed[0], *absolute.speed)
    return Surface(cores, absolute.memory, rows)


def _cost(task: Task, measured: Sequence[Measurement], dataset: Dataset | None) -> Cost:
    columns = 1 if dataset is None else GRID_COLUMNS
    counts = max(task.counts, len(measured))
    return Cost(len(measured), sum(each.seconds for each in measured), counts * columns)


def _source(measured: Sequence[Measurement], gpus: int) -> str:
    counts = ", ".join(str(each) for each in sorted(point.cores for point in measured))
    seconds = mean(each.seconds for each in measured)
    where = "1 GPU" if gpus == 1 else f"{gpus} GPUs"
    return f"measured on {where} with {counts} cores, {seconds:.0f} s each"


def _notices(raw: dict[int, float], measured: Sequence[Measurement]) -> list[str]:
    oddities = {
        "With more cores it was up to {} slower; the profile is level there.": drop(raw),
        "Other programs used up to {} of the cores; repeat it on a quiet machine.": max(
            each.others for each in measured
        ),
        "The speed varied, by a standard error of up to {}; give more seconds.": max(
            each.noise for each in measured
        ),
    }
    return [
        said.format(f"{share * 100:.0f} %") for said, share in oddities.items() if share > NOTICED
    ]
