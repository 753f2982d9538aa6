"""The words for `sbatch`: an attempt on exactly the nodes, GPUs, cores and memory it was given.

Parts that are alike go into one request; parts that differ make it a heterogeneous job, which
Slurm starts as a whole. The command is run once, on the first node, as `sbatch` does it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from dovetail.executors.local.folders import Folder
from dovetail.executors.protocol import Launch
from dovetail.executors.slurm.site import Site
from dovetail.model.allocation import Allocation, Part
from dovetail.model.errors import UserError
from dovetail.model.request import WHOLE

PASSED_ON = frozenset(
    f"SBATCH_{name}"
    for name in ("PARTITION", "ACCOUNT", "QOS", "TIMELIMIT", "RESERVATION", "WCKEY")
)
"""What a job may say to `sbatch` by its environment; the rest would undo the placement."""

NOT_SHARED = 73
"""The exit code of a script that cannot reach its folder."""

SCRIPT = """\
#!/bin/sh
# Dovetail: job {job}, attempt {number}
trap : TERM
if ! (set -C; echo "$SLURM_JOB_ID" > {claim}) 2>/dev/null; then
    # Somebody else was first: this attempt runs already.
    [ -e {claim} ] && exit 0
    echo "dovetail: {folder} cannot be written on $(hostname)" >&2
    exit {not_shared}
fi
cd {directory} && {command}
code=$?
echo "$code" > {ended}
exit "$code"
"""


class Shape(NamedTuple):
    """What is asked of each of several nodes alike."""

    gpus: int
    cpus: int
    memory: int | None


def script(launch: Launch, folder: Folder) -> str:
    """What the first node is to run."""
    return SCRIPT.format(
        job=launch.attempt.job,
        number=launch.attempt.number,
        claim=shlex.quote(str(claim_of(folder))),
        ended=shlex.quote(str(ended_of(folder))),
        folder=shlex.quote(str(folder.job)),
        not_shared=NOT_SHARED,
        directory=shlex.quote(str(launch.directory)),
        command=shlex.join(launch.command),
    )


def claim_of(folder: Folder) -> Path:
    """Who is first to make this file runs the attempt."""
    return folder.job / "claim"


def ended_of(folder: Folder) -> Path:
    """Says how it ended, for longer than Slurm remembers."""
    return folder.job / "ended"


def words(launch: Launch, mark: str, folder: Folder, site: Site) -> list[str]:
    """The call of `sbatch`, without the script, which it reads from its standard input."""
    once = [
        # If Slurm cannot enter a folder it goes on elsewhere, so the script does it.
        "--chdir=/",
        f"--output={folder.path / 'log'}",
        "--open-mode=append",
        "--no-requeue",
        "--export=ALL",
    ]
    call = ["sbatch", "--parsable"]
    for number, (shape, nodes) in enumerate(_components(launch.allocation, site)):
        call += [":"] if number else []
        call += [f"--job-name={_plain(launch.name)}", f"--comment={mark}"]
        call += [] if number else once
        call += _request(shape, nodes)
    return call


def granted(part: Part, site: Site) -> Shape:
    """A part in what Slurm can give: whole CPUs, rounded down, at least one."""
    node = site.nodes[part.node]
    grain = site.grain[node.name]
    cpus = max(part.cpu // (1000 * grain) * grain, grain)
    memory = None if node.memory is None else max(part.memory, 1)
    return Shape(part.devices.bit_count(), cpus, memory)


def check(launch: Launch, site: Site) -> None:
    """What Slurm could not be asked for."""
    if not launch.command or not launch.command[0]:
        raise UserError("there is no command")
    if not launch.allocation.parts:
        raise UserError("a job of Slurm needs a node: ask for a GPU or a core")
    if any(part.share != WHOLE for part in launch.allocation.parts):
        raise UserError("Slurm gives out whole GPUs only")
    if any(not 0 <= part.node < len(site.nodes) for part in launch.allocation.parts):
        raise UserError(f"this engine has {len(site.nodes)} nodes")
    if launch.owner and os.geteuid() not in (0, launch.owner[0]):
        raise UserError("only a controller run by root can run jobs as another user")


def settings(environment: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """A job's variables and what `sbatch` is told through them."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith(("SBATCH_", "SLURM_")) or name in PASSED_ON
    }
    own = {"SLURM_CONF": os.environ["SLURM_CONF"]} if "SLURM_CONF" in os.environ else {}
    return {**defaults, **kept, **own}


def _components(allocation: Allocation, site: Site) -> Iterator[tuple[Shape, list[str]]]:
    """Parts that are alike, together; in the order they were planned."""
    alike: dict[Shape, list[str]] = {}
    for part in allocation.parts:
        alike.setdefault(granted(part, site), []).append(site.nodes[part.node].name)
    yield from alike.items()


def _request(shape: Shape, nodes: list[str]) -> Iterator[str]:
    yield f"--nodelist={','.join(nodes)}"
    yield f"--nodes={len(nodes)}"
    yield "--ntasks-per-node=1"
    yield f"--cpus-per-task={shape.cpus}"
    if shape.memory is not None:
        yield f"--mem={shape.memory}M"
    if shape.gpus:
        yield f"--gres=gpu:{shape.gpus}"


def _plain(name: str) -> str:
    """A name that Slurm and people can read in one column."""
    return re.sub(r"[^\w.+-]+", "_", name).strip("_") or "job"
