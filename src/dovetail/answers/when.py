"""When jobs start and end: the present driven on many times, each with other possible lengths.

The answer is a range with a probability. It rests on the predictor's error bars and on the policy
itself, and not on jobs that nobody has submitted yet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from random import Random
from time import monotonic
from typing import Any

from dovetail.answers.foresight import Foresight, fork
from dovetail.answers.lengths import Draws
from dovetail.core.scheduler import Scheduler
from dovetail.model.live import Estimate, Range

NEVER = float("inf")
CHANCE = 0.8
MOST_STEPS = 20_000


@dataclass(frozen=True)
class Effort:
    """How much is put into an answer."""

    runs: int = 40
    least: int = 5
    #: seconds; no further run is begun after them
    budget: float = 0.8


@dataclass
class Samples:
    """What came out for one job, in seconds from now."""

    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)


def when(
    image: dict[str, Any],
    make: Callable[[], Scheduler],
    now: float,
    jobs: Collection[int],
    *,
    wake_at: float | None = None,
    told: Callable[[int], bool] = lambda job: False,
    limits: Mapping[int, float] | None = None,
    effort: Effort | None = None,
    seed: int = 0,
) -> dict[int, Estimate]:
    """Estimates for these jobs, which have not ended; `limits` end jobs after so many seconds."""
    spent = effort or Effort()
    samples = {job: Samples() for job in jobs}
    draws = Draws(fork(make, image).predictor, now, Random(seed), told, limits)
    until, runs = monotonic() + spent.budget, 0
    while runs < spent.runs and (runs < spent.least or monotonic() < until):
        draws.again()
        _run(Foresight(fork(make, image), now, draws, wake_at), samples, now, draws)
        runs += 1
    return {job: _estimate(found, runs) for job, found in samples.items()}


def _run(ahead: Foresight, samples: dict[int, Samples], now: float, draws: Draws) -> None:
    """One possible future, until all that was asked for is known."""
    missing = set(samples)
    for _ in range(MOST_STEPS):
        missing -= ahead.ended.keys()
        if not missing or not ahead.advance():
            break
    for job, found in samples.items():
        start = ahead.started.get(job, NEVER)
        found.starts.append(start - now)
        end = ahead.ended.get(job, NEVER)
        found.ends.append(end - now)


def _estimate(found: Samples, runs: int) -> Estimate:
    return Estimate(_range(found.starts), _range(found.ends), CHANCE, runs)


def _range(values: list[float]) -> Range:
    """Low, middle and high; None where it cannot be told."""
    ordered = sorted(values)
    low, high = (1 - CHANCE) / 2, (1 + CHANCE) / 2
    return Range(*(_finite(_quantile(ordered, level)) for level in (low, 0.5, high)))


def _quantile(ordered: list[float], level: float) -> float:
    place = level * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    if ordered[above] == NEVER:
        return ordered[below] if place == below else NEVER
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _finite(value: float) -> float | None:
    return None if value == NEVER else max(0.0, value)
