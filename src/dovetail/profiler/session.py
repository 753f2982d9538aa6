"""Measures what a search asks for, one point after the other, until it is content or stopped."""

from __future__ import annotations

from collections.abc import Callable

from dovetail.profiler.bisection import Bisection
from dovetail.profiler.measurement import Measurement


def explore(
    search: Bisection,
    measure: Callable[[int], Measurement],
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[list[Measurement], bool]:
    """The measurements, and whether somebody stopped us: what was measured is kept."""
    found: list[Measurement] = []
    try:
        while (cores := search.wanted()) is not None:
            found.append(measure(cores))
            search.add(cores, found[-1].speed)
            progress(len(found))
    except KeyboardInterrupt:
        return found, True
    return found, False
