"""What all plots of a page share: how a policy looks, and what a finished plot consists of.

A figure is a plain dict for plotly.js. Colours in it are names of the page's style
(`var(--series-0)`), which the script of the page looks up, so that one figure serves light and
dark. Knows neither the metrics nor HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from dovetail.metrics.columns import Floats, Sample, sample
from dovetail.metrics.records import Run

COLOURS = 8
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")

Figure = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure and all that stands around it."""

    key: str
    title: str
    caption: str
    #: what the figure shows, in words
    alt: str
    figure: Figure
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Series:
    """One thing that is compared, as it is drawn: the same in every plot."""

    label: str
    number: int

    @property
    def colour(self) -> str:
        """The name of its colour in the page's style."""
        return f"var(--series-{self.number % COLOURS})"

    @property
    def dash(self) -> str:
        """Its line style, so that colour is not needed to tell it apart."""
        return DASHES[self.number % len(DASHES)]

    def trace(self, **fields: Any) -> dict[str, Any]:
        """A plotly trace in its name and colour. Plotly reads names as HTML: escaped here."""
        named = {"name": escape(self.label), "meta": self.number, "showlegend": False}
        return {**named, "marker": {"color": self.colour}, **fields}


@dataclass(frozen=True)
class Entry(Series):
    """One policy, with its first run."""

    run: Run
    jobs: Sample


def entries(runs: Sequence[tuple[str, Run]]) -> list[Entry]:
    """One entry per label: its first run."""
    first: dict[str, Run] = {}
    for label, run in runs:
        first.setdefault(label, run)
    return [Entry(label, n, run, sample(run)) for n, (label, run) in enumerate(first.items())]


def digits(values: Floats, kept: int = 5) -> list[float]:
    """Rounded to significant digits: a pixel needs no more, and the file shrinks by half."""
    scale = 10.0 ** (kept - 1 - np.floor(np.log10(np.maximum(np.abs(values), 1e-9))))
    rounded: list[float] = (np.round(values * scale) / scale).tolist()
    return rounded
