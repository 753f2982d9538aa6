"""`dovetail report`: what became of the last week, as one page for the meeting."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.jobs import moment
from dovetail.cli.output import check_writable, is_stdout, write
from dovetail.cli.talking import AsJson, DataDir, box, print_json

PAGE = Path("dovetail-report.html")


def report(
    since: Annotated[str, typer.Option(help="Like 7d: from so long ago until now.")] = "7d",
    out: Annotated[Path, typer.Option(help="The page; - is standard output.")] = PAGE,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Write a page about use, waits, wasted GPU-hours and who asked for most."""
    begin = moment(since)
    if not as_json:
        check_writable(out)
    with box(data_dir) as found:
        told = found.review(begin)
    if as_json:
        print_json(told)
        return
    from dovetail.report.week import headline, html_week  # noqa: PLC0415

    write(out, html_week(told))
    typer.echo(headline(told), err=True)
    if not is_stdout(out):
        typer.echo(str(out))
