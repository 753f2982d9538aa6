"""Synergy's main figure: mean JCT over load, equal shares against `tune`, under LAS and SRTF.

    python examples/synergy/figure.py                # 13 CPU minutes; writes into out/synergy/
    python examples/synergy/figure.py --quick        # seconds: a smaller cluster, fewer jobs

The setting is the paper's (Mohan et al., OSDI'22): 16 nodes of 8 GPUs, 24 cores and 500 GB, jobs of
1 to 16 GPUs as in the Philly trace, models 20/70/10, jobs 4000 to 4999 measured. The first sweep
charges nothing for restarts, moves and spanning nodes, as the artifact does. The second charges
what Dovetail charges: 30 s a restart, and 10 % for a job on more nodes than it needs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from svg import Drawing, Panel

from dovetail.metrics.columns import columns, sample
from dovetail.metrics.records import Run
from dovetail.metrics.summary import summarise
from dovetail.report.axes import axis, figure
from dovetail.report.drawing import Plot
from dovetail.report.page import notices, page, plot_figure
from dovetail.simulator.experiment import Replay, grid

PUBLISHED = 3.4
"""The paper's abstract: average JCT up to 3.4 times better than with GPU-proportional shares."""

POLICIES = {"FIFO": "fifo:skip=true,preempt=true", "LAS": "las", "SRTF": "srtf"}
DRAWN = ("LAS", "SRTF")
COLOURS = {"FIFO": "#6b7280", "LAS": "#1f6fb2", "SRTF": "#c2571a"}
COSTS: dict[str, dict[str, float]] = {
    "free": {"restart_cost": 0.0, "move_cost": 0.0, "span_penalty": 0.0},
    "charged": {"span_penalty": 0.1},
}


class Sweep(NamedTuple):
    """What is run."""

    cluster: str
    jobs: int
    measure: str
    #: jobs an hour, by what is charged
    loads: dict[str, list[float]]

    def points(self) -> list[tuple[str, str, float, str]]:
        """Costs, policy, load and allocator of every run; FIFO only where nothing is charged."""
        return [
            (costs, policy, load, allocator)
            for costs, loads in self.loads.items()
            for policy in (POLICIES if costs == "free" else DRAWN)
            for load in loads
            for allocator in ("proportional", "tune")
        ]


FULL = Sweep(
    "16x8,cpus=24,mem=500",
    12000,
    "4000:5000",
    {
        "free": [0.5, 2, 4, 5, 5.5, 6, 6.5, 7, 8],
        "charged": [4, 5.5, 6, 6.5, 7],
    },
)
QUICK = Sweep("4x8,cpus=24,mem=500", 300, "100:200", {"free": [0.5, 1.5], "charged": [1.5]})


class Point(NamedTuple):
    """The outcome of one run; hours."""

    costs: str
    policy: str
    load: float
    allocator: str
    mean: float
    p99: float
    #: did jobs still arrive when the last measured one ended?
    steady: bool
    preemptions: int
    moves: int


def settings(sweep: Sweep, sizes: str, seed: int, point: tuple[str, str, float, str]) -> Replay:
    """One run."""
    costs, policy, load, allocator = point
    trace = f"generate:synergy,jobs={sweep.jobs},rate={load},sizes={sizes},seed={seed}"
    given: dict[str, Any] = COSTS[costs]
    return Replay(
        f"{trace},split=20/70/10",
        sweep.cluster,
        POLICIES[policy],
        allocator=allocator,
        measure=sweep.measure,
        **given,
    )


def outcome(point: tuple[str, str, float, str], run: Run) -> Point:
    """What the figure needs of a run."""
    result = summarise(run)
    assert result["measure"]["jobs"] == result["measure"]["finished"], "a measured job never ended"
    steady = bool(sample(run).end.max() <= columns(run.records).submit.max())
    jct = result["jct"]
    hours = (jct["mean"] / 3600, jct["p99"] / 3600)
    return Point(*point, *hours, steady, result["preemptions"], result["moves"])


class Gain(NamedTuple):
    """Equal shares over `tune` at one load."""

    costs: str
    policy: str
    load: float
    proportional: Point
    tune: Point

    @property
    def times(self) -> float:
        """How many times longer jobs take with equal shares."""
        return self.proportional.mean / self.tune.mean

    @property
    def steady(self) -> bool:
        """Did arrivals last long enough for both?"""
        return self.proportional.steady and self.tune.steady


def gains(points: list[Point]) -> list[Gain]:
    """Pairs of runs that differ in the allocator alone."""
    pairs = zip(points[::2], points[1::2], strict=True)
    return [Gain(fair.costs, fair.policy, fair.load, fair, tune) for fair, tune in pairs]


# ---- words and files -----------------------------------------------------------------------------


def table(found: list[Gain]) -> str:
    """The figure as text."""
    lines = [f"{'costs':8} {'policy':6} {'jobs/h':>6} {'equal h':>8} {'tune h':>8} {'gain':>6}"]
    for gain in found:
        mark = "" if gain.steady else " *"
        means = f"{gain.proportional.mean:8.2f} {gain.tune.mean:8.2f}"
        lines.append(
            f"{gain.costs:8} {gain.policy:6} {gain.load:6g} {means} {gain.times:5.2f}x{mark}"
        )
    return "\n".join([*lines, "", *said(found)])


def said(found: list[Gain]) -> list[str]:
    """What comes of it, in sentences."""
    sentences = []
    for costs, policy in dict.fromkeys((gain.costs, gain.policy) for gain in found):
        best = max(_of(found, costs, policy), key=lambda gain: gain.times)
        sentences.append(
            f"{policy}, costs {costs}: at most {best.times:.2f} x, at {best.load:g} jobs/h "
            f"({best.proportional.mean:.2f} h against {best.tune.mean:.2f} h)."
        )
    sentences.append(f"Published: up to {PUBLISHED} x (Mohan et al., OSDI'22).")
    sentences.append("*: arrivals ended before the last measured job did, so the load fell.")
    return sentences


def _of(found: list[Gain], costs: str, policy: str) -> list[Gain]:
    return [gain for gain in found if gain.costs == costs and gain.policy == policy]


def html(found: list[Gain], about: str) -> str:
    """A page that opens offline."""
    shown = [_times(found), _gains(found)]
    main = notices(said(found)) + "".join(map(plot_figure, shown))
    return page("Synergy's main figure", f"<p>{escape(about)}</p>", main, "", shown)


def _times(found: list[Gain]) -> Plot:
    data = []
    for number, policy in enumerate(DRAWN):
        of = _of(found, "free", policy)
        for name, dash in (("proportional", "dash"), ("tune", "solid")):
            means = [round(getattr(gain, name).mean, 3) for gain in of]
            data.append(_line(f"{policy}, {name}", [gain.load for gain in of], means, number, dash))
    drawn = figure(data, axis("jobs an hour"), axis("mean JCT, hours", rangemode="tozero"))
    words = "Mean completion time of the measured jobs. Dashed: equal shares. Solid: tune."
    rows = [
        [f"{gain.policy}, {gain.load:g}{'' if gain.steady else ' *'}"]
        + [f"{point.mean:.2f}" for point in (gain.proportional, gain.tune)]
        for gain in found
        if gain.costs == "free"
    ]
    header = ("policy, jobs/h", "equal shares, h", "tune, h")
    return Plot("times", "Mean JCT over load", words, words, drawn, header, rows)


def _gains(found: list[Gain]) -> Plot:
    data = []
    for number, policy in enumerate(DRAWN):
        for costs, dash in (("free", "solid"), ("charged", "dot")):
            of = _of(found, costs, policy)
            times = [round(gain.times, 3) for gain in of]
            data.append(
                _line(f"{policy}, {costs}", [gain.load for gain in of], times, number, dash)
            )
    loads = [gain.load for gain in found]
    ends = [min(loads), max(loads)]
    data.append(_line(f"published: up to {PUBLISHED}", ends, [PUBLISHED] * 2, 2, "dashdot"))
    drawn = figure(data, axis("jobs an hour"), axis("gain", rangemode="tozero"))
    words = "Mean JCT with equal shares over that with tune; dotted: with costs charged."
    rows = [[f"{gain.costs}, {gain.policy}, {gain.load:g}", f"{gain.times:.2f}"] for gain in found]
    return Plot("gains", "Gain over load", words, words, drawn, ("run", "gain"), rows)


def _line(name: str, x: list[float], y: list[float], number: int, dash: str) -> dict[str, Any]:
    colour = f"var(--series-{number})"
    style = {"color": colour, "dash": dash}
    mode = "lines+markers" if len(x) > 2 else "lines"
    return {"x": x, "y": y, "name": name, "mode": mode, "line": style, "marker": {"color": colour}}


def picture(found: list[Gain]) -> str:
    """The same for the documentation."""
    drawing = Drawing(860, 400, "Mean JCT and gain over load, equal shares against tune")
    free = [gain for gain in found if gain.costs == "free" and gain.policy in DRAWN]
    highest = max(gain.proportional.mean for gain in free)
    step = 5 if highest <= 40 else 20
    top = step * (int(highest / step) + 1)
    last = max(gain.load for gain in found)
    loads = [float(load) for load in range(int(last) + 1)]
    means = Panel(drawing, (60, 50, 340, 250), (0, last), (0, top))
    ticks = [float(value) for value in range(0, top + 1, step)]
    means.axes("mean JCT, hours", "jobs an hour", loads, ticks)
    times = Panel(drawing, (490, 50, 340, 250), (0, last), (1, 3.6))
    times.axes("gain: equal shares over tune", "jobs an hour", loads, [1, 1.5, 2, 2.5, 3, 3.5])
    level = [times.at(0, PUBLISHED), times.at(last, PUBLISHED)]
    drawing.line(level, "#1b7f3b", 1.5, "8 3 2 3")
    drawing.text(level[0][0] + 6, level[0][1] - 5, f"published: up to {PUBLISHED} x", 11)
    for policy in DRAWN:
        of, colour = _of(found, "free", policy), COLOURS[policy]
        for name, dash in (("proportional", "6 4"), ("tune", "")):
            points = [getattr(gain, name) for gain in of]
            hollow = [not point.steady for point in points]
            means.curve([(point.load, point.mean) for point in points], colour, dash, hollow)
        for costs, dash in (("free", ""), ("charged", "2 3")):
            of = _of(found, costs, policy)
            hollow = [not gain.steady for gain in of]
            times.curve([(gain.load, gain.times) for gain in of], colour, dash, hollow)
    _legend(drawing)
    return drawing.written()


def _legend(drawing: Drawing) -> None:
    for row, policy in enumerate(DRAWN):
        y, colour = 358.0 + 18 * row, COLOURS[policy]
        drawing.line([(60, y), (95, y)], colour, 2, "6 4")
        drawing.text(101, y + 4, f"{policy}, equal shares", 11)
        drawing.line([(235, y), (270, y)], colour, 2)
        drawing.text(276, y + 4, f"{policy}, tune", 11)
        drawing.line([(490, y), (525, y)], colour, 2, "2 3")
        drawing.text(531, y + 4, f"{policy}, restarts 30 s, spanning 10 %", 11)
    drawing.text(60, 394, "hollow: arrivals ended before the last measured job did", 11)


def progress(done: int, total: int | None) -> None:
    """Say how far it is, on standard error."""
    end = "\n" if done == total else "\r"
    print(f"{done} of {total} runs", end=end, file=sys.stderr, flush=True)


def main() -> None:
    """Run the sweep, or read what an earlier one wrote, and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smaller sweep, for trying it")
    parser.add_argument("--sizes", default="philly", help="philly, mix or single")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--jobs", type=int, help="jobs that arrive, 5000 or more")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, default=Path("out/synergy"), help="folder to write to")
    parser.add_argument("--again", action="store_true", help="draw from figure.json in that folder")
    given = parser.parse_args()
    kept = given.out / "figure.json"
    if given.again and not kept.exists():
        sys.exit(f"{kept} does not exist: run the sweep first, without --again.")
    if given.again:
        stored = json.loads(kept.read_text())
        about, points = stored["about"], [Point(**point) for point in stored["points"]]
    else:
        sweep = QUICK if given.quick else FULL
        sweep = sweep._replace(jobs=given.jobs or sweep.jobs)
        asked = sweep.points()
        replays = [settings(sweep, given.sizes, given.seed, point) for point in asked]
        runs = grid(replays, given.processes, progress)
        points = [outcome(point, run) for point, run in zip(asked, runs, strict=True)]
        about = (
            f"{sweep.cluster}; generate:synergy with {sweep.jobs} jobs, sizes={given.sizes}, "
            f"split 20/70/10, seed {given.seed}; jobs {sweep.measure} measured"
        )
    found = gains(points)
    print(about)
    print(table(found))
    given.out.mkdir(parents=True, exist_ok=True)
    stored = {"about": about, "points": [point._asdict() for point in points]}
    kept.write_text(json.dumps(stored, indent=1) + "\n")
    (given.out / "figure.html").write_text(html(found, about))
    (given.out / "figure.svg").write_text(picture(found))


if __name__ == "__main__":
    main()
