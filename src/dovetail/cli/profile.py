"""`dovetail profile`: measure what a command profits from, say it, keep it as a profile.

This module turns options into a search and shows what came back; measuring and reckoning are done
in `dovetail.profiler`, words and curves in `dovetail.report.profiles`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli import options, output
from dovetail.model.errors import UserError

if TYPE_CHECKING:  # for speed: `dovetail --help` must not load numpy
    from dovetail.model.profile import Profile
    from dovetail.profiler.data import Data
    from dovetail.profiler.measurement import Measurement
    from dovetail.profiler.running import Window
    from dovetail.profiler.sensitivity import Findings, Task
    from dovetail.profiles import Catalogue

SCHEMA = "dovetail/profile/1"
CORES = 3.0
"""Per GPU at the reference share, unless said otherwise or fewer were tried."""

CommandArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="COMMAND",
        help="What to measure. It reports its steps through dovetail_client; {cores} in it becomes "
        "the number of cores.",
        show_default=False,
    ),
]


def profile(
    command: CommandArgument = None,
    *,
    gpus: Annotated[int, typer.Option(min=1, help="GPUs the command uses.")] = 1,
    cores: Annotated[int | None, typer.Option(help="Most cores to try; all there are.")] = None,
    reference_cores: Annotated[
        float | None, typer.Option(help="Cores per GPU at which speed counts as 1; 3.")
    ] = None,
    reference_memory: Annotated[
        float, typer.Option(metavar="GIB", help="Memory per GPU at which speed counts as 1.")
    ] = 62.5,
    dataset: Annotated[
        Path | None, typer.Option(help="File or folder it reads: for its size and bandwidth.")
    ] = None,
    dataset_size: Annotated[
        float | None, typer.Option(metavar="GIB", help="What one pass over the data reads.")
    ] = None,
    epoch_steps: Annotated[
        int | None, typer.Option(help="Steps in one pass over the data; else as reported.")
    ] = None,
    storage_bandwidth: Annotated[
        float | None, typer.Option(metavar="MB/S", help="Measured at --dataset unless given.")
    ] = None,
    working_memory: Annotated[
        float | None, typer.Option(metavar="GIB", help="Needed besides the data; else as seen.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="To measure at each point.")] = 20.0,
    warmup: Annotated[
        float | None, typer.Option(help="Seconds before that; a quarter of them, at least 1.")
    ] = None,
    patience: Annotated[
        float, typer.Option(help="Seconds without a report after which to give up.")
    ] = 120.0,
    points: Annotated[int, typer.Option(help="Most core counts to measure.")] = 8,
    name: Annotated[str | None, typer.Option(help="Of the profile; else the script's.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Add the profile to a file.")
    ] = None,
    html_file: options.Html = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
    show: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show a known profile instead.")
    ] = None,
    profiles: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="With --show: more profiles.")
    ] = None,
) -> None:
    """Measure how a command's speed depends on its cores and memory.

    Runs it on a few core counts, calculates what less memory would do, and says what it needs.
    """
    output.check_writable(html_file, out)
    if show is not None:
        _refuse_command(command)
        _show(_known(show, profiles), None, as_json, html_file)
        return
    if not command:
        raise UserError("give the command to measure: dovetail profile -- python train.py")
    from dovetail.profiler.data import Data  # noqa: PLC0415
    from dovetail.profiler.running import Window  # noqa: PLC0415
    from dovetail.profiler.sensitivity import Task  # noqa: PLC0415

    _check_above_zero("--reference-cores", reference_cores)
    _check_above_zero("--reference-memory", reference_memory)
    _check_above_zero("--working-memory", working_memory)
    counts = _counts(cores, gpus)
    reference = (reference_cores or min(CORES, counts), reference_memory)
    task = Task(name or _name(command), gpus, reference, working_memory, counts)
    window = Window(seconds, max(1.0, seconds / 4) if warmup is None else warmup, patience)
    data = Data(dataset, dataset_size, epoch_steps, storage_bandwidth)
    others = _kept(out)
    measured, stopped = _measure(command, task, window, points, data)
    findings = _findings(task, measured, data, stopped)
    _show(findings.profile, findings, as_json, html_file)
    if out is not None:
        _keep(out, others, findings.profile)
    if stopped:
        raise SystemExit(130)


def _refuse_command(command: list[str] | None) -> None:
    if command:
        raise UserError("--show takes no command: it shows a profile that is known")


def _counts(cores: int | None, gpus: int) -> int:
    """Up to how many cores per GPU there are to try."""
    from dovetail.profiler.pinning import available_cores, check_cores  # noqa: PLC0415

    most = len(available_cores()) if cores is None else cores
    check_cores(most)
    if most < gpus:
        raise UserError(f"{gpus} GPUs need at least {gpus} cores to try, and there are {most}")
    return most // gpus


def _check_above_zero(option: str, value: float | None) -> None:
    if value is not None and not (isfinite(value) and value > 0):
        raise UserError(f"{option} must be a number above 0")


def _name(command: list[str]) -> str:
    """The script's name, or the program's."""
    scripts = [word for word in command if word.endswith(".py")]
    return Path(scripts[0] if scripts else command[0]).stem


def _measure(
    command: list[str], task: Task, window: Window, points: int, data: Data
) -> tuple[list[Measurement], bool]:
    from dovetail.profiler.bisection import Bisection  # noqa: PLC0415
    from dovetail.profiler.running import least_disturbed  # noqa: PLC0415
    from dovetail.profiler.session import explore  # noqa: PLC0415

    search = Bisection(1, task.counts, points=points)
    with output.progress_bar("points", min(points, task.counts)) as progress:

        def measured(count: int) -> Measurement:
            return data.check(least_disturbed(command, count * task.gpus, window))

        return explore(search, measured, lambda done: progress(done, None))


def _findings(task: Task, measured: list[Measurement], data: Data, stopped: bool) -> Findings:
    from dovetail.profiler.sensitivity import compose  # noqa: PLC0415

    if stopped and len(measured) < 2:
        raise UserError("stopped before two points were measured: there is nothing to keep")
    dataset = data.found(max(each.epoch for each in measured), task.counts * task.gpus)
    findings = compose(task, measured, dataset)
    if not stopped:
        return findings
    early = f"Stopped after {len(measured)} points: the curve between them is coarse."
    return replace(findings, notices=(early, *findings.notices))


def _kept(path: Path | None) -> Catalogue:
    """What is in the file already: refused before measuring if it cannot be read."""
    from dovetail.profiles import read_profiles  # noqa: PLC0415

    return read_profiles(str(path)) if path is not None and path.exists() else {}


def _keep(path: Path, others: Catalogue, profile: Profile) -> None:
    from dovetail.profiles import written  # noqa: PLC0415

    output.write(path, written({**others, profile.name: profile}))
    typer.echo(f"Kept as {profile.name!r} in {path}.", err=True)


def _known(name: str, file: Path | None) -> Profile:
    from dovetail.core.registry import nearest  # noqa: PLC0415
    from dovetail.profiles import catalogue  # noqa: PLC0415

    there = catalogue(None if file is None else str(file))
    if name not in there:
        raise UserError(f"unknown profile {name!r}{nearest(name, list(there))}")
    return there[name]


def _show(
    profile: Profile, findings: Findings | None, as_json: bool, html_file: Path | None
) -> None:
    if as_json:
        typer.echo(json.dumps(_as_json(profile, findings), indent=2, allow_nan=False))
    else:
        from rich.console import Console  # noqa: PLC0415

        from dovetail.cli.profile_tables import drawn  # noqa: PLC0415

        console = Console(highlight=False)
        for part in drawn(profile, findings):
            console.print(part)
    if html_file is not None:
        from dovetail.report.profiles import html_profile  # noqa: PLC0415

        output.write(html_file, html_profile(profile, findings))


def _as_json(profile: Profile, findings: Findings | None) -> dict[str, Any]:
    from dovetail.profiler.needs import Needs  # noqa: PLC0415
    from dovetail.report.profiles import needs  # noqa: PLC0415

    shown = {
        "schema": SCHEMA,
        "name": profile.name,
        "says": needs(profile),
        "needs": asdict(Needs.of(profile)),
        "reference": dict(zip(("cores", "memory"), profile.reference, strict=True)),
        "step_seconds": profile.step or None,
        "surface": asdict(profile.surface),
        "source": profile.source,
    }
    return shown if findings is None else {**shown, **_measuring(findings)}


def _measuring(findings: Findings) -> dict[str, Any]:
    spent = findings.cost
    return {
        "gpus": findings.gpus,
        "points": [asdict(each) for each in findings.measured],
        "cost": {**asdict(spent), "grid_seconds": spent.grid_seconds, "share": spent.share},
        "expected_error": findings.error,
        "noise": findings.noise,
        "notices": list(findings.notices),
    }
