"""Just enough SVG for the pictures of the documentation. Knows nothing of what is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

GREY, DARK = "#d0d4da", "#3b4252"
FONT = "font-family='system-ui, sans-serif'"


class Drawing:
    """A picture on white ground; y grows downwards."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.size = (width, height)
        self.title = title
        self.parts: list[str] = []

    def rect(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        """A filled box with a thin white edge."""
        box = f"x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}'"
        self.parts.append(f"<rect {box} fill='{fill}' stroke='#fff'/>")

    def line(
        self, points: Sequence[tuple[float, float]], colour: str, width: float = 1, dash: str = ""
    ) -> None:
        """A line through points; `dash` as in `6 4`."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        style = f"stroke='{colour}' stroke-width='{width}' stroke-dasharray='{dash}'"
        self.parts.append(f"<polyline points='{path}' fill='none' {style}/>")

    def dot(self, x: float, y: float, colour: str, filled: bool = True) -> None:
        """A mark; hollow where something must be said about it."""
        fill = colour if filled else "#fff"
        circle = f"cx='{x:.1f}' cy='{y:.1f}' r='3'"
        self.parts.append(f"<circle {circle} fill='{fill}' stroke='{colour}' stroke-width='1.5'/>")

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 12,
        anchor: str = "start",
        colour: str = DARK,
        bold: bool = False,
    ) -> None:
        """Words; `anchor` is start, middle or end."""
        weight = "bold" if bold else "normal"
        style = f"font-size='{size}' text-anchor='{anchor}' fill='{colour}' font-weight='{weight}'"
        self.parts.append(f"<text x='{x:.1f}' y='{y:.1f}' {FONT} {style}>{escape(text)}</text>")

    def written(self) -> str:
        """The file."""
        width, height = self.size
        head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}'"
        ground = f"<rect width='{width:g}' height='{height:g}' fill='#fff'/>"
        parts = "\n".join([f"<title>{escape(self.title)}</title>", ground, *self.parts])
        return f"{head} width='{width:g}' height='{height:g}' role='img'>\n{parts}\n</svg>\n"


class Panel:
    """A pair of linear axes with a grid."""

    def __init__(
        self,
        on: Drawing,
        box: tuple[float, float, float, float],
        x: tuple[float, float],
        y: tuple[float, float],
    ) -> None:
        self.on = on
        self.left, self.top, self.width, self.height = box
        self.x, self.y = x, y

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a pair of values is; above the upper end it stays at the edge."""
        right = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = min((y - self.y[0]) / (self.y[1] - self.y[0]), 1.0)
        return self.left + right * self.width, self.top + (1 - up) * self.height

    def axes(
        self, title: str, below: str, xs: Sequence[float], ys: Sequence[float], unit: str = ""
    ) -> None:
        """Grid, numbers and titles."""
        for value in ys:
            start, end = self.at(self.x[0], value), self.at(self.x[1], value)
            self.on.line([start, end], GREY)
            self.on.text(start[0] - 6, start[1] + 4, f"{value:g}{unit}", 11, "end")
        for value in xs:
            x, y = self.at(value, self.y[0])
            self.on.text(x, y + 16, f"{value:g}", 11, "middle")
        self.on.text(self.left, self.top - 14, title, 13, bold=True)
        middle = self.left + self.width / 2
        self.on.text(middle, self.top + self.height + 34, below, 12, "middle")

    def curve(
        self,
        values: Sequence[tuple[float, float]],
        colour: str,
        dash: str = "",
        hollow: Sequence[bool] = (),
    ) -> None:
        """A curve with a mark at every value."""
        points = [self.at(*value) for value in values]
        self.on.line(points, colour, 2, dash)
        marks = hollow or [False] * len(points)
        for (x, y), empty in zip(points, marks, strict=True):
            self.on.dot(x, y, colour, not empty)
