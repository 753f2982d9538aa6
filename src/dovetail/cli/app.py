"""The list of commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from dovetail import __version__
from dovetail.cli import answers, cluster, jobs, tenants, token, trace
from dovetail.cli.advise import advise
from dovetail.cli.compare import compare
from dovetail.cli.demo import demo
from dovetail.cli.doctor import doctor
from dovetail.cli.mcp import mcp
from dovetail.cli.profile import profile
from dovetail.cli.replay import replay
from dovetail.cli.report import report
from dovetail.cli.simulate import policies, simulate
from dovetail.cli.submit import submit
from dovetail.cli.top import top
from dovetail.cli.unit import unit
from dovetail.cli.up import down, up
from dovetail.cli.what_if import what_if

app = typer.Typer(
    name="dovetail",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _tell(version: bool) -> None:
    if version:
        typer.echo(f"dovetail {__version__}")
        raise typer.Exit


@app.callback()
def dovetail(
    version: Annotated[
        bool, typer.Option("--version", help="Say which one it is.", callback=_tell, is_eager=True)
    ] = False,
) -> None:
    """Schedules deep-learning workloads on shared GPUs: replay, compare, explain."""


LIVE: dict[str, tuple[Callable[..., None], ...]] = {
    "Controller": (up, down, unit, replay, doctor, mcp),
    "Jobs": (
        jobs.queue,
        top,
        jobs.show,
        answers.why,
        answers.when,
        what_if,
        answers.shadow,
        jobs.logs,
        jobs.cancel,
        jobs.hold,
        jobs.release,
        jobs.requeue,
        jobs.history,
    ),
    "Machines": (cluster.nodes, cluster.drain, cluster.usage, report),
}
app.command(rich_help_panel="Jobs", context_settings={"allow_interspersed_args": False})(submit)
for panel, commands in LIVE.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.add_typer(token.app, name="token", rich_help_panel="Controller")
app.command()(simulate)
app.command()(compare)
app.command()(advise)
app.command()(policies)
app.command()(demo)
app.command(context_settings={"allow_interspersed_args": False})(profile)
app.add_typer(trace.app, name="trace")
app.add_typer(tenants.app, name="tenants", rich_help_panel="Machines")
