"""`dovetail replay`: decide again what a controller decided, and say whether it is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dovetail.cli.talking import AsJson, DataDir, print_json
from dovetail.model.errors import UserError


def replay(
    data_dir: DataDir = None,
    database: Annotated[
        str | None, typer.Option(help="postgresql+psycopg://… instead of a file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Decide again all that a controller decided; it may run meanwhile."""
    from dovetail.controller.journal import Journal  # noqa: PLC0415
    from dovetail.controller.opening import DATABASE  # noqa: PLC0415
    from dovetail.controller.replaying import remembered, replay  # noqa: PLC0415
    from dovetail.controller.store import Store  # noqa: PLC0415

    store = Store(database or f"sqlite:///{_folder(data_dir) / DATABASE}", reading=True)
    try:
        found = replay(Journal(store), remembered(store))
    finally:
        store.close()
    if as_json:
        print_json(found)
    elif found.divergence is not None:
        typer.echo(found.divergence.text)
    else:
        typer.echo(f"{found.batches:,} decisions replayed, all the same")
    if found.divergence is not None:
        raise typer.Exit(1)


def _folder(named: Path | None) -> Path:
    from dovetail.live.finding import find, own_folder  # noqa: PLC0415

    if named is not None:
        return named
    try:
        found = find().folder
    except UserError:
        # Nobody answers; the journal of the last controller is there all the same.
        return own_folder()
    if found is None:
        raise UserError("name the data folder: a journal is read where it lies, not over the wire")
    return found
