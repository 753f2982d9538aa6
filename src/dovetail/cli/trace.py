"""`dovetail trace`: look into a trace, turn it into the native format, make one up.

This module turns options into calls and draws what comes back; reading, checking and counting are
done in `dovetail.traces`. Drawings fit a terminal of 80 columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:  # for speed: `dovetail --help` must not load rich or the readers
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from dovetail.model.trace import Trace
    from dovetail.traces.summary import Summary

SCHEMA = "dovetail/trace-summary/1"
TENANTS = 10
"""Tenants shown by name."""
SIZES = 16
"""Different sizes shown each by itself."""
BAR = 40
"""Cells of the longest bar."""
EIGHTHS = " ▏▎▍▌▋▊▉"

TraceArgument = Annotated[
    str, typer.Argument(metavar="TRACE", help="A trace file, or generate:KIND,key=value,…")
]
ClusterOption = Annotated[
    str | None, typer.Option(help="NxG, NxG,cpus=…,mem=…, or a cluster file.")
]
FormatOption = Annotated[
    str | None,
    typer.Option(help="NAME[:key=value,…] or path.py:name; recognised from the file unless given."),
]
FromOption = Annotated[
    str | None, typer.Option("--from", help="First submission: a date or seconds.")
]
ToOption = Annotated[str | None, typer.Option("--to", help="Last submission: a date or seconds.")]
SkipOption = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out lines of the trace that are wrong.")
]
OutArgument = Annotated[
    str, typer.Argument(metavar="OUT.csv[.gz]", help="Native CSV to write; .gz packs it.")
]

app = typer.Typer(
    help="Look into traces, convert them to the native format, generate them.",
    no_args_is_help=True,
)


@app.command()
def inspect(
    trace: TraceArgument,
    *,
    cluster: ClusterOption = None,
    format: FormatOption = None,
    start: FromOption = None,
    stop: ToOption = None,
    skip_bad: SkipOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Show what is in a trace: jobs, sizes, lengths, owners and, for a cluster, the load."""
    from dovetail.traces.loader import load  # noqa: PLC0415
    from dovetail.traces.summary import summarise  # noqa: PLC0415

    gpus = _gpus(cluster)
    loaded = load(
        trace, format=format, start=start, stop=stop, skip_bad=skip_bad, cluster_gpus=gpus
    )
    summary = summarise(loaded)
    if as_json:
        typer.echo(json.dumps(_as_json(summary, cluster, gpus), indent=2, allow_nan=False))
        return
    from rich.console import Console  # noqa: PLC0415

    console = Console(highlight=False)
    for part in _drawn(summary, cluster, gpus):
        console.print(part)


@app.command()
def convert(
    trace: TraceArgument,
    out: OutArgument,
    *,
    format: FormatOption = None,
    start: FromOption = None,
    stop: ToOption = None,
    skip_bad: SkipOption = False,
) -> None:
    """Write a trace as native CSV."""
    from dovetail.traces.loader import load  # noqa: PLC0415

    _write(load(trace, format=format, start=start, stop=stop, skip_bad=skip_bad), out)


@app.command()
def generate(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND,key=value,…", help="As in philly,jobs=1000,load=0.8,gpus=1024,seed=1"
        ),
    ],
    out: OutArgument,
    *,
    cluster: ClusterOption = None,
) -> None:
    """Make a workload up and write it as native CSV."""
    from dovetail.traces.generator import generate  # noqa: PLC0415

    _write(generate(kind.removeprefix("generate:"), _gpus(cluster)), out)


def _write(trace: Trace, out: str) -> None:
    from dovetail.traces.writer import write  # noqa: PLC0415

    written = write(trace, out)
    for notice in trace.notices:
        typer.echo(f"! {notice}", err=True)
    typer.echo(f"{out}: {written:,} jobs")


def _gpus(cluster: str | None) -> int | None:
    if cluster is None:
        return None
    from dovetail.simulator.spec import parse_cluster  # noqa: PLC0415

    return parse_cluster(cluster).gpus


def _as_json(summary: Summary, cluster: str | None, gpus: int | None) -> dict[str, object]:
    figures = {"schema": SCHEMA, **asdict(summary), "span": summary.span}
    if gpus is not None:
        figures["cluster"] = {
            "spec": cluster,
            "gpus": gpus,
            "offered_load": summary.load(gpus),
            "jobs_too_wide": summary.wider_than(gpus),
        }
    return figures


# ---- drawing --------------------------------------------------------------------------------


def _drawn(summary: Summary, cluster: str | None, gpus: int | None) -> Iterator[RenderableType]:
    yield _facts([*_workload(summary), *_against(summary, cluster, gpus)])
    yield _histogram("Sizes", _sizes(summary.sizes), summary.jobs)
    yield _histogram("Lengths, from", summary.durations, summary.jobs)
    if set(summary.tenants) != {""}:
        yield _histogram("Tenants", _top(summary.tenants), summary.jobs)
    for notice in summary.notices:
        yield _plain(f"! {notice}", "yellow")


def _workload(summary: Summary) -> Iterator[tuple[str, str]]:
    from dovetail.report.words import count, duration  # noqa: PLC0415

    yield "trace", f"{summary.trace} ({summary.format})"
    kinds = {"without a GPU": summary.cpu_jobs, "on a share of a GPU": summary.shared_jobs}
    said = [f"{count(number)} {kind}" for kind, number in kinds.items() if number]
    yield "jobs", ", ".join([count(summary.jobs), *said])
    yield "outcomes", ", ".join(f"{count(n)} {name}" for name, n in summary.outcomes.items())
    begin = summary.origin or duration(summary.first_submit)
    yield "submitted", f"from {begin}, within {duration(summary.span)}"
    hours = summary.gpu_seconds / 3600
    yield (
        "GPU time",
        f"{hours:.3g} GPU-hours" if hours < 100 else f"{count(round(hours))} GPU-hours",
    )
    lengths = [f"{name} {duration(at)}" for name, at in summary.duration.items()]
    yield "length", ", ".join(lengths)


def _against(summary: Summary, cluster: str | None, gpus: int | None) -> Iterator[tuple[str, str]]:
    from dovetail.report.words import count  # noqa: PLC0415

    if gpus is None:
        return
    load = summary.load(gpus)
    said = "all jobs come at once" if load is None else f"offered load {load:.3f}"
    wide = summary.wider_than(gpus)
    more = f"; jobs wider than that: {count(wide)}" if wide else ""
    yield "cluster", f"{cluster}: {count(gpus)} GPUs, {said}{more}"


def _sizes(sizes: dict[int, int]) -> dict[str, int]:
    """Each size by itself, or, where there are too many, from one power of two to the next."""
    shown: dict[str, int] = {}
    for size, jobs in sizes.items():
        name = _size(size, alone=len(sizes) <= SIZES)
        shown[name] = shown.get(name, 0) + jobs
    return shown


def _size(size: int, alone: bool) -> str:
    if alone or size <= 2:
        return "1 GPU" if size == 1 else f"{size} GPUs"
    top = 1 << (size - 1).bit_length()
    return f"{top // 2 + 1} to {top} GPUs"


def _top(tenants: dict[str, int]) -> dict[str, int]:
    """The largest by name, the others together."""
    named = list(tenants.items())
    shown = {name or "(none)": jobs for name, jobs in named[:TENANTS]}
    others = sum(jobs for _, jobs in named[TENANTS:])
    return {**shown, f"{len(named) - TENANTS} others": others} if others else shown


def _facts(rows: Iterable[tuple[str, str]]) -> Table:
    table = _table("")
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(_plain(name), _plain(value))
    return table


def _histogram(title: str, jobs: dict[str, int], whole: int) -> Table:
    """One row per bucket: its name, its jobs, their share, and a bar."""
    from dovetail.report.words import count, percent  # noqa: PLC0415

    table = _table(title)
    table.add_column(min_width=12, max_width=20, overflow="fold")
    table.add_column(justify="right", min_width=9)
    table.add_column(justify="right", min_width=8)
    table.add_column(no_wrap=True)
    most = max(jobs.values(), default=1)
    for name, number in jobs.items():
        cells = (name, count(number), percent(number / whole if whole else 0.0))
        table.add_row(*map(_plain, cells), _plain(bar(number / most if most else 0), "cyan"))
    return table


def bar(share: float, width: int = BAR) -> str:
    """A bar of blocks, exact to an eighth of a cell; the least share is still seen."""
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    full, rest = divmod(eighths, 8)
    return "█" * full + (EIGHTHS[rest] if rest else "")


def _table(title: str) -> Table:
    from rich.table import Table  # noqa: PLC0415

    return Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=None,
        show_header=False,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )


def _plain(content: str, style: str = "") -> Text:
    """Text taken as it is: brackets in a path are not markup."""
    from rich.text import Text  # noqa: PLC0415

    return Text(content, style)
