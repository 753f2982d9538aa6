"""The plots of a what-if: who ends sooner, who later, by how much, and how the machines were used.

Figures are plain dicts, drawn by the script in the page. Knows neither the replays nor HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np

from dovetail.model.what_if import SAME, Comparison, Outcome, Shift
from dovetail.report import words
from dovetail.report.axes import axis, figure, signed, signed_axis, time_axis, unit_of
from dovetail.report.comparing import bands
from dovetail.report.drawing import Plot, Series, digits

SHOWN = 12
"""Users in a plot: half of them from each end of the list if there are more."""

SOONER, LATER = "var(--series-2)", "var(--series-1)"
MARKS = {
    "sooner": (SOONER, "triangle-down"),
    "later": (LATER, "triangle-up"),
    "the same": ("var(--series-6)", "circle"),
}
SHARES = (10, 25, 50, 75, 90, 95, 99, 100)

Values = Callable[[Outcome], Sequence[float]]


def compared(told: Comparison) -> tuple[Series, Series]:
    """The two replays as they are drawn."""
    return Series(told.before.label, 0), Series(told.after.label, 1)


def plots(told: Comparison) -> list[Plot]:
    """Every plot that has something to show."""
    made = [
        delays(told),
        pairs(told),
        spread(told, "jct", "Completion times", "done within a time after submission", _jcts),
        spread(told, "waits", "Waits", "that waited no longer than a time", _waits),
        by_name(told, "users", "Completion by user", _ends_of(told.users)),
        by_name(told, "sizes", "Completion by GPUs asked for", told.sizes),
        over_time(told, "use", "GPUs in use", "GPUs", lambda each: each.busy),
        over_time(told, "queue", "Waiting jobs", "jobs", lambda each: each.queue),
    ]
    return [plot for plot in made if plot is not None]


def delays(told: Comparison) -> Plot | None:
    """All jobs side by side, from the one that gains most to the one that loses most."""
    if not told.delays:
        return None
    heights = [signed(each) for each in told.delays]
    colours = [SOONER if each < 0 else LATER for each in told.delays]
    bars = {
        "type": "bar",
        "x": list(range(len(heights))),
        "y": digits(np.asarray(heights)),
        "text": [words.later(each) for each in told.delays],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"color": colours},
    }
    ends = told.delays[0], told.delays[-1]
    said = f"Half of the jobs end {words.later(told.delays[len(heights) // 2])} or better."
    total = max(sum(told.changes), 1)
    return Plot(
        "delays",
        "Who ends sooner, who later",
        "All jobs from the largest gain to the largest loss: how much later each ends, and, below "
        "the line, how much sooner. The scale is logarithmic both ways.",
        f"From {words.later(ends[0])} to {words.later(ends[1])}. {said}",
        figure(
            [bars],
            axis("jobs, in the order of their gain", ticksuffix=" %", range=[-1, 101]),
            signed_axis("", *ends),
            bargap=0.0,
            hovermode="x",
        ),
        ("ends", "jobs", "share"),
        [
            (name, words.count(jobs), words.percent(jobs / total))
            for name, jobs in zip(bands(), told.changes, strict=True)
        ],
    )


def pairs(told: Comparison) -> Plot | None:
    """Single jobs, before and after."""
    if not told.pairs:
        return None
    every = [max(each, 1.0) for pair in told.pairs for each in pair]
    low, high = min(every), max(every)
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": [low, high],
        "y": [low, high],
        "line": {"color": "var(--quiet)", "width": 1, "dash": "dot"},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    groups: dict[str, list[tuple[float, float]]] = {name: [] for name in MARKS}
    for before, after in told.pairs:
        by = after - before
        name = "the same" if abs(by) <= SAME else "later" if by > 0 else "sooner"
        groups[name].append((before, after))
    data = [_dots(groups[name], *MARKS[name]) for name in reversed(MARKS)]
    counted = ", ".join(f"{len(each):,} {name}" for name, each in groups.items())
    return Plot(
        "pairs",
        "Job by job",
        "One mark a job, evenly chosen: how long it took from submission to end as it was, and "
        "upwards how long instead. On the line nothing changes; ▼ below it ends sooner, ▲ later.",
        f"Completion times of {len(told.pairs):,} jobs before and after: {counted}.",
        figure(
            [line, *data],
            time_axis("as it was", low, high),
            time_axis("instead", low, high),
            height=460,
            hovermode="closest",
        ),
        ("jobs", "how many", "mean as it was", "mean instead"),
        [(name, words.count(len(each)), *_means(each)) for name, each in groups.items()],
    )


def _dots(chosen: Sequence[tuple[float, float]], colour: str, symbol: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [max(before, 1.0) for before, _ in chosen],
        "y": [max(after, 1.0) for _, after in chosen],
        "text": [f"{words.duration(a)}, instead {words.duration(b)}" for a, b in chosen],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"color": colour, "symbol": symbol, "size": 6, "opacity": 0.65},
        "showlegend": False,
    }


def _means(chosen: Sequence[tuple[float, float]]) -> tuple[str, str]:
    if not chosen:
        return words.NOTHING, words.NOTHING
    before, after = np.asarray(chosen).mean(axis=0).tolist()
    return words.duration(before), words.duration(after)


def _jcts(each: Outcome) -> Sequence[float]:
    return each.jcts


def _waits(each: Outcome) -> Sequence[float]:
    return each.waits


def spread(told: Comparison, key: str, title: str, about: str, values: Values) -> Plot | None:
    """Cumulative curves of both."""
    known = [(s, values(o)) for s, o in zip(compared(told), _both(told), strict=True) if values(o)]
    if not known:
        return None
    low = min(max(each[0], 1.0) for _, each in known)
    high = max(max(each[-1], 1.0) for _, each in known)
    rows = [
        (series.label, *(words.duration(each[share]) for share in SHARES)) for series, each in known
    ]
    halves = "; ".join(f"{series.label} {words.duration(each[50])}" for series, each in known)
    return Plot(
        key,
        title,
        f"Share of jobs {about}. Further left is better; the time axis is logarithmic, and what "
        "took under a second is drawn at one.",
        f"{title}. The middle: {halves}.",
        figure(
            [_curve(series, each) for series, each in known],
            time_axis("", low, high),
            axis("jobs", range=[0, 101], ticksuffix=" %"),
            hovermode="closest",
        ),
        ("", *(f"{share} % of jobs" for share in SHARES[:-1]), "all jobs"),
        rows,
    )


def _curve(series: Series, values: Sequence[float]) -> dict[str, Any]:
    return series.trace(
        type="scatter",
        mode="lines",
        x=[max(each, 1.0) for each in values],
        y=list(range(len(values))),
        text=[words.duration(each) for each in values],
        hovertemplate="%{y} % within %{text}",
        line={"color": series.colour, "dash": series.dash, "width": 2.2},
    )


def by_name(told: Comparison, key: str, title: str, shifts: Sequence[Shift]) -> Plot | None:
    """Mean completion times side by side."""
    if len(shifts) < 2:
        return None
    unit, size = unit_of(max(max(each.before, each.after) for each in shifts))
    names = [escape(each.name) for each in shifts]
    data = [
        series.trace(
            type="bar",
            orientation="h",
            y=names,
            x=[time / size for time in times],
            text=[words.duration(time) for time in times],
            textposition="none",
            hovertemplate="%{text}",
        )
        for series, times in zip(
            compared(told),
            ([each.before for each in shifts], [each.after for each in shifts]),
            strict=True,
        )
    ]
    y = {"automargin": True, "autorange": "reversed", "showgrid": False, "type": "category"}
    said = "; ".join(
        f"{each.name} {words.duration(each.before)}, instead {words.duration(each.after)}"
        for each in shifts
    )
    return Plot(
        key,
        title,
        "Mean time from submission to end.",
        f"{title}: {said}.",
        figure(
            data,
            axis(f"mean completion, {unit}"),
            y,
            height=110 + 32 * len(shifts),
            barmode="group",
            bargap=0.3,
            hovermode="y unified",
        ),
        ("", "jobs", "as it was", "instead", "change"),
        [shift_row(each) for each in shifts],
    )


def shift_row(each: Shift) -> tuple[str, str, str, str, str]:
    """Jobs, mean completion as it was and instead, and the difference."""
    times = words.duration(each.before), words.duration(each.after)
    return (each.name, words.count(each.jobs), *times, words.later(each.after - each.before))


def _ends_of(shifts: Sequence[Shift]) -> Sequence[Shift]:
    """Who gains most and who loses most, if all are too many."""
    half = SHOWN // 2
    return shifts if len(shifts) <= SHOWN else [*shifts[:half], *shifts[-half:]]


def over_time(told: Comparison, key: str, title: str, what: str, values: Values) -> Plot | None:
    """Both over the same time."""
    series, points = compared(told), [list(values(each)) for each in _both(told)]
    if not all(points):
        return None
    unit, size = unit_of(told.step * len(points[0]))
    data = [
        each.trace(
            type="scatter",
            mode="lines",
            x=digits(np.arange(len(heights), dtype=np.float64) * told.step / size),
            y=digits(np.asarray(heights)),
            hovertemplate="%{y:,.4~g}",
            line={"color": each.colour, "dash": each.dash, "shape": "hv", "width": 1.8},
        )
        for each, heights in zip(series, points, strict=True)
    ]
    means = [float(np.mean(each)) for each in points]
    rows = [
        (each.label, words.ratio(mean), words.count(max(heights)))
        for each, mean, heights in zip(series, means, points, strict=True)
    ]
    said = "; ".join(f"{label} {mean}, at most {most}" for label, mean, most in rows)
    return Plot(
        key,
        title,
        "At 240 moments from the first submission to the last end of either.",
        f"{title} over time, on average: {said}.",
        figure(
            data,
            axis(f"{unit} since the first submission"),
            axis(what, rangemode="tozero", tickformat=",~r"),
            height=280,
            hovermode="x unified",
        ),
        ("", "average", "most"),
        rows,
    )


def _both(told: Comparison) -> tuple[Outcome, Outcome]:
    return told.before, told.after
