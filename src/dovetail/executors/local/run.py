"""One attempt as the executor sees it: looked at again and again, pushed on where it is due.

Nothing here waits. What was asked for is remembered and pursued at each look until the shim has
written that it is so. The devices are free when no process of the attempt is left, not before.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from dovetail.executors.local.fences import Fences
from dovetail.executors.local.folders import Folder, State, read_state
from dovetail.executors.local.processes import GONE, Identity, alive
from dovetail.executors.local.progress import Listener
from dovetail.executors.protocol import (
    Advanced,
    Attempt,
    Ended,
    Fault,
    Hindered,
    Paused,
    Report,
    Running,
    Saved,
)
from dovetail.model.allocation import Allocation

WATCH = 1.0
"""Seconds between two looks at memory."""
UNBEGUN = "it vanished before its command was started"
LOST = "lost: it vanished without saying how it ended, as after a reboot"
PATIENCE = 30.0
"""Seconds in which one that cannot be frozen is tried again."""


class _Stop(NamedTuple):
    """When it was asked to end, it must have ended by `deadline`."""

    grace: float
    deadline: float


class Run:
    """An attempt that was started and has not been reported as ended."""

    def __init__(
        self,
        attempt: Attempt,
        allocation: Allocation,
        folder: Folder,
        fences: Fences,
        shim: Identity,
    ) -> None:
        self.attempt, self.allocation = attempt, allocation
        self.key = folder.path.name
        self.over = False
        self._folder, self._fences, self._shim = folder, fences, shim
        self._progress = Listener(folder.progress)
        self._state: State | None = None
        #: of the state file when it was last read
        self._mark = (0, 0)
        self._running_due = True
        self._pause_due = False
        #: it was told to go on, and may stand still yet
        self._thaw_due = False
        #: what keeps it from standing still or going on, and since when
        self._hindrance = ""
        self._hindered_since: float | None = None
        self._stop: _Stop | None = None
        self._asked = False
        self._killing = False
        self._reason = ""
        self._watched = float("-inf")
        #: when its processor time was last asked for, and how much it was
        self._measured: tuple[float, float] | None = None
        fences.know(self.key, shim)

    # ---- what is asked for ------------------------------------------------------------------

    def stop(self, now: float, grace: float) -> None:
        """Ask it to end; the earliest deadline holds."""
        if self._stop is None or now + grace < self._stop.deadline:
            self._stop = _Stop(grace, now + grace)
        self._pursue_stop(now)

    def suspend(self) -> None:
        """Let it stand still."""
        self._pause_due, self._thaw_due = True, False
        self._pursue_pause()

    def resume(self) -> None:
        """Let it go on."""
        self._pause_due = False
        self._fences.thaw(self.key)
        self._thaw_due = self._running_due = True

    def found_frozen(self) -> None:
        """After a restart of the controller: tell of a pause that was asked for before."""
        self._pause_due = bool(self._fences.members(self.key)) and self._fences.frozen(self.key)

    # ---- what is the case -------------------------------------------------------------------

    def look(self, now: float) -> Iterator[Report]:
        """What is new; `over` after the last of it."""
        lives = alive(self._shim)
        # In this order: what a shim wrote before it went is read after it.
        self._refresh()
        if self._running_due and self.runs and self._goes_on():
            self._running_due = False
            yield Running(self.attempt, self.allocation)
        if (news := self._progress.news()) is not None:
            yield Advanced(self.attempt, *news)
        if self._progress.saved():
            yield Saved(self.attempt)
        if not lives:
            yield from self._finish()
            return
        self._watch(now)
        self._pursue_stop(now)
        if self._pause_due and self._pursue_pause():
            self._pause_due = False
            yield Paused(self.attempt)
        yield from self._hindered(now)

    def _hindered(self, now: float) -> Iterator[Report]:
        """What keeps it from standing still or going on: told once, and when it is given up."""
        if not self._hindrance:
            self._hindered_since = None
            return
        deed = "suspend" if self._pause_due else "resume"
        if self._hindered_since is None:
            self._hindered_since = now
            yield Hindered(self.attempt, deed, self._hindrance)
        elif self._pause_due and now - self._hindered_since > PATIENCE:
            self._pause_due = False
            yield Hindered(self.attempt, deed, self._hindrance, given_up=True)
            self._hindrance = ""

    def _refresh(self) -> None:
        try:
            found = os.stat(self._folder.state)
        except OSError:
            return
        # The file is replaced as a whole, so its inode changes with what it says.
        mark = (found.st_ino, found.st_mtime_ns)
        # What cannot be read, as with too many open files, is read at the next look.
        if mark != self._mark and (state := read_state(self._folder.state)) is not None:
            self._state, self._mark = state, mark

    @property
    def runs(self) -> bool:
        """Has its command been started?"""
        return self._state is not None and self._state.phase == "running"

    def busy(self, now: float, seconds: float) -> float | None:
        """Percent of one core since the last call, given its processor time so far."""
        before, self._measured = self._measured, (now, seconds)
        if before is None or now <= before[0]:
            return None
        return max(0.0, 100.0 * (seconds - before[1]) / (now - before[0]))

    def _watch(self, now: float) -> None:
        if now - self._watched < WATCH:
            return
        self._watched = now
        if self._fences.exceeded(self.key):
            # The kernel may have ended one process of many: what is left is no whole job.
            self._killing = True

    def _pursue_stop(self, now: float) -> None:
        if self._stop is not None and not self._asked and self.runs:
            self._ask()
        if self._stop is not None and now >= self._stop.deadline and not self._killing:
            self._killing = True
            self._reason = f"did not end within {self._stop.grace:g} s of being asked to"
        if self._killing:
            self._fences.kill(self.key)
            # A process that stands still by a signal dies at once, a frozen one when thawed.
            self._fences.thaw(self.key)

    def _ask(self) -> None:
        assert self._state is not None
        self._asked = True
        self._folder.ask_for_checkpoint()
        group = self._state.group
        if group is not None and alive(group):
            with suppress(*GONE):
                os.killpg(group.pid, signal.SIGTERM)
        self._fences.thaw(self.key)

    def _pursue_pause(self) -> bool:
        """Freeze it, again if need be; does it stand still?"""
        if not self.runs or self._stop is not None:
            return False
        try:
            self._fences.freeze(self.key)
            self._hindrance = ""
        except OSError as error:
            self._hindrance = error.strerror or str(error)
        return self._fences.frozen(self.key)

    def _goes_on(self) -> bool:
        """Thaw it, again if need be, where it was told to go on."""
        if self._thaw_due:
            self._fences.thaw(self.key)
            self._thaw_due = bool(self._fences.members(self.key)) and self._fences.frozen(self.key)
            self._hindrance = "its processes stand still" if self._thaw_due else ""
        return not self._thaw_due

    def _finish(self) -> Iterator[Report]:
        if self._fences.members(self.key):
            # The shim ends all it can see; without it, or beyond it, this is for us to do.
            self._fences.kill(self.key)
            self._fences.thaw(self.key)
            return
        self.over = True
        yield self._verdict()

    def _verdict(self) -> Ended:
        state = self._state
        if state is None or state.phase != "ended":
            if self._folder.unbegun():
                # Whoever ended the shim, it was not the job's doing.
                return Ended(self.attempt, None, None, UNBEGUN, Fault.ENGINE)
            return Ended(self.attempt, None, None, LOST)
        reason = state.reason or self._reason
        if state.code != 0 and self._fences.exceeded(self.key):
            granted = self.allocation.memory
            reason = f"out of memory: it wanted more than the {granted} MiB it was granted"
        return Ended(self.attempt, state.code, state.signal, reason)
