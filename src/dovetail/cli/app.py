"""The list of commands."""

from __future__ import annotations

import typer

from dovetail.cli import trace
from dovetail.cli.compare import compare
from dovetail.cli.demo import demo
from dovetail.cli.profile import profile
from dovetail.cli.simulate import policies, simulate

app = typer.Typer(
    name="dovetail",
    help="Schedules deep-learning workloads on shared GPUs: replay, compare, explain.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
app.command()(simulate)
app.command()(compare)
app.command()(policies)
app.command()(demo)
app.command(context_settings={"allow_interspersed_args": False})(profile)
app.add_typer(trace.app, name="trace")
