"""The questions: `dovetail why`, `when`, `what-if`, and what a `shadow` would have done."""

from __future__ import annotations

from typing import Annotated

import typer

from dovetail.cli.jobs import moment, now
from dovetail.cli.output import printable
from dovetail.cli.talking import AsJson, DataDir, Job, box, console, print_json
from dovetail.model.errors import UserError

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


def what_if(
    policy: Annotated[str | None, typer.Option(help="Another policy.")] = None,
    gpus: Annotated[int | None, typer.Option(min=1, help="Another number of GPUs.")] = None,
    quotas: Annotated[str | None, typer.Option(help="Other quotas: alice=4,*=2.")] = None,
    since: Annotated[str | None, typer.Option(help="Only jobs of the last 7d, say.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Replay what this controller has seen with another policy, size or quotas."""
    from dovetail.cli.answer_texts import comparison_tables  # noqa: PLC0415

    if policy is None and gpus is None and quotas is None:
        raise UserError("say what is to be different: --policy, --gpus or --quotas")
    with box(data_dir) as found:
        answer = found.what_if(
            policy=policy, gpus=gpus, quotas=quota_sizes(quotas), since=moment(since)
        )
    if as_json:
        print_json(answer)
    else:
        console().print(*comparison_tables(answer), sep="\n")


def shadow(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Say what the policy in the shadow would have done otherwise."""
    from dovetail.cli.answer_texts import shadow_tables  # noqa: PLC0415

    with box(data_dir) as found:
        report = found.shadow()
    if as_json:
        print_json(report)
    else:
        console().print(*shadow_tables(report), sep="\n")


def quota_sizes(text: str | None) -> dict[str, float] | None:
    """GPUs by name, from `alice=4,*=2`."""
    from dovetail.model.quota import read_quotas  # noqa: PLC0415

    found = read_quotas(text)
    if found is None:
        return None
    return {name: (limit.gpus or 0) / 1000 for name, limit in found.limits.items()}
