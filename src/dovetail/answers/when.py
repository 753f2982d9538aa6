"""When jobs start and end: the present driven on many times, each with other possible lengths.

The answer is a range with a probability. It rests on the predictor's error bars, on the policy
itself, and on more jobs coming as they came of late.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import dataclass, field
from random import Random
from time import monotonic
from typing import Any

from dovetail.answers.arrivals import Arrivals
from dovetail.answers.foresight import Foresight, fork
from dovetail.answers.lengths import Draws
from dovetail.core.collecting import undisturbed
from dovetail.core.scheduler import Scheduler
from dovetail.model.live import Estimate, Range

NEVER = float("inf")
CHANCE = 0.8
MOST_STEPS = 20_000
NOBODY: Mapping[int, float] = {}
NOTHING = Arrivals()


@dataclass(frozen=True)
class Effort:
    """How much is put into an answer."""

    runs: int = 40
    #: a future and its opposite
    least: int = 2
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
    leaving: Mapping[int, float] = NOBODY,
    arrivals: Arrivals = NOTHING,
    effort: Effort | None = None,
    seed: int = 0,
) -> dict[int, Estimate]:
    """Estimates for these jobs, which have not ended.

    `limits` end jobs after so many seconds; by `leaving` those who were asked to stop are gone.
    """
    spent, random = effort or Effort(), Random(seed)
    samples = {job: Samples() for job in jobs}
    gone = {job.id: leaving[job.id] for job in image["jobs"] if job.id in leaving}
    with undisturbed():
        ready = [fork(make, image)]
        # Forks learn from what becomes of jobs in them, and what might be must not.
        beliefs = copy(ready[0].predictor)
        beliefs.restore(image["predictor"])
        draws = Draws(beliefs, now, random, told, limits)
        until, runs = monotonic() + spent.budget, 0
        while runs < spent.runs and (runs < spent.least or monotonic() < until):
            draws.again()
            ahead = Foresight(
                ready.pop() if ready else fork(make, image),
                now,
                draws,
                wake_at,
                leaving={job: now + (at - now) * random.random() for job, at in gone.items()},
                coming=arrivals.again(now, random),
            )
            _run(ahead, samples, now)
            ahead.scheduler.dissolve()
            # Nothing of it is left when the next one is made.
            del ahead
            runs += 1
    return {job: _estimate(found, runs) for job, found in samples.items()}


def _run(ahead: Foresight, samples: dict[int, Samples], now: float) -> None:
    """One possible future, until all that was asked for is known."""
    missing = set(samples)
    for _ in range(MOST_STEPS):
        if not missing or not ahead.advance():
            break
        missing.difference_update([job.id for job, _ in ahead.scheduler.ended])
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
