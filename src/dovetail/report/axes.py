"""Axes of plots, and figures made of them: times that read well, whatever their size.

Knows neither what is drawn nor HTML.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import Any

from dovetail.report import words
from dovetail.report.drawing import Figure

ROUND = tuple(
    times * unit
    for unit, most in ((1, 60), (60, 60), (3600, 24), (86400, 1000))
    for times in (1, 2, 5, 10, 20, 30, 100, 300)
    if times < most
)
"""Seconds that read well on an axis: 1, 2, 5, 10, 20, 30 s, then as many minutes, hours, days."""


def time_axis(title: str, low: float, high: float) -> Figure:
    """A logarithmic axis from one round time to another, with at most seven labels."""
    first = max(bisect_right(ROUND, low) - 1, 0)
    last = max(min(bisect_left(ROUND, high), len(ROUND) - 1), first + 1)
    ticks = ROUND[first : last + 1 : -(-(last - first + 1) // 7)]
    ends = [math.log10(ROUND[first]), math.log10(max(ROUND[last], high))]
    labels = [words.duration(tick) for tick in ticks]
    return axis(title, type="log", range=ends, tickvals=ticks, ticktext=labels)


def unit_of(span: float) -> tuple[str, float]:
    """The unit in which a span of seconds reads best on an axis."""
    if span > 86400 * 4:
        return "days", 86400
    return ("hours", 3600) if span > 3600 * 3 else ("minutes", 60)


def axis(title: str, **fields: Any) -> dict[str, Any]:
    """A plotly axis with a title."""
    return {"title": {"text": title, "standoff": 12}, **fields}


def figure(data: list[dict[str, Any]], x: Figure, y: Figure, **layout: Any) -> Figure:
    """A plotly figure; colours of frame and grid are the page's business."""
    # Labels of the vertical axis may be long; those of the other are short and stay level.
    axes = {"xaxis": {"tickangle": 0, **x}, "yaxis": {"automargin": True, **y}}
    return {"data": data, "layout": {**axes, "height": 380, **layout}}


SIGNED = (600.0, 3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0, 70 * 86400.0, 700 * 86400.0)
"""Seconds sooner or later that are labelled."""


def signed(seconds: float) -> float:
    """Where so much sooner or later stands: about straight up to a minute, logarithmic beyond."""
    return math.copysign(math.log10(1 + abs(seconds) / 60), seconds)


def signed_axis(title: str, low: float, high: float) -> Figure:
    """An axis of times below and above zero, both logarithmic."""
    ends = [signed(min(low, -SIGNED[0])) * 1.08, signed(max(high, SIGNED[0])) * 1.08]
    marks = [-each for each in reversed(SIGNED)] + [0.0, *SIGNED]
    shown = [each for each in marks if ends[0] <= signed(each) <= ends[1]]
    labels = [words.later(each) for each in shown]
    return axis(title, range=ends, tickvals=list(map(signed, shown)), ticktext=labels)
