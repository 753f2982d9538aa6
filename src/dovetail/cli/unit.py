"""`dovetail unit`: a systemd unit for the controller, with the program and options used here."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dovetail.cli.talking import DataDir

UNIT = """\
# Written by: dovetail unit
[Unit]
Description=Dovetail, a scheduler for the GPUs of this machine
After=network.target nvidia-persistenced.service
RequiresMountsFor={folder}

[Service]
Type=exec
ExecStart={command}
Restart=on-failure
RestartSec=2
TimeoutStopSec=60
# Only the controller is ended. Jobs go on, and the next controller finds them again.
KillMode=process
# A job that wants too much memory ends, not the controller.
OOMPolicy=continue
OOMScoreAdjust=-500
# Jobs are fenced in by control groups, which are ours to divide.
Delegate=yes
# systemd 254 or newer keeps them all below this unit with:
# DelegateSubgroup=controller
LimitNOFILE=65536
# Jobs inherit what is forbidden here: nothing that a training may need.
ProtectKernelLogs=yes
ProtectHostname=yes

[Install]
WantedBy=multi-user.target
"""


def unit(
    options: Annotated[
        list[str] | None, typer.Argument(metavar="[-- OPTIONS]", help="Options for dovetail up.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Print a systemd unit: dovetail unit > /etc/systemd/system/dovetail.service"""
    from dovetail.live.finding import SYSTEM  # noqa: PLC0415

    folder = (data_dir or SYSTEM).resolve()
    words = [sys.executable, "-m", "dovetail", "up", "--data-dir", str(folder), *(options or [])]
    typer.echo(UNIT.format(folder=_quoted(str(folder)), command=" ".join(map(_quoted, words))))


def _quoted(word: str) -> str:
    """A word as systemd reads it: percent signs and dollars mean something there."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{plain}"' if not plain or any(sign in plain for sign in " \t;'\"") else plain
