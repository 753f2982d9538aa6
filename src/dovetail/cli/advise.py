"""`dovetail advise`: what other policies would have made of a Slurm cluster's history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli import options
from dovetail.cli.compare import split_policies
from dovetail.cli.talking import AsJson, print_json
from dovetail.report.words import compact, count, percent

if TYPE_CHECKING:
    from dovetail.simulator.advice import Outcome

POLICIES = "fifo:backfill=easy;sjf:backfill=easy;las"
HEADINGS = ("", "jobs", "mean wait", "p95 wait", "mean JCT", "GPU use", "CPU stranded")
LEGEND = (
    "CPU stranded: of the cores that go with GPUs in use, those that no job had. Lengths are as "
    "recorded;\nestimates are the time limits that owners asked for."
)


def advise(
    history: Annotated[str, typer.Argument(help="What sacct printed: see the guide on Slurm.")],
    cluster: options.Cluster,
    policies: Annotated[str, typer.Option(help="As for compare.")] = POLICIES,
    restart_cost: options.RestartCost = None,
    as_json: AsJson = False,
) -> None:
    """Replay a Slurm cluster's history: what would have changed? Nothing is scheduled."""
    from dovetail.simulator.advice import advise as find  # noqa: PLC0415

    found = find(history, cluster, split_policies(policies), restart_cost)
    if as_json:
        print_json([each._asdict() for each in found])
        return
    rows = [HEADINGS, *(_row(each) for each in found)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADINGS))]
    for row in rows:
        cells = [text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True)]
        typer.echo("  ".join([row[0].ljust(widths[0]), *cells]).rstrip())
    typer.echo(f"\n{LEGEND}")


def _row(found: Outcome) -> tuple[str, ...]:
    return (
        found.name,
        count(found.jobs),
        compact(found.mean_wait),
        compact(found.tail_wait),
        compact(found.mean_completion),
        percent(found.gpu_use),
        percent(found.stranded_cpu),
    )
