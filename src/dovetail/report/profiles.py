"""Profiles for people: what a job needs in one sentence, its curves, and a page of its own."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from dovetail.model.profile import Profile
from dovetail.profiler.needs import NEAR, Needs
from dovetail.report import words
from dovetail.report.axes import axis, figure
from dovetail.report.drawing import DASHES, Figure, Plot
from dovetail.report.page import notices, page, plot_figure

if TYPE_CHECKING:  # for speed: showing a profile needs nothing of what measures one
    from dovetail.profiler.sensitivity import Findings

CURVES = 6
"""Lines in one plot, columns in one table."""
DOTS = " Dots are what was measured, before noise was taken out."
CALCULATED = " Calculated: reading and computing overlap; what is cached is hit in every pass."


def needs(profile: Profile) -> str:
    """ "profits up to 9 cores per GPU, needs 60 GiB; 3 cores cost it 58 %"."""
    found = Needs.of(profile)
    memory = round(found.memory) if found.memory >= 10 else found.memory
    needed = f"{_profits(profile, found)}, needs {gib(memory)}"
    return "; ".join(filter(None, (needed, _losses(profile, found))))


def _profits(profile: Profile, found: Needs) -> str:
    if found.cores <= profile.surface.cores[0]:
        return f"is content with {cores(found.cores)} per GPU"
    more = ", the most that was tried" if found.open_ended else ""
    return f"profits up to {cores(found.cores)} per GPU{more}"


def _losses(profile: Profile, found: Needs) -> str:
    """What the reference share costs, as far as it is more than noise."""
    few, memory = profile.reference
    said = []
    if found.lost_to_cores > 1 - NEAR:
        verb = "costs" if few == 1 else "cost"
        said.append(f"{cores(few)} {verb} it {_percent(found.lost_to_cores)}")
    if found.lost_to_memory > 1 - NEAR:
        said.append(f"{gib(memory)} cost it {_percent(found.lost_to_memory)}")
    if not said and not found.open_ended:
        said = [f"{cores(few)} and {gib(memory)} are enough"]
    return ", ".join(said)


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def cores(number: float) -> str:
    """A number of cores, in whole words."""
    return "1 core" if number == 1 else f"{number:g} cores"


def gib(size: float) -> str:
    """A size of memory as people say it."""
    return f"{size * 1024:.0f} MiB" if size < 1 else f"{size:.3g} GiB"


def cost(findings: Findings) -> str:
    """What measuring took, against measuring everything."""
    spent = findings.cost
    points = words.plural(spent.points, "point")
    if spent.grid_points == spent.points:
        return f"{points} in {words.duration(spent.seconds)}: all there are"
    return (
        f"{points} in {words.duration(spent.seconds)}; the full grid of {spent.grid_points} would "
        f"take {words.duration(spent.grid_seconds)} ({words.percent(spent.share)} of it spent)"
    )


def error(findings: Findings) -> str:
    """How far a speed read off the profile may be off."""
    return (
        f"about {words.percent(findings.error)} along the cores "
        f"(noise of a measurement {words.percent(findings.noise)})"
    )


def few(levels: tuple[float, ...], most: int = CURVES) -> list[int]:
    """Indices of a few levels, evenly spread, both ends among them."""
    if len(levels) <= most:
        return list(range(len(levels)))
    return sorted({round(step * (len(levels) - 1) / (most - 1)) for step in range(most)})


def html_profile(profile: Profile, findings: Findings | None = None) -> str:
    """A page about one profile, and, where it has just been measured, about that."""
    sentence = f"{profile.name} {needs(profile)}."
    shown = [_over_cores(profile, findings)]
    if len(profile.surface.memory) > 1:
        shown.append(_over_memory(profile, findings))
    facts = "".join(
        f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in _facts(profile, findings)
    )
    return page(
        f"Profile of {profile.name}",
        f'<p class="lead"><strong>{escape(sentence)}</strong></p>'
        + notices(findings.notices if findings else ()),
        '<section aria-labelledby="plots-title"><h2 id="plots-title">Curves</h2>'
        + "".join(map(plot_figure, shown))
        + f'</section><section><h2>Measured</h2><dl class="card settings">{facts}</dl></section>',
        "Cores and memory are per GPU.",
        shown,
    )


def _facts(profile: Profile, findings: Findings | None) -> Iterable[tuple[str, str]]:
    yield "Speed 1", f"{cores(profile.reference[0])} and {gib(profile.reference[1])} per GPU"
    if profile.step:
        yield "Step there", words.duration(profile.step)
    yield "Source", profile.source or words.NOTHING
    if findings is not None:
        yield "Cost", cost(findings)
        yield "Expected error", error(findings)


def _over_cores(profile: Profile, findings: Findings | None) -> Plot:
    surface = profile.surface
    columns = few(surface.memory)
    data = [
        _line(n, gib(surface.memory[c]), surface.cores, [row[c] for row in surface.speed])
        for n, c in enumerate(columns)
    ]
    if findings is not None:
        data.append(_dots(profile, findings))
    return Plot(
        "cores",
        "Speed over cores",
        "One line per amount of memory." + (DOTS if findings else ""),
        f"Speed over cores per GPU: {profile.name} {needs(profile)}.",
        figure(data, axis("cores per GPU"), axis("speed", rangemode="tozero"), showlegend=True),
        ("cores", *(gib(surface.memory[c]) for c in columns)),
        [
            (f"{cores:g}", *(words.ratio(row[c]) for c in columns))
            for cores, row in zip(surface.cores, surface.speed, strict=True)
        ],
    )


def _over_memory(profile: Profile, findings: Findings | None) -> Plot:
    surface = profile.surface
    rows = few(surface.cores)
    data = [
        _line(n, cores(surface.cores[r]), surface.memory, surface.speed[r])
        for n, r in enumerate(rows)
    ]
    return Plot(
        "memory",
        "Speed over memory",
        "One line per number of cores." + (CALCULATED if findings else ""),
        f"Speed over memory per GPU: {profile.name} {needs(profile)}.",
        figure(data, axis("GiB per GPU"), axis("speed", rangemode="tozero"), showlegend=True),
        ("memory", *(cores(surface.cores[r]) for r in rows)),
        [
            (gib(memory), *(words.ratio(surface.speed[r][c]) for r in rows))
            for c, memory in enumerate(surface.memory)
        ],
    )


def _line(number: int, name: str, x: Iterable[float], y: Iterable[float]) -> Figure:
    colour = f"var(--series-{number})"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": escape(name),
        "x": [round(value, 4) for value in x],
        "y": [round(value, 5) for value in y],
        "line": {"color": colour, "dash": DASHES[number % len(DASHES)], "width": 2.2},
    }


def _dots(profile: Profile, findings: Findings) -> Figure:
    # The profile's unit is its speed at the reference share; that of a measurement is steps/s.
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "measured",
        "x": [each.cores / findings.gpus for each in findings.measured],
        "y": [round(each.speed * profile.step, 5) for each in findings.measured],
        "marker": {"color": "var(--ink)", "size": 8},
    }
