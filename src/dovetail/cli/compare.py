"""`dovetail compare`: several policies on one trace, each with several seeds, side by side.

Replays run in parallel processes; this module turns options into settings, shows progress and
writes what came back. It knows neither how a replay works nor how a figure is computed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli import options, output
from dovetail.model.errors import UserError

if TYPE_CHECKING:  # for speed: `dovetail --help` must not load the simulator
    from dovetail.metrics.records import Run
    from dovetail.report.measures import Result
    from dovetail.simulator.experiment import Replay

SCHEMA = "dovetail/comparison/1"

POLICIES_HELP = (
    "Policies to compare, separated by commas or semicolons. Parameters may contain commas: "
    "'fifo,las:thresholds=3250/7200,promote=8,srtf' is three policies, because 'promote=8' "
    "continues the one before it. A semicolon always begins a new policy."
)
SEEDS_HELP = (
    "How many seeds (5 is 0 to 4), or which: '3,7,11' (a single one: '7,'). With several, a "
    "generated trace that names no seed is generated anew for each."
)


def split_policies(text: str) -> list[str]:
    """The policies named in `text`, in order, each once.

    A comma begins a new policy unless what follows it is `key=value`, which then continues the
    parameters of the policy before; a name may carry a colon, a key never does.
    """
    found = [policy for part in text.split(";") for policy in _split_at_commas(part)]
    if not found:
        raise UserError("--policies names no policy; try --policies fifo,srtf,las.")
    return list(dict.fromkeys(found))


def _split_at_commas(part: str) -> list[str]:
    found: list[str] = []
    for token in filter(None, (token.strip() for token in part.split(","))):
        if not _continues(token):
            found.append(token)
        elif found and ":" in found[-1]:
            found[-1] += f",{token}"
        else:
            raise UserError(_stray(token, found))
    return found


def _continues(token: str) -> bool:
    return "=" in token and ":" not in token.split("=", 1)[0]


def _stray(token: str, found: Sequence[str]) -> str:
    if not found:
        return f"--policies begins with '{token}'; a parameter comes after a policy and a colon."
    return f"--policies has '{token}' after '{found[-1]}'; did you mean '{found[-1]}:{token}'?"


def parse_seeds(text: str) -> list[int]:
    """`5` is the seeds 0 to 4; `3,7` is these two; `7,` is seven alone."""
    try:
        numbers = [int(token) for token in text.split(",") if token.strip()]
    except ValueError:
        raise UserError(f"--seeds {text} is neither a number nor a list such as 3,7,11.") from None
    if "," not in text:
        numbers = list(range(numbers[0])) if numbers else []
    if not numbers or min(numbers) < 0:
        raise UserError(f"--seeds {text} leaves no seed; give a number from 1, or a list.")
    return list(dict.fromkeys(numbers))


def compare(
    trace: options.Trace,
    *,
    cluster: options.Cluster,
    policies: Annotated[str, typer.Option(help=POLICIES_HELP)] = "fifo,srtf,las",
    seeds: Annotated[str, typer.Option(help=SEEDS_HELP)] = "1",
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
    processes: Annotated[
        int | None, typer.Option(min=1, help="Replays at a time; one per core unless given.")
    ] = None,
    json_file: options.Json = None,
    html_file: options.Html = None,
) -> None:
    """Replay a trace under several policies and show them side by side.

    Every policy runs with every seed. Over several seeds, figures are means with 95 % intervals.
    The best of each column is marked.
    """
    output.check_writable(json_file, html_file)
    common = {
        "trace": trace,
        "cluster": cluster,
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
        "skip_bad": skip_bad,
        "series": html_file is not None,
    }
    settings = replays(common, split_policies(policies), parse_seeds(seeds))
    found = _results(settings, _run(settings, processes or os.cpu_count() or 1))
    _show(found, to_stderr=output.is_stdout(json_file))
    if json_file is not None:
        output.write_json(json_file, as_json(found))
    if html_file is not None:
        _write_html(html_file, found)


def replays(common: dict[str, Any], policies: Sequence[str], seeds: Sequence[int]) -> list[Replay]:
    """One replay per policy and seed. What was not asked for is left to the engine's defaults."""
    from dovetail.simulator.experiment import Replay  # noqa: PLC0415

    asked = {name: value for name, value in common.items() if value is not None}
    return [
        Replay(**{**asked, "trace": _seeded(asked["trace"], seed, seeds)}, policy=policy, seed=seed)
        for policy in policies
        for seed in seeds
    ]


def _seeded(trace: str, seed: int, seeds: Sequence[int]) -> str:
    """Another generated trace for each of several seeds, unless the person fixed it."""
    fixed = not trace.startswith("generate:") or ",seed=" in trace or len(seeds) == 1
    return trace if fixed else f"{trace},seed={seed}"


class Found:
    """One replay that came back: its label, the run and the result made of it."""

    def __init__(self, label: str, run: Run) -> None:
        from dovetail.metrics.summary import summarise  # noqa: PLC0415

        self.label, self.run, self.result = label, run, summarise(run)


def _results(settings: Sequence[Replay], runs: Sequence[Run]) -> list[Found]:
    return [Found(each.policy, run) for each, run in zip(settings, runs, strict=True)]


def _run(settings: list[Replay], processes: int) -> list[Run]:
    from dovetail.simulator.experiment import grid  # noqa: PLC0415

    with output.progress_bar("replays", len(settings)) as progress:
        return grid(settings, min(processes, len(settings)), progress)


def _grouped(found: Sequence[Found]) -> dict[str, list[Result]]:
    from dovetail.report.measures import grouped  # noqa: PLC0415

    return grouped([(each.label, each.result) for each in found])


def _show(found: Sequence[Found], to_stderr: bool) -> None:
    from rich.console import Console  # noqa: PLC0415

    from dovetail.cli.tables import comparison_tables  # noqa: PLC0415
    from dovetail.report.measures import headline  # noqa: PLC0415

    groups = _grouped(found)
    console = Console(stderr=to_stderr, highlight=False)
    for table in comparison_tables(groups):
        console.print(table)
    if said := headline(groups):
        console.print(said, markup=False)


def as_json(found: Sequence[Found]) -> dict[str, Any]:
    """All results, and per policy the mean and 95 % half width of what the tables show."""
    from dovetail.metrics.intervals import interval  # noqa: PLC0415
    from dovetail.report.measures import TIMES, USE  # noqa: PLC0415

    def figures(results: Sequence[Result]) -> dict[str, Any]:
        shown = {}
        for measure in (*TIMES, *USE):
            values = [value for r in results if (value := measure.of(r)) is not None]
            each = interval(values)
            shown[".".join(measure.path)] = None if each is None else each._asdict()
        return shown

    policies = {label: figures(results) for label, results in _grouped(found).items()}
    return {"schema": SCHEMA, "policies": policies, "results": [each.result for each in found]}


def _write_html(path: Path, found: Sequence[Found]) -> None:
    from dovetail.report.html import html_report  # noqa: PLC0415

    first = found[0].result
    title = f"{len(_grouped(found))} policies on {Path(str(first['trace'])).name}"
    runs = [(each.label, each.run) for each in found]
    output.write(path, html_report(runs, title, [each.result for each in found]))
