"""Commands about machines and who uses them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.jobs import moment, now
from dovetail.cli.talking import AsJson, DataDir, box, console, print_json

Node = Annotated[str, typer.Argument(help="A machine.")]


def nodes(
    tenants: Annotated[
        bool, typer.Option("--tenants", help="Show who owns what, and what is lent to whom.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show the machines and what of them is free."""
    if tenants:
        _owners(data_dir, as_json)
        return
    from dovetail.cli.job_tables import nodes_table  # noqa: PLC0415

    with box(data_dir) as found:
        machines, about = found.nodes(), found.about()
    if as_json:
        print_json(machines)
        return
    out = console()
    out.print(nodes_table(machines))
    out.print(about.engine, style="dim")


def _owners(data_dir: Path | None, as_json: bool) -> None:
    from dovetail.cli.tenant_tables import tenants_tables  # noqa: PLC0415

    with box(data_dir) as found:
        shown = found.tenants()
    if as_json:
        print_json(shown)
        return
    out = console()
    for table in tenants_tables(shown, now()):
        out.print(table)


def drain(
    node: Node,
    undo: Annotated[bool, typer.Option("--undo", help="Take work there again.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Let nothing new start on a machine; what runs there may finish."""
    with box(data_dir) as found:
        (found.undrain if undo else found.drain)(node)
    if as_json:
        print_json({"node": node, "draining": not undo})
    else:
        typer.echo(f"{node} {'takes work again' if undo else 'is draining'}")


def usage(
    since: Annotated[str | None, typer.Option(help="Like 2h or 7d; default: all.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show who used how much."""
    from dovetail.cli.job_tables import usage_table  # noqa: PLC0415

    with box(data_dir) as found:
        users = found.usage(moment(since))
    if as_json:
        print_json(users)
    elif users:
        console().print(usage_table(users))
    else:
        typer.echo("nobody has used anything yet")
