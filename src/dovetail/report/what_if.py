"""The page of a what-if: who gains, who loses, by how much, for whoever has to decide."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dovetail.model.what_if import Comparison, Shift
from dovetail.report import words
from dovetail.report.changes import compared, plots
from dovetail.report.comparing import ROWS, headline
from dovetail.report.page import breakable, legend, notices, page, plot_figure, row, section, table

MOST_USERS = 50
LIMITS = (
    "Both are replays of the same jobs, so that they differ in what was asked and in nothing else. "
    "Times are from submission to end; waits are the part of them without GPUs."
)


def html_what_if(told: Comparison) -> str:
    """The whole page."""
    shown = plots(told)
    return page(
        "What if",
        f'<p class="lead">As it was: {breakable(told.before.label)}. '
        f"Instead: {breakable(told.after.label)}.</p>"
        f'<p class="lead"><strong>{escape(headline(told))}</strong></p>{notices(told.notices)}',
        section("Figures", _figures(told))
        + section(
            "Who gains, who loses",
            legend(compared(told), "Replays") + "".join(map(plot_figure, shown)),
        )
        + section("In figures", _tables(told)),
        LIMITS,
        shown,
    )


def _figures(told: Comparison) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in ("", "as it was", "instead"))
    rows = [
        row(name, [f"<td>{show(told.before)}</td>", f"<td>{show(told.after)}</td>"])
        for name, show in ROWS.items()
    ]
    return table("Both replays", "", head, rows)


def _tables(told: Comparison) -> str:
    more = len(told.users) - MOST_USERS
    note = "The largest gain in time weighted with GPUs first."
    note += f" {more:,} more are left out." if more > 0 else ""
    made = _shifts("By user", note, told.users[:MOST_USERS]) + _shifts("By size", "", told.sizes)
    changed = "The largest gains, then the largest losses."
    return made + (_shifts("Jobs that change most", changed, told.jobs) if told.jobs else "")


def _shifts(title: str, note: str, shifts: Sequence[Shift]) -> str:
    names = ("", "jobs", "mean completion", "instead", "change", "mean wait", "instead")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = []
    for each in shifts:
        times = (each.before, each.after, each.wait_before, each.wait_after)
        before, after, waited, waits = map(words.duration, times)
        change = words.later(each.after - each.before)
        cells = (words.count(each.jobs), before, after, change, waited, waits)
        rows.append(row(each.name, [f"<td>{escape(cell)}</td>" for cell in cells]))
    return table(title, note, head, rows)
