"""A mean and how far to trust it: the t-interval over a few repetitions, without scipy.

For whole degrees of freedom Student's distribution has a closed form, a finite sum of powers of
cosines (Abramowitz and Stegun, 26.7.3 and 26.7.4), which is inverted by bisection. Knows numbers
only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple


class Interval(NamedTuple):
    """The mean of `size` values, and half the width of its 95 % interval (None from one value)."""

    mean: float
    half: float | None
    size: int


def interval(values: Sequence[float]) -> Interval | None:
    """The t-interval of the mean of `values`; None when there are none."""
    size = len(values)
    if not size:
        return None
    mean = math.fsum(values) / size
    if size == 1:
        return Interval(mean, None, 1)
    variance = math.fsum((value - mean) ** 2 for value in values) / (size - 1)
    return Interval(mean, t_quantile(size - 1) * math.sqrt(variance / size), size)


@lru_cache(maxsize=1024)
def t_quantile(freedom: int, confidence: float = 0.95) -> float:
    """The t for which |T| <= t with probability `confidence`, T with `freedom` degrees."""
    low, high = 0.0, math.pi / 2
    # In the angle the search is over a bounded range; 60 halvings reach the last bit.
    for _ in range(60):
        middle = (low + high) / 2
        below = _within(middle, freedom) < confidence
        low, high = (middle, high) if below else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _within(angle: float, freedom: int) -> float:
    """P(|T| <= t) where tan(angle) = t / sqrt(freedom)."""
    odd = freedom % 2
    cosine = math.cos(angle)
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for power in range(3 if odd else 2, freedom - 1, 2):
        term *= cosine * cosine * (power - 1) / power
        total += term
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total
