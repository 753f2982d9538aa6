"""A sensitivity profile: how fast a job runs with so many cores and so much memory per GPU.

A surface is measured on a grid and interpolated between its points in both dimensions. A profile
is one surface per GPU type and the share at which its speed counts as 1. It knows no job and no
cluster; allocators and speed models read it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite

from dovetail.model.errors import UserError


@dataclass(frozen=True, slots=True)
class Surface:
    """Speeds on a grid: one row per number of cores, one column per amount of memory."""

    #: per GPU, ascending
    cores: tuple[float, ...]
    #: GiB per GPU, ascending
    memory: tuple[float, ...]
    speed: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        _ascending(self.cores, "cores")
        _ascending(self.memory, "memory")
        if len(self.speed) != len(self.cores):
            raise UserError(f"{len(self.speed)} rows of speed for {len(self.cores)} core levels")
        for row in self.speed:
            if len(row) != len(self.memory):
                raise UserError(f"a row of {len(row)} speeds for {len(self.memory)} memory levels")
            if not all(isfinite(value) and value > 0 for value in row):
                raise UserError("a speed must be a number above 0")

    def at(self, cores: float, memory: float) -> float:
        """Bilinear between grid points and flat beyond them, but no cores make no progress."""
        left, across = _between(self.cores, cores)
        below, up = _between(self.memory, memory)
        low, high = self.speed[left], self.speed[min(left + 1, len(self.cores) - 1)]
        column = min(below + 1, len(self.memory) - 1)
        first = low[below] + (low[column] - low[below]) * up
        second = high[below] + (high[column] - high[below]) * up
        value = first + (second - first) * across
        return value * cores / self.cores[0] if cores < self.cores[0] else value

    @property
    def best(self) -> float:
        """The highest speed anywhere."""
        return max(max(row) for row in self.speed)

    def scaled(self, factor: float) -> Surface:
        """The same shape, every speed times a factor."""
        rows = tuple(tuple(value * factor for value in row) for row in self.speed)
        return Surface(self.cores, self.memory, rows)


@dataclass(frozen=True, slots=True)
class Profile:
    """The surfaces of one kind of job. `rate` is 1 at the reference share."""

    name: str
    surface: Surface
    #: cores and GiB per GPU at which the work of its jobs is counted
    reference: tuple[float, float]
    #: surfaces measured on other GPU types, in the unit of `surface`
    types: Mapping[str, Surface] = field(default_factory=dict)
    #: image, language, speech …
    task: str = ""
    #: seconds of one training step at the reference share; 0: not known
    step: float = 0.0
    #: where the figures come from
    source: str = ""

    def __post_init__(self) -> None:
        if not (self.reference[0] > 0 and self.reference[1] > 0):
            raise UserError(f"{self.name}: the reference share must be above 0 cores and 0 GiB")

    def on(self, kind: str) -> Surface:
        """Speeds on a GPU type, relative to the reference share: the plain ones if not measured."""
        unit = self.surface.at(*self.reference)
        return self.types.get(kind, self.surface).scaled(1 / unit)

    def rate(self, cores: float, memory: float, kind: str = "") -> float:
        """Speed with that many cores and GiB per GPU, 1 at the reference share."""
        surface = self.types.get(kind, self.surface)
        return surface.at(cores, memory) / self.surface.at(*self.reference)


def _ascending(levels: Sequence[float], what: str) -> None:
    if not levels:
        raise UserError(f"a profile needs at least one level of {what}")
    if not all(isfinite(level) and level > 0 for level in levels):
        raise UserError(f"{what}: levels must be numbers above 0")
    if any(high <= low for low, high in pairwise(levels)):
        raise UserError(f"{what}: levels must rise from first to last")


def _between(levels: tuple[float, ...], value: float) -> tuple[int, float]:
    """The index of the level at or below a value and how far it is on the way to the next."""
    index = bisect_right(levels, value) - 1
    if index < 0:
        return 0, 0.0
    if index >= len(levels) - 1:
        return len(levels) - 1, 0.0
    return index, (value - levels[index]) / (levels[index + 1] - levels[index])
