"""Help says what was written: brackets in it are not taken for markup."""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.markup import render
from typer.main import get_command

from dovetail.cli.app import app


def texts(command: click.Command) -> Iterator[str]:
    yield command.help or ""
    yield from (getattr(each, "help", None) or "" for each in command.params)
    for each in getattr(command, "commands", {}).values():
        yield from texts(each)


def test_nothing_of_a_help_text_is_lost() -> None:
    said = list(texts(get_command(app)))
    assert len(said) > 100
    assert [text for text in said if render(text).plain != text] == []
