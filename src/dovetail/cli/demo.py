"""`dovetail demo`: the main job in a minute, on a trace it makes itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TRACE = "generate:philly,jobs=20000,load=1.0,seed=1"
CLUSTER = "16x8"
POLICIES = "fifo;fifo:backfill=easy;sjf:skip=true;srtf;las"


def demo(
    out: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("demo.html"),
) -> None:
    """Replay a Philly-like workload under five policies; show a table and write a report."""
    from dovetail.cli.compare import compare  # noqa: PLC0415

    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    print(f"20,000 jobs like those of Microsoft's Philly cluster, on {CLUSTER} GPUs:\n")
    compare(TRACE, cluster=CLUSTER, policies=POLICIES, html_file=out)
    print(f"\nThe same with plots: {out}")
    print(f"Your own: dovetail compare TRACE --cluster {CLUSTER} --policies 'fifo;srtf'")
