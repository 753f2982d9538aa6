"""The five plots of the report as plotly figures: plain dicts, drawn by the script in the page.

Each comes with a caption, a sentence for those who cannot see it and the figures as a table.
Nothing here imports plotly or knows HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from dovetail.metrics.columns import Floats, Sample
from dovetail.metrics.records import Run, Series
from dovetail.report import curves, measures, words
from dovetail.report.axes import axis, figure, time_axis, unit_of
from dovetail.report.drawing import Entry, Figure, Plot, digits

TENANTS = 12


def plots(drawn: Sequence[Entry], groups: measures.Groups) -> list[Plot]:
    """Every plot that has something to show."""
    made = [
        jct(drawn),
        over_time(drawn, QUEUE),
        over_time([each for each in drawn if each.run.capacity.milli_gpus], USE),
        tenants(drawn, groups),
        by_size(drawn),
    ]
    return [plot for plot in made if plot is not None]


def jct(drawn: Sequence[Entry]) -> Plot | None:
    """The distribution function of job completion times."""
    some = [entry for entry in drawn if len(entry.jobs)]
    if not some:
        return None
    shares = (25, 50, 75, 90, 95, 99, 100)
    found = {e.label: np.percentile(e.jobs.jct, shares).tolist() for e in some}
    fastest = min(float(entry.jobs.jct.min()) for entry in some)
    slowest = max(each[-1] for each in found.values())
    halves = "; ".join(f"{label} {words.duration(each[1])}" for label, each in found.items())
    return Plot(
        "jct",
        "Job completion times",
        "Share of jobs done within a time after submission. Further left is better; the time axis "
        "is logarithmic, and what took under a second is drawn at one.",
        f"Distribution of job completion times. Half of the jobs are done after: {halves}.",
        figure(
            [_jct_trace(entry) for entry in some],
            time_axis("time since submission", max(fastest, 1.0), slowest),
            axis("jobs done", range=[0, 101], ticksuffix=" %"),
            hovermode="closest",
        ),
        ("policy", *(f"{share} % of jobs" for share in shares[:-1]), "all jobs"),
        [(label, *map(words.duration, each)) for label, each in found.items()],
    )


def _jct_trace(entry: Entry) -> dict[str, Any]:
    curve = curves.distribution_function(np.maximum(entry.jobs.jct, 1.0))
    share = digits(curve.y * 100)
    return entry.trace(
        type="scatter",
        mode="lines",
        x=digits(curve.x),
        y=share,
        text=[words.duration(x) for x in curve.x.tolist()],
        hovertemplate="%{y:.1f} % of jobs within %{text}",
        line={"color": entry.colour, "dash": entry.dash, "shape": "hv", "width": 2.2},
    )


@dataclass(frozen=True, slots=True)
class Timeline:
    """A figure that changes over time."""

    key: str
    title: str
    caption: str
    values: Callable[[Run, Series], Floats]
    say: Callable[[float | None], str]
    axis: Figure
    hover: str


QUEUE = Timeline(
    "queue",
    "Waiting jobs",
    "Jobs in the queue over time, averaged within each step of the line.",
    lambda run, series: np.asarray(series.waiting, dtype=np.float64),
    words.count,
    axis("jobs waiting", rangemode="tozero", tickformat=",~r"),
    "%{y:,.1f}",
)

USE = Timeline(
    "use",
    "GPUs in use",
    "Share of all GPUs held by jobs over time, averaged within each step of the line.",
    lambda run, series: np.asarray(series.milli_gpus) * 100 / run.capacity.milli_gpus,
    lambda share: words.percent(None if share is None else share / 100),
    axis("GPUs held", range=[0, 103], ticksuffix=" %"),
    "%{y:.1f} %",
)


def over_time(drawn: Sequence[Entry], shown: Timeline) -> Plot | None:
    """A step curve per policy, in minutes, hours or days since the first submission."""
    lines = [(e, line) for e in drawn if (line := _steps(e.run, shown)) is not None]
    if not lines:
        return None
    rows = [(e.label, shown.say(_mean(c)), shown.say(float(c.y.max()))) for e, c in lines]
    said = "; ".join(f"{label} {mean}, at most {top}" for label, mean, top in rows)
    return Plot(
        shown.key,
        shown.title,
        shown.caption,
        f"{shown.title} over time. On average: {said}.",
        _time_figure(lines, shown),
        ("policy", "average", "most (as drawn)"),
        rows,
    )


def _steps(run: Run, shown: Timeline) -> curves.Curve | None:
    if run.series is None or not len(run.series.time):
        return None
    return curves.steps(run.series.time, shown.values(run, run.series), run.end)


def _time_figure(lines: list[tuple[Entry, curves.Curve]], shown: Timeline) -> Figure:
    origin = min(float(line.x[0]) for _, line in lines)
    unit, size = unit_of(max(float(line.x[-1]) for _, line in lines) - origin)
    data = [_line(e, curves.Curve((c.x - origin) / size, c.y), shown.hover) for e, c in lines]
    x = axis(f"{unit} since the first submission")
    return figure(data, x, shown.axis, hovermode="x unified")


def _line(entry: Entry, curve: curves.Curve, hover: str) -> dict[str, Any]:
    return entry.trace(
        type="scatter",
        mode="lines",
        x=digits(curve.x),
        y=digits(curve.y),
        hovertemplate=hover,
        line={"color": entry.colour, "shape": "hv", "width": 1.6},
    )


def _mean(curve: curves.Curve) -> float:
    """The average height of a step curve over its length."""
    length = float(curve.x[-1] - curve.x[0])
    area = float((curve.y[:-1] * np.diff(curve.x)).sum())
    return area / length if length else float(curve.y[-1])


def tenants(drawn: Sequence[Entry], groups: measures.Groups) -> Plot | None:
    """Mean wait of the largest tenants, one bar per policy."""
    names = measures.largest_tenants(groups, TENANTS)
    if len(names) < 2:
        return None
    waits = {
        e.label: [groups[e.label][0]["tenants"].get(n, {}).get("mean_wait") for n in names]
        for e in drawn
    }
    labels = [words.tenant(name) for name in names]
    table = [
        (label, *(words.duration(waits[e.label][i]) for e in drawn))
        for i, label in enumerate(labels)
    ]
    return Plot(
        "tenants",
        "Wait by tenant",
        f"Mean wait in the {len(names)} tenants with the most jobs, largest first.",
        "Mean wait by tenant and policy. " + _spread_in_words(labels, waits),
        _tenant_figure(drawn, labels, waits),
        ("tenant", *(e.label for e in drawn)),
        table,
    )


def _spread_in_words(labels: Sequence[str], waits: dict[str, list[float | None]]) -> str:
    said = []
    for policy, values in waits.items():
        known = [(v, label) for v, label in zip(values, labels, strict=True) if v is not None]
        if known:
            (low, least), (high, most) = min(known), max(known)
            shortest, longest = words.duration(low), words.duration(high)
            said.append(f"{policy}: from {shortest} ({least}) to {longest} ({most}).")
    return " ".join(said)


def _tenant_figure(
    drawn: Sequence[Entry], labels: list[str], waits: dict[str, list[float | None]]
) -> Figure:
    longest = max((v for each in waits.values() for v in each if v is not None), default=0.0)
    unit, size = unit_of(longest)
    shown = [escape(label) for label in labels]
    data = [
        entry.trace(
            type="bar",
            orientation="h",
            y=shown,
            x=[None if v is None else v / size for v in waits[entry.label]],
            text=[words.duration(v) for v in waits[entry.label]],
            textposition="none",
            hovertemplate="%{text}",
        )
        for entry in drawn
    ]
    height = 110 + len(labels) * (14 + 9 * len(drawn))
    x, y = (
        axis(f"mean wait, {unit}"),
        {"automargin": True, "autorange": "reversed", "showgrid": False, "type": "category"},
    )
    return figure(data, x, y, height=height, barmode="group", bargap=0.3, hovermode="y unified")


def by_size(drawn: Sequence[Entry]) -> Plot | None:
    """Median and 95th percentile of slowdown by the number of GPUs asked for."""
    found = {e.label: _slowdowns(e.jobs) for e in drawn}
    codes = sorted({code for each in found.values() for code in each})
    if not codes:
        return None
    labels = [curves.size_label(code) for code in codes]
    rows = [
        (label, *(_median_to_p95(found[e.label].get(code)) for e in drawn))
        for code, label in zip(codes, labels, strict=True)
    ]
    return Plot(
        "sizes",
        "Slowdown by job size",
        "How many times its length alone a job took, by GPUs asked for. The dot is the median, the "
        "line reaches to the 95th percentile; 1 is an empty cluster. The scale is logarithmic.",
        "Slowdown by job size, median to 95th percentile. "
        + " ".join(f"{row[0]} GPUs: {', '.join(row[1:])}." for row in rows),
        _size_figure(drawn, found, codes, labels),
        ("GPUs", *(e.label for e in drawn)),
        rows,
    )


Range = tuple[float, float]


def _slowdowns(jobs: Sample) -> dict[int, Range]:
    classes = curves.size_class(jobs.milli_gpus)
    found = {}
    for code in np.unique(classes).tolist():
        median, high = np.percentile(jobs.slowdown[classes == code], (50, 95)).tolist()
        found[code] = (median, high)
    return found


def _median_to_p95(each: Range | None) -> str:
    return words.NOTHING if each is None else f"{words.ratio(each[0])} to {words.ratio(each[1])}"


def _size_figure(
    drawn: Sequence[Entry], found: dict[str, dict[int, Range]], codes: list[int], labels: list[str]
) -> Figure:
    data = [_size_trace(entry, found[entry.label], codes, labels) for entry in drawn]
    x = axis("GPUs asked for", type="category")
    y = axis("slowdown", type="log", dtick="D1" if _narrow(found) else 1, tickformat="~g")
    return figure(data, x, y, scattermode="group", scattergap=0.5, hovermode="x unified")


def _narrow(found: dict[str, dict[int, Range]]) -> bool:
    """Whether the scale spans so little that powers of ten alone would leave it bare."""
    return max(high for each in found.values() for _, high in each.values()) < 30


def _size_trace(
    entry: Entry, ranges: dict[int, Range], codes: list[int], labels: list[str]
) -> dict[str, Any]:
    known = [
        (label, ranges[code]) for code, label in zip(codes, labels, strict=True) if code in ranges
    ]
    return entry.trace(
        type="scatter",
        mode="markers",
        x=[label for label, _ in known],
        y=[median for _, (median, _) in known],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [high - median for _, (median, high) in known],
            "arrayminus": [0.0] * len(known),
            "color": entry.colour,
            "thickness": 2,
            "width": 4,
        },
        text=[words.ratio(high) for _, (_, high) in known],
        hovertemplate="%{y:.3g}, p95 %{text}",
        marker={"color": entry.colour, "size": 9},
    )
