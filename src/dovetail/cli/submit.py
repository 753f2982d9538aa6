"""`dovetail submit`: have a command, or a task from a file, run."""

from __future__ import annotations

import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.output import printable
from dovetail.cli.talking import AsJson, DataDir, box, print_json
from dovetail.model.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from dovetail.live import Box
    from dovetail.model.live import Receipt

OPTIONS = {"secrets": "secret", "held": "hold"}
"""Options that are not called like the field they set."""


def submit(
    command: Annotated[
        list[str] | None, typer.Argument(help="The command, after --, or a task file.")
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="A task file (YAML).")] = None,
    name: Annotated[str | None, typer.Option("--name", "-n", help="What it is called.")] = None,
    gpus: Annotated[float | None, typer.Option(help="GPUs, or a part of one below 1.")] = None,
    cpus: Annotated[
        str | None, typer.Option(help="Cores, or auto: as the policy sees fit.")
    ] = None,
    memory: Annotated[str | None, typer.Option(help="Like 16G, or auto.")] = None,
    gpu_type: Annotated[str | None, typer.Option(help="Only GPUs of this type.")] = None,
    priority: Annotated[str | None, typer.Option(help="low, normal, high or a number.")] = None,
    tenant: Annotated[
        str | None, typer.Option(help="Whose job it is, where you may choose.")
    ] = None,
    borrow: Annotated[
        bool, typer.Option("--borrow", help="Run on what owners leave idle, until they want it.")
    ] = False,
    deadline: Annotated[str | None, typer.Option(help="Like 8h, from now.")] = None,
    time_limit: Annotated[str | None, typer.Option(help="Like 2h30m; then it is ended.")] = None,
    estimate: Annotated[str | None, typer.Option(help="How long you think it takes.")] = None,
    retries: Annotated[int | None, typer.Option(help="How often it may fail.")] = None,
    after: Annotated[str | None, typer.Option(help="Jobs that must be done first: 12,13.")] = None,
    after_any: Annotated[bool, typer.Option("--after-any", help="They only need to end.")] = False,
    array: Annotated[str | None, typer.Option(help="10, 0-9 or 1,3,5-7: alike jobs.")] = None,
    sweep: Annotated[
        list[str] | None, typer.Option(help="lr=0.1,0.01: a job for each combination.")
    ] = None,
    env: Annotated[list[str] | None, typer.Option(help="NAME=value, added for the job.")] = None,
    secret: Annotated[
        list[str] | None, typer.Option(help="NAME=value that is never shown.")
    ] = None,
    directory: Annotated[Path | None, typer.Option(help="Where it runs; default: here.")] = None,
    model: Annotated[str | None, typer.Option(help="Key of its sensitivity profile.")] = None,
    resumable: Annotated[
        bool, typer.Option("--resumable", help="It can checkpoint and be stopped for others.")
    ] = False,
    grace: Annotated[
        str | None, typer.Option(help="Like 2m: to save in, once asked to stop.")
    ] = None,
    on_reboot: Annotated[str | None, typer.Option(help="requeue or fail.")] = None,
    hold: Annotated[bool, typer.Option("--hold", help="Keep it from starting.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Show what it writes until it ends.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say where and when it would run.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Submit a job: dovetail submit --gpus 1 -- python train.py"""
    fields: dict[str, Any] = {
        "name": name,
        "gpus": gpus,
        "cpus": cpus,
        "memory": memory,
        "gpu_type": gpu_type,
        "priority": priority,
        "tenant": tenant,
        "borrow": borrow or None,
        "deadline": deadline,
        "time_limit": time_limit,
        "estimate": estimate,
        "retries": retries,
        "after": None if after is None else [job.strip() for job in after.split(",")],
        "after_any": after_any or None,
        "array": array,
        "sweep": _sweep(sweep),
        "secrets": _pairs(secret, "--secret"),
        "directory": None if directory is None else str(directory.resolve()),
        "model": model,
        "resumable": resumable or None,
        "grace": grace,
        "on_reboot": on_reboot,
        "held": hold or None,
    }
    given = {key: value for key, value in fields.items() if value is not None}
    task = _task(command or [], file, given, _pairs(env, "--env") or {})
    with box(data_dir) as found, _as_options(given):
        if found.address.folder is not None and (note := looked(task)):
            typer.echo(f"note: {note}", err=True)
        if dry_run:
            _preview(found, task, as_json)
            return
        receipt = found.submit_all([task])[0]
        if as_json:
            print_json(receipt)
        _tell(receipt, as_json or wait)
        if wait:
            with _going_on(receipt):
                _wait(found, receipt, as_json)


def _task(
    command: list[str], file: Path | None, given: dict[str, Any], extra: dict[str, str]
) -> dict[str, Any]:
    from dovetail.live import tasks  # noqa: PLC0415

    if file is None and len(command) == 1 and command[0].endswith((".yaml", ".yml")):
        file, command = Path(command[0]), []
    if (file is None) == (not command):
        raise UserError("give a command after --, or a task file: dovetail submit -- python x.py")
    made = tasks.read(file) if file is not None else tasks.task(command)
    return {**made, **given, "environment": {**made["environment"], **extra}}


@contextmanager
def _as_options(given: Collection[str]) -> Iterator[None]:
    """What the controller says of a field is told of the option that was typed."""
    try:
        yield
    except UserError as error:
        field, sign, said = str(error).removeprefix("tasks.0.").partition(": ")
        # Which one of several it is follows a dot.
        name = field.partition(".")[0]
        if not sign or name not in given:
            raise
        raise UserError(f"--{OPTIONS.get(name, name).replace('_', '-')}: {said}") from None


def looked(task: dict[str, Any]) -> str:
    """What can be seen to be wrong from here, before the job has waited for its turn: a note."""
    from shutil import which  # noqa: PLC0415

    directory, program = Path(task["directory"]), str(task["command"][0])
    if not directory.is_dir():
        raise UserError(f"{printable(str(directory))}: there is no such folder to run in")
    there = directory / program if "/" in program else program
    if which(there, path=task["environment"].get("PATH")) is not None:
        return ""
    return f"{printable(program)} is no command here, so far"


def _preview(found: Box, task: dict[str, Any], as_json: bool) -> None:
    from dovetail.cli.answer_texts import WIDTH  # noqa: PLC0415
    from dovetail.cli.job_tables import forecast_text  # noqa: PLC0415

    said = found.forecast(task)
    if as_json:
        print_json(said)
    elif said.possible:
        typer.echo("\n".join(textwrap.wrap(forecast_text(said), WIDTH)))
    if not said.possible:
        raise UserError(forecast_text(said))


def _tell(receipt: Receipt, quiet: bool) -> None:
    if receipt.state == "rejected":
        raise UserError(f"job {_number(receipt)} was rejected: it {receipt.reason}")
    if not quiet:
        # The number alone, so that scripts can read it; the rest goes to the other stream.
        typer.echo(_number(receipt))
        if receipt.array is not None:
            typer.echo(f"an array of {len(receipt.jobs)} jobs", err=True)


def _number(receipt: Receipt) -> int:
    """What the job, or the array, is called."""
    return receipt.jobs[0] if receipt.array is None else receipt.array


@contextmanager
def _going_on(receipt: Receipt) -> Iterator[None]:
    """Who does not want to wait any longer is told that the job does not mind."""
    try:
        yield
    except KeyboardInterrupt:
        number = _number(receipt)
        said = f"job {number} goes on; dovetail cancel {number} ends it"
        typer.echo(said, err=True)
        raise


def _wait(found: Box, receipt: Receipt, quiet: bool) -> None:
    """Show the log of a single job; of many, only how they end."""
    if len(receipt.jobs) == 1 and not quiet:
        typer.echo(f"job {_number(receipt)}", err=True)
        for text in found.follow(receipt.jobs[0]):
            typer.echo(text, nl=False)
            sys.stdout.flush()
    ended = [found.wait(job) for job in receipt.jobs]
    bad = [job for job in ended if job.state != "done"]
    for job in bad:
        reason = printable(job.reason) or "no reason is known"
        typer.echo(f"job {job.label} {job.state}: {reason}", err=True)
    if bad:
        raise typer.Exit(1)


def _pairs(given: list[str] | None, option: str) -> dict[str, str] | None:
    if not given:
        return None
    pairs = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name:
            # What was written may be the secret itself.
            raise UserError(f"{option}: write NAME=value")
        pairs[name] = value
    return pairs


def _sweep(given: list[str] | None) -> dict[str, list[str]] | None:
    pairs = _pairs(given, "--sweep")
    return None if pairs is None else {name: text.split(",") for name, text in pairs.items()}
