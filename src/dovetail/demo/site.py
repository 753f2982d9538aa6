"""A controller of one's own for a while: started over a folder, ended with all that it runs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dovetail.live import Box, connect
from dovetail.model.errors import UserError

PATIENCE = 60.0
"""Seconds a controller may take to begin, or to end."""
MANY = 10_000


@contextmanager
def running(folder: Path, options: Sequence[str]) -> Iterator[Box]:
    """A controller over this folder, and a line to it; nothing of it is left afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "controller.log", "wb") as log:
        command = [sys.executable, "-m", "dovetail", "up", "--data-dir", str(folder), *options]
        # In a session of its own: Ctrl-C is for us, who end it in order.
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        with _line(folder, process) as box:
            try:
                yield box
            finally:
                with suppress(UserError):
                    _clear(box)
                    box.end()
    finally:
        _end(process)


def _line(folder: Path, process: subprocess.Popen[bytes]) -> Box:
    """A line, as soon as somebody answers."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        if (folder / "socket").exists():
            box = connect(folder)
            with suppress(UserError):
                box.about()
                return box
            box.close()
        time.sleep(0.05)
    said = (folder / "controller.log").read_text(errors="replace").strip().splitlines()
    reason = said[-1] if said else "it said nothing"
    raise UserError(f"the controller did not start: {reason.removeprefix('dovetail: ')}")


def _clear(box: Box) -> None:
    """Give up whatever has not ended, and wait until it has."""
    # The last first, so that nobody starts in the place of those who leave.
    active = box.queue(limit=MANY)[::-1]
    for job in active:
        with suppress(UserError):
            box.cancel(job.id)
    for job in active:
        box.wait(job.id, PATIENCE)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
