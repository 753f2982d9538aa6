"""Options that several commands share, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Trace = Annotated[str, typer.Argument(help="A trace file, or generate:KIND,key=value,…")]
Cluster = Annotated[str, typer.Option(help="NxG, NxG,cpus=…,mem=…, or a cluster file.")]
Allocator = Annotated[str | None, typer.Option(help="How CPU and memory are split.")]
Placement = Annotated[str | None, typer.Option(help="Where jobs go.")]
Predictor = Annotated[str | None, typer.Option(help="What is believed about lengths.")]
Profiles = Annotated[
    str | None, typer.Option(help="A file of sensitivity profiles, over the published ones.")
]
ProfilingCost = Annotated[
    float | None, typer.Option(help="Seconds each job is measured for when it first starts.")
]
Format = Annotated[str | None, typer.Option(help="Format of the trace.")]
PartitionBy = Annotated[
    str | None, typer.Option(help="COLUMN=FILE with node counts per partition.")
]
Tenancy = Annotated[
    str | None,
    typer.Option(help="Who owns what: cells, private or shares, with :FILE of tenants."),
]
LiveTenancy = Annotated[
    str | None,
    typer.Option(help="Who owns what: cells:FILE, shares:FILE, none; else as it was before."),
]
RestartCost = Annotated[
    float | None, typer.Option(help="Seconds without progress after a restart.")
]
StopCost = Annotated[
    float | None, typer.Option(help="Seconds from a stop until the devices are free.")
]
MoveCost = Annotated[float | None, typer.Option(help="Seconds without progress after a move.")]
SpanPenalty = Annotated[
    float | None, typer.Option(help="0.1: a job on more nodes than it needs takes 10 % longer.")
]
From = Annotated[str | None, typer.Option("--from", help="First submission: a date or seconds.")]
To = Annotated[str | None, typer.Option("--to", help="Last submission: a date or seconds.")]
Measure = Annotated[str | None, typer.Option(help="A:B counts jobs A to B-1 in submit order.")]
Faults = Annotated[
    str | None, typer.Option(help="What goes wrong: trace, a CSV of node events, or rates.")
]
Quotas = Annotated[
    str | None, typer.Option(help="GPUs held at most: alice=4,group:lab=8,*=2, or a TOML file.")
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out lines of the trace that are wrong.")
]
Json = Annotated[
    Path | None, typer.Option("--json", help="Write the result; '-' is standard output.")
]
Html = Annotated[Path | None, typer.Option("--html", help="Write a report that opens offline.")]
