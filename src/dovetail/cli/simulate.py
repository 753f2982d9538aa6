"""`dovetail simulate`: replay one trace under one policy. `dovetail policies`: what there is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli import options, output

if TYPE_CHECKING:  # for speed: `dovetail --help` must not load the simulator
    from dovetail.metrics.records import Run


def simulate(
    trace: options.Trace,
    *,
    cluster: options.Cluster,
    policy: Annotated[
        str, typer.Option(help="An ordering or a recipe with parameters: las:round=60.")
    ] = "fifo",
    allocator: options.Allocator = None,
    placement: options.Placement = None,
    predictor: options.Predictor = None,
    profiles: options.Profiles = None,
    format: options.Format = None,
    partition_by: options.PartitionBy = None,
    tenancy: options.Tenancy = None,
    restart_cost: options.RestartCost = None,
    stop_cost: options.StopCost = None,
    move_cost: options.MoveCost = None,
    profiling_cost: options.ProfilingCost = None,
    span_penalty: options.SpanPenalty = None,
    start: options.From = None,
    stop: options.To = None,
    measure: options.Measure = None,
    faults: options.Faults = None,
    quotas: options.Quotas = None,
    skip_bad: options.SkipBad = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    json_file: options.Json = None,
    jobs_file: Annotated[
        Path | None, typer.Option("--jobs", help="Write one CSV line per job (.gz: compressed).")
    ] = None,
    html_file: options.Html = None,
) -> None:
    """Replay a trace under one policy and show what came of it."""
    from dovetail.simulator.experiment import Replay, replay  # noqa: PLC0415

    output.check_writable(json_file, jobs_file, html_file)
    asked: dict[str, Any] = {
        "allocator": allocator,
        "placement": placement,
        "predictor": predictor,
        "profiles": profiles,
        "profiling_cost": profiling_cost,
        "format": format,
        "partition_by": partition_by,
        "tenancy": tenancy,
        "restart_cost": restart_cost,
        "stop_cost": stop_cost,
        "move_cost": move_cost,
        "span_penalty": span_penalty,
        "start": start,
        "stop": stop,
        "measure": measure,
        "faults": faults,
        "quotas": quotas,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    settings = Replay(
        trace, cluster, policy, seed=seed, skip_bad=skip_bad, series=html_file is not None, **given
    )
    with output.progress_bar("jobs", None) as progress:
        run = replay(settings, progress)
    _show(run, policy, json_file, jobs_file, html_file)


def _show(
    run: Run, policy: str, json_file: Path | None, jobs_file: Path | None, html_file: Path | None
) -> None:
    from rich.console import Console  # noqa: PLC0415

    from dovetail.cli.tables import result_tables  # noqa: PLC0415
    from dovetail.metrics.summary import summarise  # noqa: PLC0415

    result = summarise(run)
    console = Console(stderr=output.is_stdout(json_file), highlight=False)
    for table in result_tables(result):
        console.print(table)
    if json_file is not None:
        output.write_json(json_file, result)
    if jobs_file is not None:
        from dovetail.metrics.jobs_csv import write_jobs  # noqa: PLC0415

        with output.writing(jobs_file):
            write_jobs(run, jobs_file)
    if html_file is not None:
        from dovetail.report.html import write_report  # noqa: PLC0415

        with output.writing(html_file):
            write_report(html_file, [(policy, run)], f"{policy} on {Path(result['trace']).name}")


def policies(
    json_file: options.Json = None,
) -> None:
    """List orderings, recipes, placements, allocators and predictors, with their parameters."""
    from rich.console import Console  # noqa: PLC0415

    from dovetail.cli.catalogue import catalogue, tables  # noqa: PLC0415

    output.check_writable(json_file)
    if json_file is not None:
        output.write_json(json_file, catalogue())
        return
    console = Console(highlight=False)
    for table in tables(catalogue()):
        console.print(table)
    console.print("Times are in seconds, thresholds in GPU-seconds.", style="dim")
