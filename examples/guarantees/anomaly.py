"""The sharing anomaly on two nodes of four GPUs, and how cells remove it.

    python examples/guarantees/anomaly.py --svg docs/images/sharing-anomaly.svg

Two tenants own a node each. While vision is idle, speech uses six GPUs. By number, speech is back
to its four when vision comes, but they lie on both nodes. With cells, what speech borrowed of
vision's node goes back. The jobs and tenants are the two files beside this program.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

from dovetail.core.scheduler import Scheduler
from dovetail.model.plan import Start, Stop
from dovetail.simulator.experiment import Replay, replay

FOLDER = Path(__file__).parent
sys.path.append(str(FOLDER.parent / "synergy"))

from svg import Drawing  # noqa: E402

COLOURS = {"speech": "#2f7f86", "vision": "#c2571a"}
TITLES = {"shares": "by number: 4 GPUs each", "cells": "by cells: one node each"}
NODES, GPUS, LAST = 2, 4, 130.0


class Bar(NamedTuple):
    """A job on one device for some time."""

    job: str
    node: int
    device: int
    begin: float
    end: float


class Watch:
    """Looks over the scheduler's shoulder: who was on which device, from when to when."""

    def __init__(self) -> None:
        self.bars: list[Bar] = []
        self.on: dict[int, tuple[str, float, Any]] = {}
        #: the first one only: a second replay follows, on private clusters
        self.scheduler: Scheduler | None = None

    def seen(self, scheduler: Scheduler, now: float, plan: Any) -> None:
        """Note what a plan starts and stops, and who is done."""
        self.scheduler = self.scheduler or scheduler
        if scheduler is not self.scheduler:
            return
        for job, _ in scheduler.ended:
            self.close(job.id, now)
        for action in plan.actions:
            if isinstance(action, Stop):
                self.close(action.job, now)
        for action in plan.actions:
            if isinstance(action, Start):
                name = scheduler.jobs[action.job].spec.name
                self.on[action.job] = (name, now, action.allocation)

    def close(self, job: int, now: float) -> None:
        """A job is no longer on its devices."""
        if job not in self.on:
            return
        name, begin, allocation = self.on.pop(job)
        for part in allocation.parts:
            for device in range(GPUS):
                if part.devices >> device & 1:
                    self.bars.append(Bar(name, part.node, device, begin, now))


def watched(tenancy: str) -> list[Bar]:
    """The bars of one replay."""
    watch, step = Watch(), Scheduler.step

    def look(self: Scheduler, now: float, batch: Any) -> Any:
        plan = step(self, now, batch)
        watch.seen(self, now, plan)
        return plan

    Scheduler.step = look  # type: ignore[method-assign]
    try:
        settings = Replay(
            str(FOLDER / "jobs.csv"),
            f"{NODES}x{GPUS}",
            "fifo:skip=true",
            placement="consolidated:fit=best",
            tenancy=f"{tenancy}:{FOLDER / 'tenants.toml'}",
            restart_cost=0.0,
        )
        replay(settings)
    finally:
        Scheduler.step = step  # type: ignore[method-assign]
    return watch.bars


def draw(found: dict[str, list[Bar]]) -> str:
    """One panel for each tenancy: devices downwards, time to the right."""
    drawing = Drawing(760, 300, "Eight GPUs over time, shared by number and by cells")
    for panel, (kind, bars) in enumerate(found.items()):
        left, top, width, row = 60 + panel * 360, 50, 300, 22
        drawing.text(left, 28, TITLES[kind], 14, bold=True)
        for node in range(NODES):
            drawing.text(left - 8, top + (node * 5 + 2.2) * row, f"n{node}", anchor="end")
        for bar in bars:
            y = top + (bar.node * 5 + bar.device) * row
            x, wide = left + bar.begin * width / LAST, (bar.end - bar.begin) * width / LAST
            drawing.rect(x, y, wide, row - 3, COLOURS[bar.job.split("-")[0]])
            if wide > 50:
                drawing.text(x + 4, y + 14, bar.job, 11, colour="#fff")
        asks = left + 20 * width / LAST
        drawing.line([(asks, top - 8), (asks, top + 9 * row)], COLOURS["vision"], dash="4 3")
        drawing.text(asks + 3, top + 9 * row + 14, "vision asks for 4 GPUs on one node", 11)
    return drawing.written()


def main() -> None:
    """Print who ran when; with `--svg`, draw it as well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--svg", type=Path)
    arguments = parser.parse_args()
    found = {kind: watched(kind) for kind in TITLES}
    for kind, bars in found.items():
        print(TITLES[kind])
        for job in sorted({bar.job for bar in bars}):
            own = sorted({(bar.begin, bar.end, bar.node) for bar in bars if bar.job == job})
            runs = ", ".join(f"{begin:g}-{end:g} on n{node}" for begin, end, node in own)
            print(f"  {job:9} {runs}")
    if arguments.svg:
        arguments.svg.write_text(draw(found))


if __name__ == "__main__":
    main()
