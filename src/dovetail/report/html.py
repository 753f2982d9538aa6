"""One HTML file that holds a whole report: tables, plots, settings, and the library that draws.

It opens offline and asks the network for nothing, which its own content policy enforces. The
plotly.js inside comes from the installed plotly package. The page is put together here; what the
figures mean is decided in `measures` and `plots`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from dovetail.metrics.records import OUTCOMES, Run
from dovetail.metrics.summary import summarise
from dovetail.report import measures, words
from dovetail.report.drawing import Entry, Plot, entries
from dovetail.report.measures import Cell, Groups, Measure
from dovetail.report.plots import plots

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
"""What a browser may load for the page: what is in it, and nothing else."""


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
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{_own("style.css")}</style>
</head>
<body>
<header><h1>{escape(title)}</h1>{_lead(groups)}{_notices(groups)}</header>
<main>{_figures_in_tables(groups)}{_plots(groups, drawn, shown)}{_settings(groups)}</main>
<footer>Made by Dovetail. JCT: job completion time, from submission to end. Times count finished
jobs only.</footer>
{_scripts(shown) if shown else ""}
</body>
</html>
"""


def _scripts(shown: Sequence[Plot]) -> str:
    """The figures, the library that draws them, and the script that tells it to."""
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 - five megabytes, read when needed

    figures = {plot.key: plot.figure for plot in shown}
    data = json.dumps(figures, allow_nan=False, separators=(",", ":"))
    # A closing tag inside JSON would end the script: no "<" may stand in it.
    safe = data.replace("<", "\\u003c")
    return f"""<script type="application/json" id="figures">{safe}</script>
<script>{get_plotlyjs()}</script>
<script>
{_own("page.js")}</script>"""


def _own(name: str) -> str:
    return files("dovetail.report").joinpath(name).read_text(encoding="utf-8")


def _lead(groups: Groups) -> str:
    first = next(iter(groups.values()))[0]
    jobs = words.plural(first["jobs"]["submitted"], "job")
    where = f"{jobs} of {words.value(first['trace'])} on {words.value(first['cluster'])}"
    found = measures.headline(groups)
    strong = f'<p class="lead"><strong>{_breakable(found)}</strong></p>' if found else ""
    return f'<p class="lead">{_breakable(where)}</p>{strong}'


def _notices(groups: Groups) -> str:
    said = [*measures.cautions(groups), *measures.notices(groups)]
    if not said:
        return ""
    items = "".join(f"<li>{escape(notice)}</li>" for notice in said)
    return f'<ul class="notices" aria-label="Notices">{items}</ul>'


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
        _row(label, [_cell(cell) for cell in cells])
        for label, cells in zip(groups, zip(*by_column, strict=True), strict=True)
    ]
    return _table(title, note, f'<th scope="col">policy</th>{head}', rows)


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
        _row(label, [f"<td>{words.count(each.get(name, 0))}</td>" for name in kept])
        for label, each in counts.items()
    ]
    return _table(title, note, f'<th scope="col">policy</th>{head}', rows)


def _row(label: str, cells: Iterable[str]) -> str:
    return f'<tr><th scope="row">{_breakable(label)}</th>{"".join(cells)}</tr>'


def _breakable(label: str) -> str:
    """A label that may continue on the next line after its punctuation, not inside a word."""
    return re.sub(r"([,:/]|=(?=\S{4}))(?=\S)", r"\1<wbr>", escape(label))


def _table(title: str, note: str, head: str, rows: Iterable[str]) -> str:
    small = f"<small>{note}</small>" if note else ""
    # A region that scrolls must be reachable by keyboard.
    return (
        f'<div class="card scroll" tabindex="0" role="region" aria-label="{title}"><table>'
        f"<caption>{title}{small}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _plots(groups: Groups, drawn: Sequence[Entry], shown: Sequence[Plot]) -> str:
    if not shown:
        return ""
    return (
        '<section aria-labelledby="plots-title"><h2 id="plots-title">Plots</h2>'
        + (FIRST_SEED if any(len(results) > 1 for results in groups.values()) else "")
        + (_legend(drawn) if len(drawn) > 1 else "")
        + "".join(map(_plot, shown))
        + "</section>"
    )


FIRST_SEED = '<p class="lead">Plots show the run with the first seed of each policy.</p>'

DASHES: Mapping[str, str] = {
    "solid": "none",
    "dash": "7 4",
    "dot": "2 3",
    "dashdot": "7 3 2 3",
    "longdash": "11 4",
    "longdashdot": "11 3 2 3",
}


def _legend(drawn: Sequence[Entry]) -> str:
    items = "".join(
        f'<li><button type="button" aria-pressed="true" data-series="{entry.number}">'
        f'<svg width="30" height="8" aria-hidden="true"><line x1="0" y1="4" x2="30" y2="4" '
        f'stroke="{entry.colour}" stroke-width="3" stroke-dasharray="{DASHES[entry.dash]}"/></svg>'
        f"<span>{_breakable(entry.label)}</span></button></li>"
        for entry in drawn
    )
    return f'<ul class="legend" aria-label="Policies; press to hide or show">{items}</ul>'


def _plot(plot: Plot) -> str:
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in plot.header)
    rows = "".join(_row(row[0], [f"<td>{escape(c)}</td>" for c in row[1:]]) for row in plot.rows)
    height = plot.figure["layout"]["height"]
    return f"""<figure aria-labelledby="title-{plot.key}">
<figcaption><h3 id="title-{plot.key}">{escape(plot.title)}</h3>
<p>{escape(plot.caption)}</p></figcaption>
<div class="plot" id="plot-{plot.key}" role="img" aria-label="{escape(plot.alt)}" \
style="height:{height}px"></div>
<details><summary>As a table</summary><div class="scroll"><table>
<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>
</figure>
"""


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
        return _breakable(next(iter(texts.values())))
    if all(label == text for label, text in texts.items()):
        return "<br>".join(map(_breakable, texts))
    return "<br>".join(_breakable(f"{label}: {text}") for label, text in texts.items())
