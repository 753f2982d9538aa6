"""Which engine runs the jobs: options of `up` and `doctor`, and the engine they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dovetail.core.registry import nearest
from dovetail.model.errors import UserError

if TYPE_CHECKING:
    from dovetail.controller.opening import Engine as EngineMaker
    from dovetail.executors.slurm import Options

ENGINES = ("local", "slurm")
SLURM = "Slurm"

Engine = Annotated[str, typer.Option(help="What runs jobs: local (this machine) or slurm.")]
Partition = Annotated[
    str | None, typer.Option(help="Of Slurm; else its default.", rich_help_panel=SLURM)
]
Nodes = Annotated[
    str | None, typer.Option(help="Only these nodes of it: n[1-4].", rich_help_panel=SLURM)
]
Share = Annotated[
    float, typer.Option(help="Only this part of its nodes, 0.5 for half.", rich_help_panel=SLURM)
]
Account = Annotated[
    str | None, typer.Option(help="For jobs that name none.", rich_help_panel=SLURM)
]
Qos = Annotated[str | None, typer.Option(help="For jobs that name none.", rich_help_panel=SLURM)]
TimeLimit = Annotated[
    str | None, typer.Option(help="Slurm's, for jobs that name none.", rich_help_panel=SLURM)
]


class SlurmOptions(NamedTuple):
    """What was typed about Slurm."""

    partition: str | None = None
    nodes: str | None = None
    share: float = 1.0
    account: str | None = None
    qos: str | None = None
    time_limit: str | None = None

    def options(self) -> Options:
        """As the engine takes them."""
        from dovetail.executors.slurm import Options  # noqa: PLC0415

        return Options(*self)


def engine_of(name: str, gpus: int | None, typed: SlurmOptions) -> EngineMaker:
    """The engine of that name, or one sentence on why not."""
    from dovetail.controller.opening import local, slurm  # noqa: PLC0415

    check(name)
    if name == "local":
        if typed != SlurmOptions():
            raise UserError("a partition and the like belong to --engine slurm")
        return local(gpus)
    if gpus is not None:
        raise UserError("--gpus makes up GPUs of this machine; on Slurm they are what they are")
    return slurm(typed.options())


def check(name: str) -> None:
    """Is there such an engine?"""
    if name not in ENGINES:
        raise UserError(f"unknown engine {name!r}{nearest(name, list(ENGINES))}")
