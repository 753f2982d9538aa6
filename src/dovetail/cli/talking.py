"""What the live commands share: where the controller is, and answers as text or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from dovetail.live import Box


def _jobs(incomplete: str) -> list[str]:
    """For shell completion: the jobs that have not ended."""
    from dovetail.live import connect  # noqa: PLC0415
    from dovetail.model.errors import UserError  # noqa: PLC0415

    try:
        with connect() as box:
            found = [job.label for job in box.queue(limit=200)]
    except UserError:
        return []
    return [number for number in found if number.startswith(incomplete)]


DataDir = Annotated[
    Path | None, typer.Option(help="The controller's data folder, if it is not the usual one.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Job = Annotated[
    str,
    typer.Argument(
        metavar="JOB",
        help="A job (12), a member of an array (12.3), or an array.",
        autocompletion=_jobs,
    ),
]
Jobs = Annotated[
    list[str],
    typer.Argument(metavar="JOB…", help="Jobs, members (12.3) or arrays.", autocompletion=_jobs),
]


@contextmanager
def box(folder: Path | None) -> Iterator[Box]:
    """A line to the controller."""
    from dovetail.live import connect  # noqa: PLC0415

    with connect(folder) as found:
        yield found


def print_json(value: Any) -> None:
    """Whatever it is, as JSON."""
    from dovetail.core.codec import to_plain  # noqa: PLC0415

    typer.echo(json.dumps(to_plain(value), indent=2))


def console() -> Console:
    """Where tables go; in a pipe they are as wide as they need to be."""
    from rich.console import Console  # noqa: PLC0415

    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=max(found.width, 80))
