"""Speed over cores as a curve: noise taken out, read between points, and how wrong it may be.

Pure arithmetic on measured points. Assumes that more cores do not make a job slower; by how much a
measurement contradicts that is reported, not hidden.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from statistics import median

Points = Mapping[int, float]


def monotone(speeds: Sequence[float]) -> list[float]:
    """The nearest speeds that never fall: neighbours that do share their mean."""
    blocks: list[tuple[float, int]] = []
    for speed in speeds:
        mean, size = speed, 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean = (before * count + mean * size) / (count + size)
            size += count
        blocks.append((mean, size))
    return [mean for mean, size in blocks for _ in range(size)]


def smoothed(points: Points) -> dict[int, float]:
    """The points in rising order of cores, with speeds that never fall."""
    cores = sorted(points)
    return dict(zip(cores, monotone([points[each] for each in cores]), strict=True))


def drop(points: Points) -> float:
    """The largest fall from a point to one with more cores, as a share of the former."""
    deepest, best = 0.0, 0.0
    for cores in sorted(points):
        best = max(best, points[cores])
        deepest = max(deepest, 1 - points[cores] / best)
    return deepest


def between(points: Points, cores: float) -> float:
    """The speed on the line between the two nearest points; flat beyond the ends."""
    known = sorted(points)
    place = bisect_left(known, cores)
    if place == 0:
        return points[known[0]]
    if place == len(known):
        return points[known[-1]]
    left, right = known[place - 1], known[place]
    share = (cores - left) / (right - left)
    return points[left] + (points[right] - points[left]) * share


def left_out(points: Points) -> list[float]:
    """For every inner point, how wrong the line between its neighbours would have been."""
    inner = sorted(points)[1:-1]
    without = ({c: s for c, s in points.items() if c != cores} for cores in inner)
    return [
        abs(between(rest, cores) / points[cores] - 1)
        for cores, rest in zip(inner, without, strict=True)
    ]


def expected_error(points: Points, noise: float) -> float:
    """The relative error to expect between the points: of the lines, and of the measurements.

    Leaving a point out makes an interval twice as wide. The error of a line grows with the square
    of its length, so a quarter of it is left; what is measured adds its own noise.
    """
    bend = left_out(smoothed(points))
    lines = median(bend) / 4 if bend else 0.0
    return float((lines**2 + noise**2) ** 0.5)
