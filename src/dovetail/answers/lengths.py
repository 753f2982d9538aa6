"""How long jobs might take: drawn from what the predictor believes, given how long they ran.

Beliefs that are wrong are wrong together: in a possible world a user's jobs all run longer, and
everybody's do a little. So draws of one world share a part of their luck.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import pairwise
from random import Random

from dovetail.core.protocols import Predictor
from dovetail.model.job import Job

LEVELS = tuple(step / 20 for step in range(1, 20))
"""Where the believed distribution is looked at; between them it is taken as straight."""

SHARED = (0.15, 0.15)
"""Of the variance of what is drawn: what all jobs share, and what those of a user share."""

SURE = 0.1
"""Relative error of what is left, where a job's own steps tell."""


class Draws:
    """One possible length for each job, the same whenever it is asked for."""

    def __init__(
        self,
        predictor: Predictor,
        now: float,
        random: Random,
        told: Callable[[int], bool],
        limits: Mapping[int, float] | None = None,
    ) -> None:
        self._predictor = predictor
        self._now = now
        self._random = random
        #: did the job itself say how far it is?
        self._told = told
        #: seconds after which jobs are ended
        self._limits = limits or {}
        self._curves: dict[int, list[float]] = {}
        self._drawn: dict[int, float] = {}
        #: luck of everybody, and by user
        self._luck: dict[str | None, float] = {}
        self._mirrored = True

    def again(self) -> None:
        """Another possible world; every second one has the opposite luck of the one before.

        So that the middle of a few worlds is not that of a few lots.
        """
        self._drawn, self._mirrored = {}, not self._mirrored
        self._luck = {who: -lot for who, lot in self._luck.items()} if self._mirrored else {}

    def __call__(self, job: Job) -> float:
        """The work of a job in seconds at rate 1."""
        drawn = self._drawn.get(job.id)
        if drawn is None:
            drawn = min(self._draw(job), self._limits.get(job.id, math.inf))
            self._drawn[job.id] = drawn
        return drawn

    def _draw(self, job: Job) -> float:
        done = job.worked(self._now)
        if self._told(job.id):
            return done + max(0.0, job.expected - done) * max(0.0, self._random.gauss(1.0, SURE))
        curve = self._curves.get(job.id)
        if curve is None:
            curve = self._curves[job.id] = self._predictor.quantiles(job.spec, LEVELS)
        if curve[0] == curve[-1] and done < curve[0]:
            # Somebody is certain.
            return curve[0]
        low = _level(curve, done) if done > 0 else 0.0
        at = low + (1.0 - low) * self._chance(job)
        return max(done, _length(curve, at, done))

    def _chance(self, job: Job) -> float:
        """Between 0 and 1, each value as likely; jobs of a world have some of it in common."""
        everybody, user = SHARED
        own = self._random.gauss(0.0, math.sqrt(1.0 - everybody - user))
        mine = job.spec.user or job.spec.tenant
        shared = math.sqrt(everybody) * self._lot(None) + math.sqrt(user) * self._lot(mine)
        return (1.0 + math.erf((own + shared) / math.sqrt(2.0))) / 2.0

    def _lot(self, who: str | None) -> float:
        if who not in self._luck:
            self._luck[who] = self._random.gauss(0.0, 1.0)
        return self._luck[who]


def believed(predictor: Predictor, job: Job, now: float) -> float:
    """The work of a job as it is believed; one that ran past that runs on as such jobs do."""
    done = job.worked(now)
    if job.expected > done:
        return job.expected
    curve = predictor.quantiles(job.spec, LEVELS)
    return max(done, _length(curve, (1.0 + _level(curve, done)) / 2, done))


def _level(curve: list[float], done: float) -> float:
    """The probability of a length up to this one."""
    place = bisect_left(curve, done)
    if place == 0:
        return LEVELS[0] * done / curve[0] if curve[0] > 0 else 0.0
    if place == len(curve):
        return LEVELS[-1]
    (a, b), (low, high) = (curve[place - 1], curve[place]), (LEVELS[place - 1], LEVELS[place])
    return low + (high - low) * ((done - a) / (b - a) if b > a else 0.0)


def _length(curve: list[float], at: float, done: float) -> float:
    """The length that is not exceeded with this probability."""
    if at <= LEVELS[0]:
        return curve[0] * at / LEVELS[0]
    for place, (low, high) in enumerate(pairwise(LEVELS)):
        if at <= high:
            a, b = curve[place], curve[place + 1]
            return a + (b - a) * (at - low) / (high - low)
    # Beyond what is known: what lasted long lasts on, up to as long again.
    over = (at - LEVELS[-1]) / (1.0 - LEVELS[-1])
    return max(curve[-1], done) * (1.0 + over)
