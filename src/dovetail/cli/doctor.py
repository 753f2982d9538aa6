"""`dovetail doctor`: is everything there that an engine needs, and what to do where it is not."""

from __future__ import annotations

from datetime import datetime

import typer

from dovetail.cli.engines import (
    Account,
    Engine,
    Nodes,
    Partition,
    Qos,
    Share,
    SlurmOptions,
    TimeLimit,
    check,
)
from dovetail.cli.talking import AsJson, DataDir, print_json
from dovetail.model.errors import UserError

SIGNS = {"fine": "ok", "weak": "--", "wrong": "!!"}


def doctor(
    data_dir: DataDir = None,
    engine: Engine = "slurm",
    partition: Partition = None,
    nodes: Nodes = None,
    share: Share = 1.0,
    account: Account = None,
    qos: Qos = None,
    time_limit: TimeLimit = None,
    as_json: AsJson = False,
) -> None:
    """Check rights, versions, GPUs and clocks of a cluster, and say what to fix."""
    from dovetail.executors.slurm.commands import CommandLine  # noqa: PLC0415
    from dovetail.executors.slurm.doctor import Verdict, examine  # noqa: PLC0415
    from dovetail.live.finding import own_folder  # noqa: PLC0415

    check(engine)
    if engine != "slurm":
        raise UserError("this machine needs no doctor: dovetail up says what it found")
    typed = SlurmOptions(partition, nodes, share, account, qos, time_limit)
    found = []
    for each in examine(data_dir or own_folder(), typed.options(), CommandLine(), datetime.now):
        found.append(each)
        if not as_json:
            typer.echo(f"{SIGNS[each.verdict]}  {each.about}: {each.found}")
            if each.advice:
                typer.echo(f"      {each.advice}")
    if as_json:
        print_json([each._asdict() for each in found])
    if any(each.verdict is Verdict.WRONG for each in found):
        raise typer.Exit(1)
