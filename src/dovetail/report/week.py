"""The page for the weekly meeting: use over time, waits, wasted GPU-hours by cause, top asks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from statistics import fmean

from dovetail.model.live import called
from dovetail.model.review import Review, Spent, Waits
from dovetail.report import words
from dovetail.report.axes import axis, figure
from dovetail.report.drawing import Figure, Plot
from dovetail.report.page import page, plot_figure, row, section, table, tiles

MOST_USERS = 20
LIMITS = (
    "GPU-hours of failed, stopped and cancelled attempts are what the controller believes was "
    "lost. The number of GPUs is taken to have been the same all along. Jobs that are held back "
    "or wait for other jobs do not count as waiting."
)


def html_week(told: Review) -> str:
    """The whole page."""
    shown = [_use(told), _queue(told), _waste(told)]
    return page(
        f"{_day(told.since)} to {_day(told.until)}",
        f'<p class="lead">{told.gpus:,} GPUs, policy {escape(told.policy)}</p>'
        f'<p class="lead"><strong>{escape(headline(told))}</strong></p>',
        section("Figures", _tiles(told))
        + section("Over time", "".join(map(plot_figure, shown)))
        + section(
            "Waits", _waits("By user", told.users[:MOST_USERS]) + _waits("By size", told.sizes)
        )
        + section("Top asks", _longest(told)),
        LIMITS,
        shown,
    )


def headline(told: Review) -> str:
    """The one sentence to remember."""
    wasted = sum(each.gpu_hours for each in told.spent if each.wasted)
    worst = max((each for each in told.spent if each.wasted), key=lambda each: each.gpu_hours)
    said = f"The GPUs were held {words.percent(_use_share(told))} of the time"
    if wasted < 0.05:
        return f"{said}; nothing was wasted."
    return f"{said}; {_hours(wasted)} GPU-hours were wasted, most of them {_as_noun(worst)}."


def _as_noun(worst: Spent) -> str:
    return f"by {worst.cause}" if not worst.cause.startswith("idle") else worst.cause


def _use_share(told: Review) -> float:
    whole = len(told.busy) * told.gpus
    return sum(told.busy) / whole if whole else 0.0


def _tiles(told: Review) -> str:
    facts = {
        "GPUs held": words.percent(_use_share(told)),
        "Submitted": words.count(told.submitted),
        "Done": words.count(told.done),
        "Failed": words.count(told.failed),
        "Cancelled": words.count(told.cancelled),
        "Still waiting": words.count(sum(each.waiting for each in told.users)),
    }
    return tiles(facts)


def _use(told: Review) -> Plot:
    return _over_time(
        told,
        "use",
        "GPUs held by jobs",
        f"Averages; there are {told.gpus:,}.",
        told.busy,
        {"range": [0, told.gpus * 1.03]},
    )


def _queue(told: Review) -> Plot:
    caption = (
        "GPUs that waiting jobs asked for, averages. Where this is above zero while GPUs are free, "
        "jobs waited for CPU, memory, a quota, or for enough GPUs in one place."
    )
    return _over_time(told, "wanted", "The queue", caption, told.wanted, {"rangemode": "tozero"})


def _over_time(
    told: Review, key: str, title: str, caption: str, values: Sequence[float], extent: Figure
) -> Plot:
    moments = [told.since + told.step * (place + 0.5) for place in range(len(values))]
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": list(map(_moment, moments)),
        "y": list(values),
        "line": {"color": "var(--series-0)", "shape": "hvh", "width": 1.8},
        "hovertemplate": "%{y:.1f} GPUs",
    }
    days: dict[str, list[float]] = {}
    for at, value in zip(moments, values, strict=True):
        days.setdefault(_day(at), []).append(value)
    mean = fmean(values) if values else 0.0
    return Plot(
        key,
        title,
        caption,
        f"{title} over time: {mean:.1f} GPUs on average, at most {max(values, default=0.0):.1f}.",
        figure([line], axis("UTC"), axis("GPUs", **extent), height=260),
        ("day (UTC)", "average", "most"),
        [(day, f"{fmean(each):.1f}", f"{max(each):.1f}") for day, each in days.items()],
    )


def _waste(told: Review) -> Plot:
    causes = [each for each in told.spent if each.wasted]
    data = {
        "type": "bar",
        "orientation": "h",
        "x": [round(each.gpu_hours, 3) for each in reversed(causes)],
        "y": [each.cause for each in reversed(causes)],
        "marker": {"color": "var(--series-1)"},
        "hovertemplate": "%{x:.1f} GPU-hours",
    }
    said = "; ".join(f"{each.cause} {_hours(each.gpu_hours)}" for each in causes)
    return Plot(
        "waste",
        "Wasted GPU-hours by cause",
        "What the GPUs could have been used for.",
        f"Wasted GPU-hours: {said}.",
        figure([data], axis("GPU-hours", rangemode="tozero"), {}, height=260),
        ("GPU-hours", "", "what is counted"),
        [(each.cause, _hours(each.gpu_hours), each.about) for each in told.spent],
    )


def _waits(title: str, groups: Sequence[Waits]) -> str:
    names = ("jobs", "GPU-hours", "wasted", "mean wait", "median", "9 of 10 within", "waiting")
    head = "".join(f'<th scope="col">{name}</th>' for name in ("", *names))
    rows = []
    for each in groups:
        times = map(words.duration, (each.mean, each.median, each.high))
        hours = (_hours(each.gpu_hours), _hours(each.wasted))
        cells = (words.count(each.jobs), *hours, *times, words.count(each.waiting))
        rows.append(row(each.name or "(nobody)", [f"<td>{cell}</td>" for cell in cells]))
    return table(title, "Waits of the jobs that first started in this time.", head, rows)


def _longest(told: Review) -> str:
    if not told.longest:
        return '<p class="lead">Nobody waited.</p>'
    names = ("job", "user", "GPUs", "waited")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    head += '<th scope="col" class="words">why</th>'
    rows = []
    for each in told.longest:
        still = " so far" if each.still else ""
        cells = (each.user, f"{each.gpus:g}", words.duration(each.wait) + still, each.why)
        made = [f"<td>{escape(cell)}</td>" for cell in cells[:-1]]
        made.append(f'<td class="words">{escape(cells[-1])}</td>')
        rows.append(row(f"{called(told.labels, each.job)} {each.name}", made))
    return table("What waited longest", "", head, rows)


def _hours(hours: float) -> str:
    return f"{hours:,.1f}" if hours < 100 else f"{hours:,.0f}"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
