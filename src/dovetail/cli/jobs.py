"""Commands about jobs that were submitted: look at them, touch them."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli.output import printable
from dovetail.cli.talking import AsJson, DataDir, Job, Jobs, box, console, print_json
from dovetail.model.errors import UserError

if TYPE_CHECKING:
    from dovetail.model.live import Told

Mine = Annotated[bool, typer.Option("--mine", help="Only your own jobs.")]


def now() -> float:
    """Wall time, as people read it."""
    return time.time()  # noqa: TID251 (a surface: this is for people)


def queue(
    mine: Mine = False,
    user: Annotated[str | None, typer.Option(help="Only jobs of this user.")] = None,
    state: Annotated[str | None, typer.Option(help="Only waiting, running, held …")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10000, help="How many at most.")] = 100,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show the jobs that have not ended, and why they wait."""
    from dovetail.cli.job_tables import queue_table  # noqa: PLC0415

    with box(data_dir) as found:
        about = found.about()
        owner = about.you if mine else user
        page = found.page(owner=owner, state=state, reasons=True, limit=limit)
        if as_json:
            print_json(page)
            return
    out = console()
    if page.jobs:
        out.print(queue_table(page.jobs, now()))
    more = (
        f", {page.total - len(page.jobs):,} more not shown" if page.total > len(page.jobs) else ""
    )
    virtual = " · virtual GPUs" if about.virtual else ""
    jobs = "1 job" if page.total == 1 else f"{page.total:,} jobs"
    out.print(f"{jobs}{more} · policy {about.policy}{virtual}", style="dim")


def show(job: Job, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show all that is known of a job."""
    from dovetail.cli.job_tables import detail_tables, queue_table  # noqa: PLC0415

    with box(data_dir) as found:
        members = found.members(job)
        if len(members) != 1:
            if as_json:
                print_json(members)
            else:
                console().print(queue_table(members, now()))
            return
        detail = found.show(members[0].id)
    if as_json:
        print_json(detail)
    else:
        console().print(*detail_tables(detail, now()), sep="\n")


def logs(
    job: Job,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until it ends.")] = False,
    tail: Annotated[
        int | None, typer.Option(min=1, max=100000, help="Only the last lines.")
    ] = None,
    attempt: Annotated[int, typer.Option(min=0, help="Which attempt; 0 is the latest.")] = 0,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Print what a job wrote."""
    with box(data_dir) as found:
        cursor = ""
        if tail is not None:
            piece = found.log(job, attempt, tail=tail)
            cursor = piece.cursor
            _print_log(piece.text, as_json)
            if not follow:
                return
        if follow:
            for text in found.follow(job, attempt, cursor):
                _print_log(text, as_json)
            return
        while True:
            piece = found.log(job, attempt, cursor)
            if not piece.text:
                return
            _print_log(piece.text, as_json)
            cursor = piece.cursor


def _print_log(text: str, as_json: bool) -> None:
    if as_json:
        print_json({"text": text})
    else:
        sys.stdout.write(text)
        sys.stdout.flush()


def _touch(verb: str, done: str, jobs: list[str], folder: Path | None, as_json: bool) -> None:
    """Do it to each; one that cannot be is told, and the others are done all the same."""
    failed = 0
    with box(folder) as found:
        for job in jobs:
            try:
                told = getattr(found, verb)(job)
            except UserError as error:
                typer.echo(printable(f"dovetail: {error}"), err=True)
                failed += 1
                continue
            if as_json:
                print_json(told)
            else:
                typer.echo(_done(job, told, done))
    if failed:
        raise typer.Exit(2)


def _done(job: str, told: Told, done: str) -> str:
    """`job 7 requeued as job 9`; who takes a place in an array is called as it was before."""
    what = f"job {job}" if len(told.jobs) == 1 else f"all {len(told.jobs)} of {job}"
    new = [str(number) for number in told.new if number not in (*told.jobs, *told.labels)]
    return f"{what} {done}" + (f" as job {', '.join(new)}" if new else "")


def cancel(jobs: Jobs, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Give jobs up, whatever they are doing."""
    _touch("cancel", "cancelled", jobs, data_dir, as_json)


def hold(jobs: Jobs, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Keep waiting jobs from starting."""
    _touch("hold", "held", jobs, data_dir, as_json)


def release(jobs: Jobs, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Let held jobs start again."""
    _touch("release", "released", jobs, data_dir, as_json)


def requeue(jobs: Jobs, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Run jobs again: stopped and waiting, or as new ones where they have ended."""
    _touch("requeue", "requeued", jobs, data_dir, as_json)


def history(
    mine: Mine = False,
    user: Annotated[str | None, typer.Option(help="Only jobs of this user.")] = None,
    state: Annotated[str | None, typer.Option(help="Only done, failed, cancelled …")] = None,
    name: Annotated[str | None, typer.Option(help="Only jobs with this name.")] = None,
    since: Annotated[str | None, typer.Option(help="Like 2h or 7d: not older than that.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10000, help="How many at most.")] = 30,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show the jobs that have ended, the latest first."""
    from dovetail.cli.job_tables import history_table  # noqa: PLC0415

    with box(data_dir) as found:
        owner = found.about().you if mine else user
        begun = moment(since)
        jobs = found.history(owner=owner, state=state, name=name, since=begun, limit=limit)
    if as_json:
        print_json(jobs)
    elif jobs:
        console().print(history_table(jobs))
    else:
        typer.echo("no job has ended yet" if since is None else "no job has ended since then")


def moment(since: str | None) -> float:
    """The moment so long ago; 0: from the beginning."""
    from dovetail.model.amounts import duration  # noqa: PLC0415

    return 0.0 if since is None else now() - duration(since)
