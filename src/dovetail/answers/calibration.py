"""How good earlier estimates were, and ranges made as wide as that says they must be.

The spread of possible futures is what beliefs about lengths say, and these may be too sure or not
sure enough. What came of earlier estimates tells by how much: a range goes from where one of ten of
them came true to where nine of ten did, counted in halves of what each had said.

What has not come true yet tells something, too: those who still wait have waited so long already.
Without them only the early ones would count, and ranges would end too soon.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, NamedTuple

from dovetail.model.live import Range

REMEMBERED = 60
"""Outcomes: enough for what lies beyond nine tenths, and soon forgotten if beliefs improve."""

ENOUGH = 10
"""Outcomes that count for as much as the guess, and before which nothing is said of them."""

GUESS = 1.5
"""How much too narrow ranges are taken to be before anything is known."""

FLOOR = 60.0
"""Seconds that make no difference: errors count in proportion beyond them."""

THIN = 0.1
KEPT = ("scores", "hits", "errors")


class Open(NamedTuple):
    """An estimate that has not come true, and the seconds since it was made."""

    raw: Range
    since: float


class _Mark(NamedTuple):
    """Where an estimate came true, in halves of its range; or how far it is, if it has not."""

    score: float
    came: bool


@dataclass
class Calibration:
    """The outcomes of estimates, in units of the half of the range they missed to."""

    chance: float = 0.8
    #: below 0: sooner than the middle
    scores: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    #: was the range that was told right?
    hits: deque[bool] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    errors: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def learn(self, raw: Range, told: Range, came: float) -> None:
        """An estimate came true after so many seconds; `raw` is it before it was stretched."""
        score = _score(raw, came)
        if score is None or raw.middle is None or told.low is None or told.high is None:
            return
        self.scores.append(score)
        self.hits.append(told.low <= came <= told.high)
        self.errors.append(abs(came - raw.middle))

    def stretched(self, raw: Range, pending: Iterable[Open] = ()) -> Range:
        """The range that holds as often as it promises; pending are those that were told before."""
        if raw.low is None or raw.middle is None or raw.high is None or raw.high == 0:
            return raw
        marks = [_Mark(score, True) for score in (*self.scores, *self._guess())]
        for each in pending:
            if (score := _score(each.raw, each.since)) is not None:
                marks.append(_Mark(score, False))
        least, most = _levels(sorted(marks), ((1 - self.chance) / 2, (1 + self.chance) / 2))
        return Range(_at(raw, min(least, 0.0)), raw.middle, _at(raw, max(most, 0.0)))

    def _guess(self) -> Iterable[float]:
        """Outcomes made up: they count for less the more there are."""
        spread = GUESS / NormalDist().inv_cdf((1 + self.chance) / 2)
        normal = NormalDist(0.0, spread)
        return (normal.inv_cdf((number + 0.5) / ENOUGH) for number in range(ENOUGH))

    @property
    def held(self) -> float | None:
        """The share of ranges that held; None: too few to say."""
        return sum(self.hits) / len(self.hits) if len(self.hits) >= ENOUGH else None

    @property
    def error(self) -> float | None:
        """The median error of the middle, in seconds."""
        known = sorted(self.errors)
        return known[len(known) // 2] if len(known) >= ENOUGH else None

    def snapshot(self) -> dict[str, Any]:
        """As plain values."""
        return {name: list(getattr(self, name)) for name in KEPT}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `snapshot` gave; what an older version kept otherwise is learned anew."""
        for name in KEPT if KEPT[0] in state else ():
            setattr(self, name, deque(state[name], REMEMBERED))


def _levels(marks: Sequence[_Mark], wanted: Sequence[float]) -> list[float]:
    """Scores below which these shares come true (Kaplan and Meier: who is open may come late)."""
    found: list[float] = []
    missing, left = 1.0, len(marks)
    for score, came in marks:
        if came:
            missing *= 1.0 - 1.0 / left
            while len(found) < len(wanted) and 1.0 - missing >= wanted[len(found)] - 1e-9:
                found.append(score)
        left -= 1
    return found + [marks[-1].score] * (len(wanted) - len(found))


def _score(raw: Range, came: float) -> float | None:
    if raw.low is None or raw.middle is None or raw.high is None:
        return None
    off = _scale(came) - _scale(raw.middle)
    return off / (_width(raw.middle, raw.high) if off > 0 else _width(raw.low, raw.middle))


def _at(raw: Range, score: float) -> float:
    assert raw.low is not None and raw.middle is not None and raw.high is not None
    width = _width(raw.middle, raw.high) if score > 0 else _width(raw.low, raw.middle)
    return _back(_scale(raw.middle) + score * width)


def _scale(seconds: float) -> float:
    return math.log(seconds + FLOOR)


def _back(value: float) -> float:
    return max(0.0, math.exp(min(value, 40.0)) - FLOOR)


def _width(low: float, high: float) -> float:
    return max(_scale(high) - _scale(low), THIN)
