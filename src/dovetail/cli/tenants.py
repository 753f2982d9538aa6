"""`dovetail tenants`: what tenants own: of a running controller, and from others' files to ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli import output
from dovetail.cli.talking import AsJson, DataDir, box, console, print_json
from dovetail.core.registry import nearest
from dovetail.model.errors import UserError

KINDS = ("cells", "shares")
NONE = "none"

app = typer.Typer(no_args_is_help=True, help="What tenants own of a cluster.")


@app.callback()
def tenants() -> None:
    """What tenants own of a cluster."""


@app.command()
def show(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Print who owns what, as a file that can be changed and applied."""
    with box(data_dir) as found:
        contracts = found.contracts()
    if as_json:
        print_json(contracts)
    elif contracts.kind:
        typer.echo(f"# tenants with {contracts.kind}\n{contracts.text}", nl=False)
    else:
        typer.echo("there are no tenants here: everybody shares everything", err=True)


@app.command()
def apply(
    file: Annotated[
        str,
        typer.Argument(
            metavar="[KIND:]FILE",
            help="A file of tenants, as cells:FILE, shares:FILE or with the present kind; "
            "none: everybody shares everything.",
        ),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would do.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Let others own what, while jobs run. No job is stopped for it."""
    from dovetail.cli.tenant_tables import change_tables  # noqa: PLC0415

    with box(data_dir) as found:
        change = found.apply_tenants(**owners(file), dry_run=dry_run)
    if as_json:
        print_json(change)
        return
    out = console()
    for shown in change_tables(change):
        out.print(shown)


def owners(typed: str) -> dict[str, str]:
    """Who is to own what, as a controller is told: `cells:FILE`, `FILE`, `none`."""
    kind, path = _typed(typed)
    return {"kind": kind, "text": _read(path) if path else "", "name": path or NONE}


def _typed(text: str) -> tuple[str, str]:
    """The kind and the file that somebody means."""
    if text == NONE:
        return NONE, ""
    kind, colon, path = text.partition(":")
    if colon and kind in KINDS:
        return kind, path
    if colon and not Path(text).exists():
        raise UserError(f"tenants own no {kind!r}{nearest(kind, list(KINDS))}")
    return "", text


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not a text file") from None


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
