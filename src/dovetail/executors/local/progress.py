"""What a job says of its progress, read from a file that is the job's to write.

Whatever stands there instead of a plain file of lines is passed over, and no more than a little is
read at once, so that no job can hold up the controller. Of a job of many processes the one that
spoke first is listened to, since all make the same steps.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections import deque
from pathlib import Path
from typing import NamedTuple

CHUNK = 256 * 1024
"""Bytes read in one look."""
LATELY = 30.0
"""Seconds over which the rate is taken."""


class Progress(NamedTuple):
    """How far a job is."""

    steps: float
    total: float | None
    #: steps per second
    rate: float


class Listener:
    """Follows the progress file of one attempt."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._seen = (0, 0)
        self._speaker: object = None
        self._total: float | None = None
        self._saved = False
        #: moments and steps, as far back as the rate looks
        self._lately: deque[tuple[float, float]] = deque()

    def news(self) -> Progress | None:
        """How far it is now, if it said something since the last call."""
        heard = [self._hear(line) for line in self._lines()]
        return self._sum_up() if any(heard) else None

    def saved(self) -> bool:
        """Did it tell of a checkpoint since the last call?"""
        told, self._saved = self._saved, False
        return told

    def _lines(self) -> list[bytes]:
        try:
            found = os.stat(self._path, follow_symlinks=False)
        except OSError:
            return []
        mark = (found.st_mtime_ns, found.st_size)
        if mark == self._seen and found.st_size <= self._offset:
            return []
        self._seen = mark
        text = self._read() if stat.S_ISREG(found.st_mode) else b""
        # What follows the last end of line is still being written; a line as long as all we read
        # is no progress.
        whole = text[: text.rfind(b"\n") + 1] or (text if len(text) == CHUNK else b"")
        self._offset += len(whole)
        return whole.splitlines()

    def _read(self) -> bytes:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            file = os.open(self._path, flags)
        except OSError:
            return b""
        try:
            return os.pread(file, CHUNK, self._offset)
        except OSError:
            return b""
        finally:
            os.close(file)

    def _hear(self, line: bytes) -> bool:
        try:
            said = json.loads(line)
            at, steps, speaker = float(said["at"]), float(said["steps"]), said["process"]
            total = float(said["total"]) if "total" in said else self._total
        except (ValueError, TypeError, KeyError, RecursionError):
            return False
        # Any of a job's processes may be the one that saves.
        self._saved |= said.get("saved") is True
        self._speaker = speaker if self._speaker is None else self._speaker
        if speaker != self._speaker or not math.isfinite(at + steps + (total or 0.0)):
            return False
        self._total = total
        self._lately.append((at, steps))
        while self._lately[0][0] < at - LATELY:
            self._lately.popleft()
        return True

    def _sum_up(self) -> Progress:
        (first, before), (last, steps) = self._lately[0], self._lately[-1]
        rate = (steps - before) / (last - first) if last > first else 0.0
        return Progress(steps, self._total, max(rate, 0.0))
