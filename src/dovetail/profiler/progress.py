"""What a job said through the client: lines read as they come, and the speed they show.

Of a job of many processes the one that spoke first is listened to, since all make the same steps.
Knows neither how the job is run nor on how many cores.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev
from typing import Any

SLICES = 5
"""Parts of a window whose speeds are compared to see the noise."""


@dataclass(frozen=True, slots=True)
class Report:
    """So many steps were done at that moment."""

    at: float
    steps: int
    #: steps in one pass over the data; 0: not said
    epoch: int = 0


class ProgressFile:
    """The reports in a file that grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._speaker: int | None = None

    def read(self) -> list[Report]:
        """The reports that came since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            return []
        # What follows the last end of line is still being written.
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        found = (self._report(line) for line in whole.splitlines())
        return [report for report in found if report is not None]

    def _report(self, line: bytes) -> Report | None:
        try:
            said: dict[str, Any] = json.loads(line)
            report = Report(float(said["at"]), int(said["steps"]), int(said.get("epoch", 0)))
            speaker = int(said["process"])
        except (ValueError, TypeError, KeyError):
            return None
        if self._speaker is None:
            self._speaker = speaker
        return report if speaker == self._speaker else None


def after(reports: Sequence[Report], warmup: float) -> list[Report]:
    """The reports that count: from so many seconds after the first step on."""
    first = next((report.at for report in reports if report.steps > 0), None)
    return [] if first is None else [each for each in reports if each.at >= first + warmup]


def speed(reports: Sequence[Report]) -> tuple[float, float]:
    """Steps per second, and how uncertain that is: the standard error as a share of it."""
    first, last = reports[0], reports[-1]
    whole = (last.steps - first.steps) / (last.at - first.at)
    parts = _slices(reports)
    if len(parts) < 2 or whole <= 0:
        return whole, 0.0
    return whole, stdev(parts) / mean(parts) / len(parts) ** 0.5


def _slices(reports: Sequence[Report]) -> list[float]:
    """The speeds of parts of about equal length."""
    length = (reports[-1].at - reports[0].at) / SLICES
    ends = [reports[0]]
    for report in reports[1:]:
        # A report is a little late more often than early: half of one may be missing.
        if report.at >= reports[0].at + length * len(ends) - length / 10:
            ends.append(report)
    return [(right.steps - left.steps) / (right.at - left.at) for left, right in pairwise(ends)]
