"""`dovetail token`: for people and programs that the machine does not know."""

from __future__ import annotations

from typing import Annotated

import typer

from dovetail.cli.talking import AsJson, DataDir, box, console, print_json

app = typer.Typer(no_args_is_help=True, help="Let people in from elsewhere.")


@app.command()
def make(
    user: Annotated[str | None, typer.Option(help="For whom; default: yourself.")] = None,
    role: Annotated[str, typer.Option(help="admin, user or reader.")] = "user",
    lasts: Annotated[str, typer.Option(help="Like 8h or 30d.")] = "30d",
    note: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a token; it is shown this once."""
    with box(data_dir) as found:
        text = found.make_token(owner=user, role=role, lasts=lasts, note=note)
    if as_json:
        print_json({"token": text})
    else:
        typer.echo(text)


@app.command("list")
def listed(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show tokens, without their text."""
    from dovetail.cli.job_tables import tokens_table  # noqa: PLC0415

    with box(data_dir) as found:
        tokens = found.tokens()
    if as_json:
        print_json(tokens)
    else:
        console().print(tokens_table(tokens))


@app.command()
def revoke(
    token: Annotated[str, typer.Argument(help="Its id, from dovetail token list.")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Let a token open nothing any more."""
    with box(data_dir) as found:
        found.revoke(token)
    if as_json:
        print_json({"revoked": token})
    else:
        typer.echo(f"token {token} opens nothing any more")
