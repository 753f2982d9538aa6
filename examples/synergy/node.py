"""One node with eight jobs of one GPU: what each gets in equal shares, and what `tune` makes of it.

python examples/synergy/node.py --svg docs/images/synergy-node.svg
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

from svg import Drawing

from dovetail.allocators.tune import Tune
from dovetail.core.claims import Claim, Curves, Occasion, Seating
from dovetail.model.request import Replica
from dovetail.profiles import catalogue
from dovetail.simulator.spec import parse_cluster

NODE = "1x8,cpus=24,mem=500"
JOBS = ("alexnet", "res18", "m5", "gnmt", "transformer", "lstm", "gnmt", "lstm")
COLOURS = {"image": "#c2571a", "speech": "#8a4fbf", "language": "#2f7f86"}


class Share(NamedTuple):
    """What a job has: cores, GiB, and its speed, 1 being that of the equal share."""

    model: str
    task: str
    cores: float
    memory: float
    speed: float


def shares() -> tuple[list[Share], list[Share]]:
    """The eight jobs with equal shares, and as `tune` arranges them."""
    cluster, profiles = parse_cluster(NODE), catalogue()
    curves = Curves(cluster, profiles)
    claims = []
    for number, model in enumerate(JOBS):
        curve = curves.of(model, 0, Replica(gpus=1))
        assert curve is not None
        claims.append(Claim(number, 1, curve))
    occasion = Occasion(cluster, Seating(1), claims, (), (0,), 0, 1, queue=False)
    arranged = Tune().arrange(occasion)
    before, after = [], []
    for claim, model in zip(claims, JOBS, strict=True):
        profile, fair, piece = profiles[model], claim.curve.fair, arranged[claim.job][0]
        for cpu, memory, made in (
            (fair.cpu, fair.memory, before),
            (piece.cpu, piece.memory, after),
        ):
            cores, gib = cpu / 1000, memory / 1024
            made.append(Share(model, profile.task, cores, gib, profile.rate(cores, gib)))
    return before, after


def table(before: list[Share], after: list[Share]) -> str:
    """Both as text."""
    lines = [f"{'model':12} {'equal shares':>22} {'tune':>26}"]
    for old, new in zip(before, after, strict=True):
        lines.append(
            f"{old.model:12} {old.cores:5.1f} cores {old.memory:5.1f} GiB  "
            f"{new.cores:5.1f} cores {new.memory:5.1f} GiB  {new.speed / old.speed:5.2f} x as fast"
        )
    total = sum(share.speed for share in after) / sum(share.speed for share in before)
    return "\n".join([*lines, f"together {total:.2f} x as fast"])


def picture(before: list[Share], after: list[Share]) -> str:
    """Stacked bars: who has which part of the node."""
    drawing = Drawing(760, 400, "CPU and memory of one node, before and after")
    columns = (("CPU cores", "cores", 24.0, 60.0), ("memory, GiB", "memory", 500.0, 410.0))
    for title, field, whole, left in columns:
        drawing.text(left, 28, title, 14, bold=True)
        for offset, name, jobs in ((0.0, "equal shares", before), (150.0, "tune", after)):
            _stack(drawing, left + offset, jobs, field, whole)
            drawing.text(left + offset + 55, 376, name, 12, "middle")
    for number, (task, colour) in enumerate(COLOURS.items()):
        drawing.rect(60 + 110 * number, 384, 12, 12, colour)
        drawing.text(77 + 110 * number, 394, f"{task} model", 11)
    return drawing.written()


def _stack(drawing: Drawing, left: float, jobs: list[Share], field: str, whole: float) -> None:
    bottom, scale = 360.0, 320.0 / whole
    free = whole - sum(getattr(job, field) for job in jobs)
    for job in reversed(jobs):
        amount = getattr(job, field)
        bottom -= amount * scale
        drawing.rect(left, bottom, 110, amount * scale, COLOURS[job.task])
        if amount * scale >= 12:
            middle = bottom + amount * scale / 2 + 4
            words = f"{job.model} {amount:.3g}"
            drawing.text(left + 55, middle, words, 11, "middle", "#fff")
    if free > 0.01 * whole:
        drawing.rect(left, bottom - free * scale, 110, free * scale, "#e6e9ed")
        if free * scale >= 12:
            drawing.text(left + 55, bottom - free * scale / 2 + 4, f"free {free:.3g}", 11, "middle")


def main() -> None:
    """Print the table and draw the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw the picture")
    given = parser.parse_args()
    before, after = shares()
    print(table(before, after))
    if given.svg is not None:
        given.svg.parent.mkdir(parents=True, exist_ok=True)
        given.svg.write_text(picture(before, after))


if __name__ == "__main__":
    main()
