"""The frame of every HTML page: style, plots, the library that draws them, tables, notices.

A page opens offline and asks the network for nothing, which its own content policy enforces. The
plotly.js inside comes from the installed plotly package. Knows nothing of what is reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files

from dovetail.report.drawing import Plot, Series

POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
"""What a browser may load for the page: what is in it, and nothing else."""


def page(title: str, header: str, main: str, footer: str, shown: Sequence[Plot]) -> str:
    """A whole page; all but the title is HTML."""
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
<header><h1>{escape(title)}</h1>{header}</header>
<main>{main}</main>
<footer>Made by Dovetail. {footer}</footer>
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


def notices(said: Sequence[str]) -> str:
    """What the reader should know before believing the rest."""
    if not said:
        return ""
    items = "".join(f"<li>{escape(notice)}</li>" for notice in said)
    return f'<ul class="notices" aria-label="Notices">{items}</ul>'


def table(title: str, note: str, head: str, rows: Iterable[str]) -> str:
    """A table on a card of its own."""
    small = f"<small>{note}</small>" if note else ""
    # A region that scrolls must be reachable by keyboard.
    return (
        f'<div class="card scroll" tabindex="0" role="region" aria-label="{title}"><table>'
        f"<caption>{title}{small}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def row(label: str, cells: Iterable[str]) -> str:
    """A row of a table."""
    return f'<tr><th scope="row">{breakable(label)}</th>{"".join(cells)}</tr>'


def breakable(label: str) -> str:
    """A label that may continue on the next line after its punctuation, not inside a word."""
    return re.sub(r"([,:/]|=(?=\S{4}))(?=\S)", r"\1<wbr>", escape(label))


def plot_figure(plot: Plot) -> str:
    """A plot with its caption, and its figures as a table."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in plot.header)
    rows = "".join(row(each[0], [f"<td>{escape(c)}</td>" for c in each[1:]]) for each in plot.rows)
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


def section(title: str, inside: str) -> str:
    """A part of the page under a heading."""
    key = f"{title.lower().replace(' ', '-')}-title"
    return f'<section aria-labelledby="{key}"><h2 id="{key}">{title}</h2>{inside}</section>'


def tiles(facts: Mapping[str, str]) -> str:
    """The few figures to see first."""
    made = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts.items())
    return f'<dl class="tiles">{made}</dl>'


DASHES: Mapping[str, str] = {
    "solid": "none",
    "dash": "7 4",
    "dot": "2 3",
    "dashdot": "7 3 2 3",
    "longdash": "11 4",
    "longdashdot": "11 3 2 3",
}


def legend(drawn: Sequence[Series], what: str = "Policies") -> str:
    """What is compared, each with its line; a press hides or shows it."""
    items = "".join(
        f'<li><button type="button" aria-pressed="true" data-series="{entry.number}">'
        f'<svg width="30" height="8" aria-hidden="true"><line x1="0" y1="4" x2="30" y2="4" '
        f'stroke="{entry.colour}" stroke-width="3" stroke-dasharray="{DASHES[entry.dash]}"/></svg>'
        f"<span>{breakable(entry.label)}</span></button></li>"
        for entry in drawn
    )
    return f'<ul class="legend" aria-label="{what}; press to hide or show">{items}</ul>'
