"""Which core counts to measure: both ends first, then the middle of the steepest open interval.

An interval is open while its ends differ by more than a threshold and there is a count between
them. A curve that saturates so costs few points: its flat part is settled by two. Knows nothing of
how a speed is measured, nor of what it is used for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from dovetail.model.errors import UserError

THRESHOLD = 0.10
POINTS = 8


class Bisection:
    """A search that is asked what it wants to know next and is told what was found."""

    def __init__(
        self, low: int, high: int, threshold: float = THRESHOLD, points: int = POINTS
    ) -> None:
        if not 1 <= low <= high:
            raise UserError(f"cores from {low} to {high} are no range to measure")
        if points < 2:
            raise UserError("a curve needs at least 2 points")
        self.low, self.high = low, high
        self.threshold, self.points = threshold, points
        self.speeds: dict[int, float] = {}

    def wanted(self) -> int | None:
        """The core count to measure next, or nothing: every interval is settled, or enough is."""
        # The upper end first: it shows the most, should somebody lose patience.
        for end in (self.high, self.low):
            if end not in self.speeds:
                return end
        if len(self.speeds) >= self.points:
            return None
        ahead = self.open_intervals()
        if not ahead:
            return None
        left, right = max(ahead, key=lambda each: (self._rise(*each), each[1] - each[0]))
        return (left + right) // 2

    def add(self, cores: int, speed: float) -> None:
        """A speed was measured."""
        self.speeds[cores] = speed

    def open_intervals(self) -> list[tuple[int, int]]:
        """Neighbouring points that differ too much to be joined by a line."""
        return [
            (left, right)
            for left, right in pairwise(sorted(self.speeds))
            if right - left > 1 and self._gap(left, right) > self.threshold
        ]

    def _gap(self, left: int, right: int) -> float:
        """By how much the ends differ, relative to the larger."""
        return self._rise(left, right) / max(self.speeds[left], self.speeds[right])

    def _rise(self, left: int, right: int) -> float:
        return abs(self.speeds[right] - self.speeds[left])


def bisect(
    measure: Callable[[int], float],
    low: int,
    high: int,
    threshold: float = THRESHOLD,
    points: int = POINTS,
) -> Mapping[int, float]:
    """The speed at as few core counts as it takes, at most `points`."""
    search = Bisection(low, high, threshold, points)
    while (cores := search.wanted()) is not None:
        search.add(cores, measure(cores))
    return dict(sorted(search.speeds.items()))
