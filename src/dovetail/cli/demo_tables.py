"""What the live half of the demo shows: its queue while it runs, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import TYPE_CHECKING

from dovetail.cli.job_tables import STYLES
from dovetail.live.box import ENDED

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from dovetail.demo.contest import Contest
    from dovetail.model.live import Description


def queue_view(title: str, jobs: Sequence[Description]) -> Table:
    """The jobs of a round, with what each was granted and how far it is."""
    from rich.progress_bar import ProgressBar  # noqa: PLC0415

    table = _table(title, "job", "state", "cores", "steps/s", "")
    for job in jobs:
        told, granted = job.progress, sum(place.cpu for place in job.places) / 1000
        total = told.total if told and told.total else 1.0
        done = total if job.state in ENDED else told.steps if told else 0.0
        table.add_row(
            job.name,
            f"[{STYLES.get(job.state, '')}]{job.state}",
            f"{granted:.2f}" if granted else "",
            f"{told.rate:.0f}" if told and job.places else "",
            ProgressBar(total, done, width=30),
        )
    return table


def queue_line(title: str, jobs: Sequence[Description]) -> str:
    """The same in one line, for a pipe: who runs on how many cores."""
    running = [
        f"{job.name} {sum(place.cpu for place in job.places) / 1000:.2g}"
        for job in jobs
        if job.places
    ]
    ended = sum(job.state in ENDED for job in jobs)
    return f"{title}: {ended}/{len(jobs)} done; {', '.join(running) or 'no cores in use'}"


def result_table(found: Contest) -> Table:
    """Proportional against synergy, measured."""
    table = _table("", "", "proportional", "synergy", "gain", right=True)
    before, after = (mean(found.jct(name)) for name in found.outcomes)
    table.add_row("mean completion time", f"{before:.1f} s", f"{after:.1f} s", _gain(before, after))
    before, after = (found.makespan(name) for name in found.outcomes)
    table.add_row("makespan", f"{before:.1f} s", f"{after:.1f} s", _gain(before, after))
    table.add_section()
    for order in found.wanted:
        slow, fast = (found.speed(name, order.name) for name in found.outcomes)
        cells = (f"{slow:.1f} steps/s", f"{fast:.1f} steps/s", _gain(fast, slow))
        table.add_row(order.name, *cells)
    return table


def rounds_line(found: Contest) -> str:
    """How far the rounds were apart: what is smaller than that is noise."""
    each = [", ".join(f"{jct:.1f}" for jct in found.jct(name)) for name in found.outcomes]
    return f"Mean completion time of each round: {each[0]} s against {each[1]} s."


def _gain(more: float, less: float) -> str:
    return f"{more / less:.2f} ×"


def _table(title: str, *columns: str, right: bool = False) -> Table:
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(title=title or None, box=SIMPLE_HEAD, title_justify="left")
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if right and number else "left", no_wrap=True)
    return table


def shown(parts: Sequence[RenderableType]) -> None:
    """Print to a terminal, or plainly into a pipe."""
    from dovetail.cli.talking import console  # noqa: PLC0415

    for part in parts:
        console().print(part)
