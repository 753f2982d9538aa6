"""The questions: `dovetail why` and `when`, and what a `shadow` would have done."""

from __future__ import annotations

import typer

from dovetail.cli.jobs import now
from dovetail.cli.output import printable
from dovetail.cli.talking import AsJson, DataDir, Job, box, console, print_json

MOST_MEMBERS = 10
"""Of an array that are told about one by one."""


def why(job: Job, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Say why a job waits: the one cause, who is in front, and what would help."""
    from dovetail.cli.answer_texts import why_lines  # noqa: PLC0415

    with box(data_dir) as found:
        members = [each.id for each in found.members(job)]
        told = [found.why(each) for each in members[:MOST_MEMBERS]]
    if as_json:
        print_json(told if len(members) > 1 else told[0])
        return
    for answer in told:
        typer.echo("\n".join(map(printable, why_lines(answer))))
    if len(members) > len(told):
        typer.echo(f"… and {len(members) - len(told)} more")


def when(job: Job, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Say when a job starts and ends, as a range with a probability."""
    from dovetail.cli.answer_texts import when_lines  # noqa: PLC0415

    with box(data_dir) as found:
        estimate = found.when(job)
    if as_json:
        print_json(estimate)
    else:
        typer.echo("\n".join(when_lines(job, estimate, now())))


def shadow(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Say what the policy in the shadow would have done otherwise."""
    from dovetail.cli.answer_texts import shadow_tables  # noqa: PLC0415

    with box(data_dir) as found:
        report = found.shadow()
    if as_json:
        print_json(report)
    else:
        console().print(*shadow_tables(report), sep="\n")
