"""One HTML file that holds a whole report: tables, plots, settings, and the library that draws.

The page is put together here, in the frame of `page`; what the figures mean is decided in
`measures` and `plots`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from dovetail.metrics.records import OUTCOMES, Run
from dovetail.metrics.summary import summarise
from dovetail.report import measures, words
from dovetail.report.drawing import Entry, Plot, entries
from dovetail.report.measures import Cell, Groups, Measure
from dovetail.report.page import breakable, legend, notices, page, plot_figure, row, table
from dovetail.report.plots import plots

MARK = '<span class="mark" role="img" aria-label="best">★</span>'


def html_report(
    results: Sequence[tuple[str, Run]],
    title: str = "Dovetail report",
    summaries: Sequence[measures.Result] | None = None,
) -> str:
    """The page for one run, or for several policies side by side.

    `results` are label and run; a label that occurs several times is one policy with several
    seeds: tables then show means with 95 % intervals, plots the first run. `summaries`, one per
    run, saves computing them again.
    """
    if summaries is None:
        summaries = [summarise(run) for _, run in results]
    labels = [label for label, _ in results]
    groups = measures.grouped(list(zip(labels, summaries, strict=True)))
    drawn = entries(results)
    return _page(title, groups, drawn, plots(drawn, groups))


def write_report(path: Path | str, results: Sequence[tuple[str, Run]], title: str) -> None:
    """Write the page to a file."""
    Path(path).write_text(html_report(results, title), encoding="utf-8")


def _page(title: str, groups: Groups, drawn: Sequence[Entry], shown: Sequence[Plot]) -> str:
    return page(
        title,
        f"{_lead(groups)}{_notices(groups)}",
        f"{_figures_in_tables(groups)}{_plots(groups, drawn, shown)}{_settings(groups)}",
        "JCT: job completion time, from submission to end. Times count finished\njobs only.",
        shown,
    )


def _lead(groups: Groups) -> str:
    first = next(iter(groups.values()))[0]
    jobs = words.plural(first["jobs"]["submitted"], "job")
    where = f"{jobs} of {words.value(first['trace'])} on {words.value(first['cluster'])}"
    found = measures.headline(groups)
    strong = f'<p class="lead"><strong>{breakable(found)}</strong></p>' if found else ""
    return f'<p class="lead">{breakable(where)}</p>{strong}'


def _notices(groups: Groups) -> str:
    return notices([*measures.cautions(groups), *measures.notices(groups)])


def _figures_in_tables(groups: Groups) -> str:
    seeds = max(len(results) for results in groups.values())
    spread = f" Means over {seeds} seeds with 95 % intervals." if seeds > 1 else ""
    star = "★ marks the best of a column." if len(groups) > 1 else ""
    note = f"{star}{spread}".strip()
    return (
        '<section aria-labelledby="figures-title"><h2 id="figures-title">Figures</h2>'
        + (
            _tiles(groups)
            if len(groups) == 1
            else _comparison("Times", note, groups, measures.TIMES)
        )
        + _comparison("Use and fairness", note, groups, measures.USE)
        + _outcomes(groups)
        + _excess(groups)
        + "</section>"
    )


def _tiles(groups: Groups) -> str:
    tiles = []
    for measure in measures.TIMES:
        (cell,) = measures.column(groups, measure)
        spread = f" <small>{cell.spread}</small>" if cell.spread else ""
        tiles.append(
            f'<div title="{escape(measure.about)}"><dt>{measure.title}</dt>'
            f"<dd>{cell.text}{spread}</dd></div>"
        )
    return f'<dl class="tiles">{"".join(tiles)}</dl>'


def _comparison(title: str, note: str, groups: Groups, columns: Sequence[Measure]) -> str:
    head = "".join(
        f'<th scope="col" title="{escape(m.about)}">{escape(m.title)}</th>' for m in columns
    )
    by_column = [measures.column(groups, measure) for measure in columns]
    rows = [
        row(label, [_cell(cell) for cell in cells])
        for label, cells in zip(groups, zip(*by_column, strict=True), strict=True)
    ]
    return table(title, note, f'<th scope="col">policy</th>{head}', rows)


def _cell(cell: Cell) -> str:
    spread = f"<small>{cell.spread}</small>" if cell.spread else ""
    kind = ' class="best"' if cell.best else ""
    return f"<td{kind}>{cell.text}{MARK if cell.best else ''}{spread}</td>"


def _outcomes(groups: Groups) -> str:
    """What became of jobs and deadlines; columns in which nothing happened are left out."""
    jobs = {label: results[0]["jobs"] for label, results in groups.items()}
    due = {label: results[0].get("deadlines", {}) for label, results in groups.items()}
    return _counts("Jobs", "What became of them, whole run.", ("submitted", *OUTCOMES), jobs) + (
        _counts("Deadlines", "Measured jobs with a deadline.", DEADLINES, due)
        if any(due.values())
        else ""
    )


def _excess(groups: Groups) -> str:
    """What sharing cost each tenant, where that was computed."""
    excess = measures.excess_waits(groups)
    if not excess:
        return ""
    head = "".join(f'<th scope="col">{breakable(label)}</th>' for label in ("tenant", *groups))
    rows = [
        row(words.tenant(name), [f"<td>{words.beyond(each)}</td>" for each in waits])
        for name, waits in excess.items()
    ]
    return table("Mean wait beyond that in a private cluster", BEYOND, head, rows)


BEYOND = (
    "Of a private cluster of what the tenant owns, under the same policy. A minus: sharing helped."
)
DEADLINES = ("jobs", "met", "missed", "rejected", "undecided")


def _counts(
    title: str, note: str, names: Sequence[str], counts: Mapping[str, Mapping[str, int]]
) -> str:
    kept = [
        name
        for place, name in enumerate(names)
        if place < 2 or any(each.get(name) for each in counts.values())
    ]
    head = "".join(f'<th scope="col">{name}</th>' for name in kept)
    rows = [
        row(label, [f"<td>{words.count(each.get(name, 0))}</td>" for name in kept])
        for label, each in counts.items()
    ]
    return table(title, note, f'<th scope="col">policy</th>{head}', rows)


def _plots(groups: Groups, drawn: Sequence[Entry], shown: Sequence[Plot]) -> str:
    if not shown:
        return ""
    return (
        '<section aria-labelledby="plots-title"><h2 id="plots-title">Plots</h2>'
        + (FIRST_SEED if any(len(results) > 1 for results in groups.values()) else "")
        + (legend(drawn) if len(drawn) > 1 else "")
        + "".join(map(plot_figure, shown))
        + "</section>"
    )


FIRST_SEED = '<p class="lead">Plots show the run with the first seed of each policy.</p>'


def _settings(groups: Groups) -> str:
    """What the runs had in common, and what they differed in."""
    stated = {label: words.settings(results[0]) for label, results in groups.items()}
    seeds = [words.value(result["seed"]) for result in next(iter(groups.values()))]
    for label, each in stated.items():
        each["Seed"] = ", ".join(dict.fromkeys(seeds))
        if report := groups[label][0]["policy_report"]:
            each["Said by the policy"] = words.value(report)
    terms = dict.fromkeys(term for each in stated.values() for term in each)
    items = "".join(f"<dt>{escape(t)}</dt><dd>{_values(stated, t)}</dd>" for t in terms)
    return (
        '<section aria-labelledby="settings-title"><h2 id="settings-title">Settings</h2>'
        f'<dl class="card settings">{items}</dl></section>'
    )


def _values(stated: Mapping[str, Mapping[str, str]], term: str) -> str:
    texts = {label: each.get(term, words.NOTHING) for label, each in stated.items()}
    if len(set(texts.values())) == 1:
        return breakable(next(iter(texts.values())))
    if all(label == text for label, text in texts.items()):
        return "<br>".join(map(breakable, texts))
    return "<br>".join(breakable(f"{label}: {text}") for label, text in texts.items())
