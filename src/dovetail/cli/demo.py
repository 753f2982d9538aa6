"""`dovetail demo`: the main jobs in two minutes, on workloads it makes itself.

First a simulation of 20,000 jobs, then ten real ones on this machine. This module tells and shows;
the real jobs are the business of `dovetail.demo`.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from dovetail.demo.kinds import Kind
    from dovetail.demo.machine import Used
    from dovetail.demo.measuring import Known
    from dovetail.model.live import Description
    from dovetail.profiler.measurement import Measurement

TRACE = "generate:philly,jobs=20000,load=1.0,seed=1"
CLUSTER = "16x8"
POLICIES = "fifo;fifo:backfill=easy;sjf:skip=true;srtf;las"
EVERY = 3.0
"""Seconds between two lines where there is no terminal."""
CALM = 0.8
"""Jobs that reach less of their speed are disturbed by others."""


def demo(
    out: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("demo.html"),
    rounds: Annotated[
        int, typer.Option(min=0, max=20, help="Rounds of real jobs; 0: only the simulation.")
    ] = 2,
    simulation: Annotated[bool, typer.Option(help="Simulate, too.")] = True,
) -> None:
    """Replay a workload under five policies, then train real models under two."""
    if simulation:
        _simulate(out)
    if rounds:
        with _ended_in_order():
            _live(rounds)


def _simulate(out: Path) -> None:
    from dovetail.cli.compare import compare  # noqa: PLC0415

    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    print(f"20,000 jobs like those of Microsoft's Philly cluster, on {CLUSTER} GPUs:\n")
    compare(TRACE, cluster=CLUSTER, policies=POLICIES, html_file=out)
    print(f"\nThe same with plots: {out}")
    print(f"Your own: dovetail compare TRACE --cluster {CLUSTER} --policies 'fifo;srtf'\n")


def _live(rounds: int) -> None:
    from dovetail.cli import demo_tables  # noqa: PLC0415
    from dovetail.demo.contest import contest  # noqa: PLC0415
    from dovetail.demo.machine import few_cores  # noqa: PLC0415
    from dovetail.demo.measuring import explored  # noqa: PLC0415

    with few_cores() as used:
        share = f"{used.cores:g} cores, {used.share[0]:g} for each"
        print(f"Now live: {used.gpus} virtual GPUs on this machine and {share}.")
        print("What the kinds of jobs need for a step, measured:", flush=True)
        found = explored(lambda kind, seen: _told(kind, seen, used))
        with _watching(rounds) as watch:
            made = contest(found, used, rounds, watch)
    print(f"\nThe same {len(made.wanted)} training jobs under both policies, measured.")
    print(f"{made.engine}.")
    demo_tables.shown([demo_tables.result_table(made)])
    print(demo_tables.rounds_line(made))
    _caution(found)
    print("Your own: dovetail up, then dovetail submit --gpus 1 -- python train.py")


def _told(kind: Kind, seen: Measurement, used: Used) -> None:
    from dovetail.demo.measuring import Known  # noqa: PLC0415

    busy = Known(kind, seen).processor
    wants = min(busy / kind.device, used.cores)
    takes = f"{busy * 1000:4.1f} ms of a core and {kind.device * 1000:4.1f} ms of a GPU"
    print(f"  {kind.name:6} {takes}: profits up to {wants:.2g} cores", flush=True)


def _caution(found: list[Known]) -> None:
    calm = min(each.disturbed for each in found)
    if calm < CALM:
        print(
            f"Others are busy on these cores and left our jobs {calm:.0%} of their speed: these\n"
            "figures tell of them as much as of the policies. Try it on a quiet machine."
        )


@contextmanager
def _watching(rounds: int) -> Iterator[Callable[[str, int, list[Description]], None]]:
    """Shows the queue: a table that changes, or a line now and then where there is no terminal."""
    from rich.live import Live  # noqa: PLC0415

    from dovetail.cli import demo_tables  # noqa: PLC0415
    from dovetail.cli.talking import console  # noqa: PLC0415

    out = console()
    if out.is_terminal:
        with Live(console=out, refresh_per_second=4, transient=True) as live:

            def redraw(policy: str, number: int, jobs: list[Description]) -> None:
                title = f"{policy}, round {number + 1} of {rounds}"
                live.update(demo_tables.queue_view(title, jobs))

            yield redraw
        return
    said = [float("-inf")]

    def say(policy: str, number: int, jobs: list[Description]) -> None:
        now = time.monotonic()
        if now - said[0] >= EVERY or all(job.ended for job in jobs):
            said[0] = now
            print(demo_tables.queue_line(f"{policy} {number + 1}", jobs), flush=True)

    yield say


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Being told to end is like Ctrl-C: controllers are ended and folders removed first."""

    def stop(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
