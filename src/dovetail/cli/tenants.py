"""`dovetail tenants`: what tenants own, from other systems' files to ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli import output

app = typer.Typer(no_args_is_help=True, help="What tenants own of a cluster.")


@app.callback()
def tenants() -> None:
    """What tenants own of a cluster."""


@app.command()
def convert(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A configuration of HiveD (YAML).")],
    out: Annotated[Path | None, typer.Option(help="A cluster file to write.")] = None,
) -> None:
    """Turn a configuration of HiveD into a cluster file with tenants."""
    from dovetail.tenancy.cells.conversion import converted  # noqa: PLC0415

    text = converted(file)
    if out is None:
        typer.echo(text, nl=False)
    else:
        output.write(out, text)
