"""Where commands write: files, standard output, a progress bar on standard error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from dovetail.model.errors import UserError

Progress = Callable[[int, int | None], None]


def printable(text: str) -> str:
    """The same without what would do something to a terminal."""
    return "".join(sign if sign.isprintable() else "·" for sign in text)


def is_stdout(path: Path | None) -> bool:
    """Is the file `-`, standard output?"""
    return path is not None and str(path) == "-"


def write(path: Path, text: str) -> None:
    """Write to a file or to standard output."""
    if is_stdout(path):
        typer.echo(text, nl=False)
    else:
        with writing(path):
            path.write_text(text, encoding="utf-8")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """A disk that is full or a folder that is closed is told in a sentence."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror})") from None


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON."""
    write(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def check_writable(*paths: Path | None) -> None:
    """Refuse before hours of replays, not after."""
    for path in paths:
        if path is None or is_stdout(path):
            continue
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise UserError(f"{path}: cannot be written ({_reason(path)})")


def _reason(path: Path) -> str:
    return "it is a folder" if path.is_dir() else "its folder does not exist"


@contextmanager
def progress_bar(what: str, total: int | None) -> Iterator[Progress]:
    """A bar on standard error that leaves nothing behind."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn  # noqa: PLC0415
    from rich.progress import Progress as Bar  # noqa: PLC0415

    columns = (what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    # In a pipe or a log a bar is only noise.
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, of: bar.update(task, completed=done, total=of or total)
