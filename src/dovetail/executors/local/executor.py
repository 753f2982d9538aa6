"""The engine for one machine: starts attempts under a shim each, and tells what becomes of them.

All is done in the calls of the controller, without threads and without waiting. What must outlive
the controller is in the attempts' folders, so that a new executor over the same data takes up where
the last one was. It trusts that one executor at a time works on a data folder.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dovetail.executors.local import shim as shim_module
from dovetail.executors.local.cores import Cores
from dovetail.executors.local.fences import Entry, Fences, find
from dovetail.executors.local.folders import Folder, folder_of, remove
from dovetail.executors.local.machine import Machine, detect
from dovetail.executors.local.mechanism import Limits
from dovetail.executors.local.processes import Identity, identify
from dovetail.executors.local.run import Run
from dovetail.executors.local.surroundings import client_folder, surroundings
from dovetail.executors.protocol import (
    Attempt,
    Ended,
    Executor,
    Launch,
    Report,
    Running,
    Usage,
    Use,
)
from dovetail.model.allocation import NOTHING, Allocation, Difference, Part, allocation_of, classify
from dovetail.model.errors import UserError
from dovetail.model.node import Capabilities, Node

STAND_IN = "CPU (it stands in for virtual GPUs)"


class Local(Executor):
    """The engine for the machine it runs on."""

    def __init__(
        self,
        data: Path,
        machine: Machine | None = None,
        fences: Fences | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._data = data.resolve()
        self.machine = machine or detect()
        self.fences = fences or find(branch(self._data))
        self._client = client_folder(self._data)
        self._cores = Cores(self.machine.cores)
        self._clock = clock
        self._runs: dict[Attempt, Run] = {}
        self._reports: list[Report] = []
        #: fences of attempts that are over or never began, to be removed
        self._leftovers: set[str] = set()

    @property
    def nodes(self) -> Sequence[Node]:
        """This machine."""
        return (self.machine.node,)

    @property
    def capabilities(self) -> Mapping[str, Capabilities]:
        """By node type: what can be done to a running job."""
        return {self.machine.node.type: self.machine.capabilities}

    def describe(self) -> str:
        """What is enforced, and how."""
        return self.fences.describe()

    def forget(self, attempts: Sequence[Attempt]) -> None:
        """Remove the folders of attempts that are over."""
        remove(self._data, attempts)

    def logs(self, attempt: Attempt) -> Sequence[Path]:
        """What an attempt wrote, oldest file first."""
        return folder_of(self._data, attempt).logs()

    def usage(self, attempt: Attempt) -> Usage | None:
        """What a running attempt takes."""
        run = self._runs.get(attempt)
        return None if run is None else self.fences.usage(run.key)

    def used_by_others(self) -> Allocation:
        """Devices that processes other than our jobs compute on, and memory beyond our jobs'."""
        ours = [pid for run in self._runs.values() for pid in self.fences.members(run.key)]
        held = 0
        for run in self._runs.values():
            held |= _devices(run.allocation)
        mask = self.machine.used_by_others(ours, held)
        used = sum(self.fences.usage(run.key).memory for run in self._runs.values())
        memory = min(self.machine.memory_of_others(used), self.machine.node.memory or 0)
        return allocation_of((Part(0, mask, 0, memory),)) if mask or memory else NOTHING

    def uses(self) -> Mapping[Attempt, Use]:
        """Of real GPUs what the driver says; for virtual ones the CPU stands in."""
        found = {}
        for run in self._runs.values():
            if run.runs and (use := self._use(run)) is not None:
                found[run.attempt] = use
        return found

    def _use(self, run: Run) -> Use | None:
        if self.machine.gpus:
            percent = self.machine.utilisation(_devices(run.allocation))
            return None if percent is None else Use(percent)
        percent = run.busy(self._clock(), self.fences.usage(run.key).cpu_seconds)
        return None if percent is None else Use(percent, STAND_IN)

    def start(self, launch: Launch) -> None:
        """Start an attempt; reported as running, or as ended if it could not be started."""
        # Perhaps it was, by an executor that did not live to tell: never twice.
        if self.adopt(launch):
            return
        folder = folder_of(self._data, launch.attempt)
        try:
            self._check(launch)
            folder.make(launch.owner)
        except (OSError, UserError) as error:
            self._refuse(launch.attempt, error)
        else:
            self._start(launch, folder)

    def _start(self, launch: Launch, folder: Folder) -> None:
        key = folder.path.name
        self._leftovers.discard(key)
        try:
            entry = self.fences.make(key, self._limits(key, launch.allocation))
            folder.write(self._order(launch, folder, entry))
            shim = _spawn(folder)
        except OSError as error:
            self._release(key)
            self._refuse(launch.attempt, error)
        else:
            self._follow(launch, folder, shim)

    def stop(self, attempt: Attempt, grace: float) -> None:
        """Ask it to end, and end it after the grace; reported as ended."""
        if run := self._runs.get(attempt):
            run.stop(self._clock(), grace)

    def suspend(self, attempt: Attempt) -> None:
        """Pause it; reported as paused."""
        if run := self._runs.get(attempt):
            run.suspend()

    def resume(self, attempt: Attempt) -> None:
        """Let it go on; reported as running."""
        if run := self._runs.get(attempt):
            run.resume()

    def resize(self, attempt: Attempt, allocation: Allocation) -> None:
        """Other amounts of CPU and memory on the same devices, without a restart.

        Where that cannot be, as when more memory is in use, it is reported as running on what it
        has.
        """
        run = self._runs.get(attempt)
        if run is None:
            return
        before = run.allocation
        kind = classify(before, allocation)
        if kind in (Difference.IN_PLACE, Difference.NONE) and self._fence(run.key, allocation):
            run.allocation = allocation
            return
        self._fence(run.key, before)
        self._reports.append(Running(attempt, before))

    def adopt(self, launch: Launch) -> bool:
        """After a restart of the controller: is this attempt known here, running or ended?"""
        folder = folder_of(self._data, launch.attempt)
        if launch.attempt in self._runs:
            return True
        if not folder.path.is_dir():
            return False
        shim = folder.began()
        if shim is None:
            # Its start was cut short. Whether there shall be another is for the caller to say.
            self._release(folder.path.name)
            return False
        run = self._follow(launch, folder, shim)
        self._fence(run.key, launch.allocation)
        run.found_frozen()
        return True

    def reports(self) -> list[Report]:
        """What happened since the last call; never waits."""
        found, self._reports = self._reports, []
        now = self._clock()
        for run in list(self._runs.values()):
            found.extend(run.look(now))
            if run.over:
                del self._runs[run.attempt]
                self._release(run.key)
        self._leftovers = {key for key in self._leftovers if not self.fences.remove(key)}
        return found

    # ---- the parts of a start ---------------------------------------------------------------

    def _check(self, launch: Launch) -> None:
        if not launch.command or not launch.command[0]:
            raise UserError("there is no command")
        if any(part.node != 0 for part in launch.allocation.parts):
            raise UserError("this engine has one machine")
        if _devices(launch.allocation) >> self.machine.node.gpus:
            raise UserError(f"this machine has {self.machine.node.gpus} GPUs")
        if launch.owner and os.geteuid() not in (0, launch.owner[0]):
            raise UserError("only a controller run by root can run jobs as another user")

    def _limits(self, key: str, allocation: Allocation) -> Limits:
        cores = self._cores.take(key, allocation.cpu)
        return Limits(cores, allocation.cpu, allocation.memory)

    def _fence(self, key: str, allocation: Allocation) -> bool:
        """Set the limits of an attempt that is there already; False: not possible."""
        try:
            self.fences.resize(key, self._limits(key, allocation))
        except OSError:
            return False
        return True

    def _order(self, launch: Launch, folder: Folder, entry: Entry) -> dict[str, Any]:
        """What the shim is told."""
        return {
            "command": list(launch.command),
            "directory": str(launch.directory),
            "environment": surroundings(launch, self.machine, folder, self._client),
            "reachable": str(folder.job),
            "owner": launch.owner,
            "groups": _groups(launch.owner),
            "doors": entry.doors,
            "cores": entry.cores,
            "log_bytes": launch.log_bytes,
            "log_files": launch.log_files,
        }

    def _follow(self, launch: Launch, folder: Folder, shim: Identity) -> Run:
        run = Run(launch.attempt, launch.allocation, folder, self.fences, shim)
        self._runs[launch.attempt] = run
        return run

    def _refuse(self, attempt: Attempt, error: Exception) -> None:
        self._reports.append(Ended(attempt, None, None, f"could not start: {error}"))

    def _release(self, key: str) -> None:
        self._cores.release(key)
        self._leftovers.add(key)


def branch(data: Path) -> str:
    """The name of the control groups of a data folder: the same after a restart, and no other's."""
    return f"dovetail-{hashlib.sha256(os.fsencode(data.resolve())).hexdigest()[:12]}"


def _devices(allocation: Allocation) -> int:
    mask = 0
    for part in allocation.parts:
        mask |= part.devices
    return mask


def _groups(owner: tuple[int, int] | None) -> list[int]:
    """The groups an owner is in."""
    if owner is None:
        return []
    try:
        return os.getgrouplist(pwd.getpwuid(owner[0]).pw_name, owner[1])
    except KeyError:
        return [owner[1]]


def _spawn(folder: Folder) -> Identity:
    """Start the shim, detached: it shares neither session nor files with us."""
    claim = folder.next_claim()
    nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", str(shim_module.__file__), str(folder.path), claim],
        {},
        file_actions=nothing,
        setsid=True,
        setsigmask=(),
        setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE),
    )
    try:
        shim = identify(pid)
    except OSError:
        # Nobody could follow it.
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    # Until we ask about its end, a child of ours keeps its number.
    assert shim is not None
    return shim
