"""Two times: one for decisions, which only moves forward, and one for people.

Decisions are made on seconds since the data base was first used. They follow the machine's
monotonic clock, which goes on while the controller is away; after a reboot they go on from the last
recorded moment, by as much as the wall clock says has passed, if that is plausible. A wall clock
that jumps changes what people read, never what is decided.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

BOOT = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    """Where time comes from."""

    def monotonic(self) -> float:
        """Seconds that never go back while `boot` stays the same."""

    def wall(self) -> float:
        """Seconds since 1970 as the machine believes."""

    def boot(self) -> str:
        """Changes when the monotonic clock starts anew."""


class MachineClock:
    """The clocks of this machine."""

    def monotonic(self) -> float:
        """Seconds since some moment of this boot."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since 1970."""
        # The one place that reads the wall clock: it is for people only.
        return time.time()  # noqa: TID251

    def boot(self) -> str:
        """The kernel's name for this boot."""
        try:
            return BOOT.read_text().strip()
        except OSError:
            return "unknown"


@dataclass
class Anchor:
    """How the present clock relates to the time of decisions."""

    boot: str
    #: decision time minus monotonic time
    offset: float


@dataclass
class Moment:
    """The last recorded batch."""

    now: float = 0.0
    wall: float = 0.0


class TimeBase:
    """The time of decisions, across restarts."""

    def __init__(self, clock: Clock, anchor: Anchor | None, last: Moment | None) -> None:
        self.clock = clock
        self._last = last.now if last else 0.0
        boot = clock.boot()
        if anchor is not None and anchor.boot == boot and boot != "unknown":
            self.anchor = anchor
        else:
            passed = max(0.0, clock.wall() - last.wall) if last else 0.0
            self.anchor = Anchor(boot, self._last + passed - clock.monotonic())

    def now(self) -> float:
        """The time of decisions; it never goes back."""
        self._last = max(self._last, self.clock.monotonic() + self.anchor.offset)
        return self._last

    def wall(self) -> float:
        """The time people read."""
        return self.clock.wall()
