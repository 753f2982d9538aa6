"""Processes that a test left behind: found by what they are called with, and ended."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import psutil

PATIENCE = 10.0
"""Seconds in which a process that is killed is gone."""


def remains(folder: Path) -> list[psutil.Process]:
    """Processes whose environment or command names something in the folder."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            told = [*process.cmdline(), *process.environ().values()]
            if process.pid != os.getpid() and any(text.startswith(f"{folder}/") for text in told):
                found.append(process)
    return found


def end(folder: Path) -> None:
    """End all of them, and what they start meanwhile; one that cannot be ended ends no run."""
    until = time.monotonic() + PATIENCE
    while (found := remains(folder)) and time.monotonic() < until:
        for process in found:
            with suppress(psutil.Error):
                process.kill()
        time.sleep(0.01)
