"""Appends a job's progress to a file, one JSON object a line, not too often.

A line is written with one call to a file opened for appending, so that readers see whole lines and
processes do not overwrite each other. A full disk or a folder that has gone is no reason to end a
training: what cannot be written is dropped. Knows neither who reads nor what a step is.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping

PROGRESS = "DOVETAIL_PROGRESS"
CHECKPOINT = "DOVETAIL_CHECKPOINT"
NOTHING: Mapping[str, bool] = {}
EVERY = 0.1
"""Seconds between two lines."""


class Reporter:
    """The progress of this process."""

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.steps = 0
        self._environment = environment
        self._clock = clock
        self._written = float("-inf")
        #: held back: when, steps, total, epoch
        self._pending: tuple[float, int, int | None, int | None] | None = None
        self._minding = self._told_to_end = False
        self._read_environment()
        atexit.register(self.flush)
        os.register_at_fork(after_in_child=self._forget)

    @property
    def listened(self) -> bool:
        """Was a file named?"""
        return bool(self._progress)

    def attach(self) -> None:
        """Read the environment again and report that the job is there."""
        self._read_environment()
        self._pending = (self._clock(), self.steps, None, None)
        self.flush()

    def progress(self, steps: int, total: int | None = None, epoch: int | None = None) -> None:
        """Note how many steps are done; write it unless the last line is too young."""
        self.steps = int(steps)
        if not self._progress:
            return
        now = self._clock()
        self._pending = (now, self.steps, total, epoch)
        if now - self._written >= EVERY or (total is not None and steps >= total):
            self.flush()

    def checkpointed(self) -> None:
        """Write at once that everything up to here is saved; if we were told to end, end."""
        _, _, total, epoch = self._pending or (0.0, 0, None, None)
        self._pending = (self._clock(), self.steps, total, epoch)
        self.flush({"saved": True})
        if self._told_to_end:
            self._end_as_told()

    def flush(self, more: Mapping[str, bool] = NOTHING) -> None:
        """Write what was held back."""
        if self._pending is None or not self._progress:
            return
        at, steps, total, epoch = self._pending
        self._pending, self._written = None, at
        # `at` is of the machine's monotonic clock, the same in all of its processes.
        said = {"at": round(at, 6), "process": os.getpid(), "steps": steps, **more}
        known = {"total": total, "epoch": epoch}
        said |= {key: int(value) for key, value in known.items() if value is not None}
        _append(self._progress, json.dumps(said) + "\n")

    def should_checkpoint(self) -> bool:
        """Is the file there that asks for a checkpoint, or were we told to end?"""
        if not self._checkpoint:
            return False
        self._mind_being_told()
        return self._told_to_end or os.path.exists(self._checkpoint)

    def _mind_being_told(self) -> None:
        """Who asks means to save first: from now on being told to end does not end us at once."""
        if self._minding or threading.current_thread() is not threading.main_thread():
            return
        self._minding = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        if self._minding:
            signal.signal(signal.SIGTERM, self._tell_to_end)

    def _tell_to_end(self, *_: object) -> None:
        self._told_to_end = True

    def _end_as_told(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    def _read_environment(self) -> None:
        self._progress = self._environment.get(PROGRESS, "")
        self._checkpoint = self._environment.get(CHECKPOINT, "")

    def _forget(self) -> None:
        """A forked child does not report what its parent held back, and ends when told to."""
        self._pending = None
        if self._minding:
            self._minding = self._told_to_end = False
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _append(path: str, line: str) -> None:
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    try:
        os.write(file, line.encode())
    except OSError:
        # The disk is full: the next report may fit again.
        pass
    finally:
        os.close(file)
