"""How good earlier estimates were, and ranges made as wide as that says they must be.

The spread of possible futures is what beliefs about lengths say, and these may be too sure or not
sure enough. What came of earlier estimates tells by how much: ranges are stretched or narrowed,
each side on its own, until they would have held as often as they promise.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dovetail.model.live import Range

REMEMBERED = 60
"""Outcomes: enough for what lies beyond nine tenths, and soon forgotten if beliefs improve."""

ENOUGH = 10
"""Outcomes before their word counts for more than the guess."""

GUESS = 1.25
"""How much too narrow ranges are taken to be before anything is known."""

FLOOR = 60.0
"""Seconds that make no difference: errors count in proportion beyond them."""

THIN = 0.1
LIMITS = (0.25, 30.0)


@dataclass
class Calibration:
    """The outcomes of estimates, in units of the half of the range they missed to."""

    chance: float = 0.8
    above: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    below: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    #: was the stretched range right?
    hits: deque[bool] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    errors: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def learn(self, raw: Range, came: float) -> None:
        """An estimate came true after so many seconds; `raw` is it before it was stretched."""
        if raw.low is None or raw.middle is None or raw.high is None:
            return
        told = self.stretched(raw)
        assert told.low is not None and told.high is not None
        self.hits.append(told.low <= came <= told.high)
        self.errors.append(abs(came - raw.middle))
        off = _scale(came) - _scale(raw.middle)
        self.above.append(off / _width(raw.middle, raw.high))
        self.below.append(-off / _width(raw.low, raw.middle))

    def stretched(self, raw: Range) -> Range:
        """The range that holds as often as it promises."""
        if raw.low is None or raw.middle is None or raw.high is None or raw.high == 0:
            return raw
        middle = _scale(raw.middle)
        low = middle - self._factor(self.below) * _width(raw.low, raw.middle)
        high = middle + self._factor(self.above) * _width(raw.middle, raw.high)
        return Range(_back(low), raw.middle, _back(high))

    def _factor(self, scores: Iterable[float]) -> float:
        known = sorted(scores)
        if len(known) < ENOUGH:
            return GUESS
        level = (1 + self.chance) / 2
        found = known[min(len(known) - 1, math.ceil(level * len(known)) - 1)]
        return min(max(found, LIMITS[0]), LIMITS[1])

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
        names = ("above", "below", "hits", "errors")
        return {name: list(getattr(self, name)) for name in names}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `snapshot` gave."""
        for name, values in state.items():
            setattr(self, name, deque(values, REMEMBERED))


def _scale(seconds: float) -> float:
    return math.log(seconds + FLOOR)


def _back(value: float) -> float:
    return max(0.0, math.exp(value) - FLOOR)


def _width(low: float, high: float) -> float:
    return max(_scale(high) - _scale(low), THIN)
