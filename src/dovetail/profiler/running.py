"""Measures a command: its steps per second on so many cores, and the memory it takes.

The command must report its progress through the client. It is started anew for each measurement,
given time to warm up, watched for a window of time and then ended.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import psutil

from dovetail.model.errors import UserError
from dovetail.profiler.measurement import Measurement
from dovetail.profiler.pinning import available_cores, check_cores, family, pinned
from dovetail.profiler.progress import ProgressFile, Report, after, speed

POLL = 0.05
SAMPLE = 0.5
"""Seconds between two looks at memory and processor time."""
REPORTS = 3
"""Fewer show no speed."""
SHORTEST = 0.25
"""The part of a window that will do where the command has come to its end."""
CALM = 0.05
"""The part of the cores that others may use while measuring."""
TRIES = 3
GIB = 2**30


@dataclass(frozen=True, slots=True)
class Window:
    """How long a command is watched."""

    seconds: float = 10.0
    #: seconds after the first step that do not count
    warmup: float = 2.0
    #: seconds without a report after which it is given up
    patience: float = 120.0

    def __post_init__(self) -> None:
        bounds = (self.seconds > 0, self.warmup >= 0, self.patience > 0)
        if not (all(bounds) and isfinite(self.seconds + self.warmup + self.patience)):
            raise UserError("a measurement must take some seconds, and its warm-up at least 0")


def least_disturbed(
    command: Sequence[str], cores: int, window: Window, tries: int = TRIES
) -> Measurement:
    """Measure; where other programs were on the same cores, again: the calmest try counts."""
    done: list[Measurement] = []
    while not done or (done[-1].others > CALM and len(done) < tries):
        done.append(measure(command, cores, window))
    calmest = min(done, key=lambda each: each.others)
    return replace(calmest, seconds=sum(each.seconds for each in done))


def measure(command: Sequence[str], cores: int, window: Window) -> Measurement:
    """Run a command on that many cores for as long as it takes to know its speed."""
    if not command:
        raise UserError("there is no command to profile")
    check_cores(cores)
    begin = time.monotonic()
    with TemporaryDirectory(prefix="dovetail-profile-") as name:
        folder = Path(name)
        file = folder / "progress"
        with pinned(command, cores, folder, {"DOVETAIL_PROGRESS": str(file)}) as process:
            watch = _Watch(command[0], window, folder, process.pid, available_cores()[:cores])
            while not watch.enough():
                watch.look(process.poll())
            found, meter = watch.counted(), watch.meter
    per_second, noise = speed(found)
    if per_second <= 0:
        raise UserError(f"{command[0]}: made no step in {window.seconds:g} s; give it more seconds")
    epoch = max(report.epoch for report in found)
    spent, used = time.monotonic() - begin, meter.used(found[0].at)
    return Measurement(cores, per_second, noise, meter.memory, spent, epoch, meter.others(), used)


class _Watch:
    """Waits for reports until there are enough of them."""

    def __init__(
        self, name: str, window: Window, folder: Path, process: int, cores: Sequence[int]
    ) -> None:
        self.meter = _Meter(process, cores)
        self._name, self._window, self._folder = name, window, folder
        self._file = ProgressFile(folder / "progress")
        self._reports: list[Report] = []
        self._heard = time.monotonic()
        self._ended: int | None = None

    def counted(self) -> list[Report]:
        """The reports after the warm-up."""
        return after(self._reports, self._window.warmup)

    def enough(self) -> bool:
        """Has the window passed, or has the command ended with enough to go by?"""
        found = self.counted()
        if len(found) < REPORTS:
            return False
        wanted = self._window.seconds * (1 if self._ended is None else SHORTEST)
        return found[-1].at - found[0].at >= wanted

    def look(self, ended: int | None) -> None:
        """Wait a moment, read what was reported, and complain if nothing more can come."""
        if self._ended is not None:
            self._gone(self._ended)
        time.sleep(POLL)
        self.meter.sample()
        # In this order: what was written before the end is read after it.
        self._ended = ended
        if new := self._file.read():
            self._reports += new
            self._heard = time.monotonic()
        if ended not in (None, 0):
            self._gone(ended or 0)
        if time.monotonic() - self._heard > self._window.patience:
            self._silent()

    def _gone(self, code: int) -> NoReturn:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        if code == 0 and not self._reports:
            how = "ended without reporting any progress through dovetail_client"
        elif code == 0:
            how = "ended before its speed was known; let it run for longer than a measurement"
        said = self._last_words()
        raise UserError(f"{self._name}: {how}{f' ({said})' if said else ''}")

    def _silent(self) -> NoReturn:
        patience = f"{self._window.patience:g} s"
        if self._reports:
            raise UserError(f"{self._name}: reported no further progress for {patience}")
        raise UserError(
            f"{self._name}: reported no progress for {patience}; "
            "its loop must call dovetail_client.steps or dovetail_client.progress"
        )

    def _last_words(self) -> str:
        lines = (self._folder / "output").read_text(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return said[-1][:200] if said else ""


class _Meter:
    """Memory and processor time of a family of processes, and of the cores they are on."""

    def __init__(self, process: int, cores: Sequence[int]) -> None:
        self.memory = 0.0
        self._process, self._cores = process, cores
        self._used: dict[int, float] = {}
        #: moments and processor time of all together
        self._looks: list[tuple[float, float]] = []
        self._begin = self._at = time.monotonic()
        self._busy = self._busy_at = self._busy_seconds()

    def sample(self) -> None:
        """Look, if the last look is some time ago: looking takes time of the job's cores."""
        if time.monotonic() - self._at < SAMPLE:
            return
        self._at = time.monotonic()
        self._busy_at = self._busy_seconds()
        there = family(self._process)
        self.memory = max(self.memory, sum(map(_memory, there)) / GIB)
        for each in there:
            with suppress(psutil.Error):
                times = each.cpu_times()
                self._used[each.pid] = times.user + times.system
        self._looks.append((time.monotonic(), sum(self._used.values())))

    def used(self, since: float) -> float:
        """Cores' worth of processor time from that moment on; 0: there was too little to see."""
        looks = [look for look in self._looks if look[0] >= since]
        if len(looks) < 2:
            return 0.0
        (first, before), (last, after) = looks[0], looks[-1]
        return max(0.0, after - before) / (last - first)

    def others(self) -> float:
        """The part of the cores that was used, but not by this family."""
        if not self._used:
            return 0.0
        whole = (self._at - self._begin) * len(self._cores)
        busy = self._busy_at - self._busy
        return max(0.0, min(1.0, (busy - sum(self._used.values())) / whole))

    def _busy_seconds(self) -> float:
        """How long the cores were not idle, time taken by other virtual machines included."""
        each = dict(enumerate(psutil.cpu_times(percpu=True)))
        times = [each[core] for core in self._cores if core in each]
        return float(sum(sum(t[:8]) - t.idle - t.iowait for t in times))


def _memory(process: psutil.Process) -> float:
    """Bytes in memory; pages that several processes share count once among them."""
    try:
        return float(process.memory_full_info().pss)
    except (psutil.Error, AttributeError):
        return _resident(process)


def _resident(process: psutil.Process) -> float:
    try:
        return float(process.memory_info().rss)
    except psutil.Error:
        return 0.0
