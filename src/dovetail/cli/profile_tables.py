"""A profile in a terminal of 80 columns: what the job needs, its curve, its surface, the cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dovetail.cli.trace import bar
from dovetail.model.profile import Profile
from dovetail.report import profiles, words

if TYPE_CHECKING:  # for speed: `dovetail --help` must not load rich
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from dovetail.profiler.sensitivity import Findings

ROWS = 16
"""Core counts shown each by itself; of more, only those of the profile are."""
MEASURED = "•"


def drawn(profile: Profile, findings: Findings | None = None) -> Iterator[RenderableType]:
    """All there is to say about a profile."""
    yield _text(f"{profile.name} {profiles.needs(profile)}.", "bold")
    yield from _curve(profile)
    if len(profile.surface.memory) > 1:
        yield from _surface(profile)
    if findings is not None:
        yield ""
        yield _text(f"Measured {profiles.cost(findings)}.")
        yield _text(f"Expected error: {profiles.error(findings)}.")
        yield from (_text(f"! {notice}", "yellow") for notice in findings.notices)


def _curve(profile: Profile) -> Iterator[RenderableType]:
    """Speed over cores with all the memory there is, as bars."""
    surface, plenty = profile.surface, profile.surface.memory[-1]
    unit = "steps/s" if profile.step else "speed"
    known = set(surface.cores)
    counts = _counts(surface.cores)
    legend = "" if known >= set(counts) else f" ({MEASURED} measured, the others between them)"
    yield _text(f"\nSpeed over cores per GPU{legend}", "bold")
    table = _table()
    for name in ("cores", "", unit):
        table.add_column(name, justify="right")
    table.add_column("", no_wrap=True)
    for cores in counts:
        speed = surface.at(cores, plenty)
        shown = speed / profile.step if profile.step else speed
        mark = MEASURED if cores in known else ""
        cells = (f"{cores:g}", mark, words.ratio(shown))
        table.add_row(*map(_text, cells), _text(bar(speed / surface.best, 48), "cyan"))
    yield table


def _counts(levels: tuple[float, ...]) -> list[float]:
    """The levels, and the whole numbers between them where there are few."""
    whole = [float(count) for count in range(1, int(levels[-1]) + 1) if count >= levels[0]]
    both = sorted({*levels, *whole})
    return both if len(both) <= ROWS else list(levels)


def _surface(profile: Profile) -> Iterator[RenderableType]:
    surface = profile.surface
    columns = profiles.few(surface.memory)
    cores, memory = profile.reference
    where = f"1 at {profiles.cores(cores)} and {profiles.gib(memory)}"
    yield _text(f"\nSpeed over cores and memory per GPU, {where}", "bold")
    table = _table()
    table.add_column("cores", justify="right")
    for column in columns:
        table.add_column(profiles.gib(surface.memory[column]), justify="right")
    for level, row in zip(surface.cores, surface.speed, strict=True):
        cells = (f"{level:g}", *(words.ratio(row[column]) for column in columns))
        table.add_row(*map(_text, cells))
    yield table


def _table() -> Table:
    from rich.table import Table  # noqa: PLC0415

    return Table(header_style="dim", box=None, padding=(0, 2, 0, 0))


def _text(content: str, style: str = "") -> Text:
    from rich.text import Text  # noqa: PLC0415

    return Text(content, style)
