"""`dovetail top`: the cluster and the queue at a glance, live, with keys."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli.jobs import now
from dovetail.cli.output import printable
from dovetail.cli.talking import DataDir, box, console
from dovetail.model.errors import UserError

if TYPE_CHECKING:
    from rich.live import Live

    from dovetail.cli.top_view import Picture
    from dovetail.live import Box
    from dovetail.model.live import Description

MOST = 300
"""Jobs that are asked for; a person reads fewer."""
NAMED = {"\x1b[A": "k", "\x1b[B": "j", "\x1bOA": "k", "\x1bOB": "j", "\n": "enter", "\r": "enter"}
"""Keys that are sent as several letters, or as none that can be read."""


def top(
    every: Annotated[float, typer.Option(min=0.2, max=3600, help="Seconds between looks.")] = 1.0,
    data_dir: DataDir = None,
) -> None:
    """Watch GPUs, queue and progress, live; in a pipe, print them once."""
    with box(data_dir) as found:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            _print_once(found)
            return
        from rich.console import Console  # noqa: PLC0415
        from rich.live import Live  # noqa: PLC0415

        screen = Console(highlight=False)
        with _letters(), Live(console=screen, screen=True, auto_refresh=False) as live:
            Top(found, live, every).run()


def _print_once(found: Box) -> None:
    from dovetail.cli.job_tables import nodes_table, queue_table  # noqa: PLC0415

    seen, out = look(found, mine=False), console()
    out.print(nodes_table(seen.nodes))
    if seen.jobs:
        out.print(queue_table(seen.jobs, seen.at))
    out.print(f"{seen.about.running:,} of {seen.about.jobs:,} jobs run · {seen.about.policy}")


@contextmanager
def _letters() -> Iterator[None]:
    """Keys come one by one and are not shown; the terminal is left as it was."""
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def look(found: Box, mine: bool) -> Picture:
    """Ask the controller how things stand."""
    from dovetail.cli.top_view import Picture  # noqa: PLC0415

    about = found.about()
    owner = about.you if mine else None
    running = found.page(owner=owner, state="running", limit=MOST).jobs
    page = found.page(owner=owner, reasons=True, limit=MOST)
    known = {job.id for job in running}
    jobs = [*running, *(job for job in page.jobs if job.id not in known)]
    return Picture(about, found.nodes(), jobs, page.total, now())


class Top:
    """Looks, draws, and does what keys say, until somebody quits."""

    def __init__(self, found: Box, live: Live, every: float) -> None:
        from dovetail.cli.top_view import Screen  # noqa: PLC0415

        self._box, self._live, self._every = found, live, every
        self._screen = Screen()
        self._seen = look(found, mine=False)
        self._over = False

    def run(self) -> None:
        """Until it is over."""
        due = time.monotonic() + self._every
        try:
            while not self._over:
                self._draw()
                key = _key(max(0.0, due - time.monotonic()))
                if key:
                    self._press(key)
                if time.monotonic() >= due:
                    self._look()
                    due = time.monotonic() + self._every
        except KeyboardInterrupt:
            return

    def _draw(self) -> None:
        from dovetail.cli.top_view import drawn  # noqa: PLC0415

        width, height = self._live.console.size
        self._live.update(drawn(self._seen, self._screen, width, height), refresh=True)

    def _look(self) -> None:
        chosen = self._chosen()
        try:
            self._seen = look(self._box, self._screen.mine)
        except UserError as error:
            # It may come back: go on trying, with what was last seen.
            self._screen.said = str(error)
            return
        numbers = [job.id for job in self._seen.jobs]
        if chosen is not None and chosen.id in numbers:
            self._screen.selected = numbers.index(chosen.id)
        self._screen.selected = max(0, min(self._screen.selected, len(numbers) - 1))

    def _chosen(self) -> Description | None:
        jobs = self._seen.jobs
        return jobs[self._screen.selected] if self._screen.selected < len(jobs) else None

    def _press(self, key: str) -> None:
        screen, chosen = self._screen, self._chosen()
        asked, screen.asks, screen.said = screen.asks, None, ""
        if asked is not None:
            if key == "y":
                self._cancel(asked)
        elif key == "q":
            self._over = True
        elif key in ("j", "k"):
            self._move(1 if key == "j" else -1)
        elif screen.pane:
            screen.pane, screen.scrolled = [], 0
        elif key == "f":
            screen.mine = not screen.mine
            self._look()
            screen.said = "only your jobs" if screen.mine else "the jobs of everybody"
        elif chosen is not None:
            self._about(key, chosen)

    def _move(self, by: int) -> None:
        if self._screen.pane:
            self._screen.scrolled += by
        else:
            last = len(self._seen.jobs) - 1
            self._screen.selected = max(0, min(self._screen.selected + by, last))

    def _about(self, key: str, job: Description) -> None:
        """What can be asked or done about one job."""
        try:
            if key == "enter":
                self._screen.pane = self._details(job)
            elif key == "w":
                from dovetail.cli.answer_texts import why_lines  # noqa: PLC0415

                self._screen.pane = [printable(line) for line in why_lines(self._box.why(job.id))]
            elif key == "c":
                self._screen.asks = job
        except UserError as error:
            self._screen.said = str(error)

    def _details(self, job: Description) -> list[str]:
        from rich.console import Console  # noqa: PLC0415

        from dovetail.cli.job_tables import detail_tables  # noqa: PLC0415

        paper = Console(file=StringIO(), width=self._live.console.width, highlight=False)
        with paper.capture() as written:
            paper.print(*detail_tables(self._box.show(job.id), now()), sep="\n")
        return written.get().splitlines()

    def _cancel(self, job: Description) -> None:
        try:
            self._box.cancel(job.id)
        except UserError as error:
            self._screen.said = str(error)
            return
        self._screen.said = f"job {job.label} is cancelled"
        self._look()


def _key(seconds: float) -> str:
    """The key that is pressed within so many seconds; empty: none is."""
    source = sys.stdin.fileno()
    if not select.select([source], [], [], seconds)[0]:
        return ""
    pressed = os.read(source, 1).decode(errors="replace")
    if pressed == "\x1b" and select.select([source], [], [], 0.02)[0]:
        pressed += os.read(source, 2).decode(errors="replace")
    # No letter at all: the terminal has gone.
    return NAMED.get(pressed, pressed) or "q"
